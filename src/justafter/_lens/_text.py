"""The lens in a terminal: plain, aligned text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ._model import Costs, Equation, Kernel, Source

if TYPE_CHECKING:
    from . import Lens

FATES = {
    "view": "no work",
    "folded": "gone: a constant by now",
    "unused": "gone: result unused",
    "gone": "gone: merged or simplified away",
    "unknown": "cannot tell: XLA kept no record",
    "wrapper": "",
}
INFERRED = "~ inferred: XLA's own record names another equation, or none"
_WIDTH = 68


def count(number: int, noun: str) -> str:
    """Write a number with its noun.

    >>> count(1, "kernel"), count(1200, "kernel")
    ('1 kernel', '1,200 kernels')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def figure(value: float | None, noun: str, unknown: int = 0) -> str:
    """Write a cost that XLA may not have reported, or not of all kernels."""
    if value is None:
        return f"{noun}s not reported"
    return f"{'at least ' * bool(unknown)}{count(int(value), noun)}"


def summary(view: Lens) -> list[str]:
    """List the parts of the summary line that are the same in each run."""
    gone = len(view.gone)
    parts = [
        f"{count(len(view.primitives), 'primitive')} in",
        *([f"{gone:,} gone"] if gone else []),
        f"{count(len(view.kernels), 'kernel')} out",
        figure(operations(view.costs), "FLOP", view.costs.unknown),
        f"{figure(view.costs.bytes_accessed, 'byte', view.costs.unknown)} accessed",
    ]
    if view.costs.unknown:
        parts.append(f"{count(view.costs.unknown, 'kernel')} of unknown cost")
    if view.costs.devices > 1:
        parts.append(f"on each of {view.costs.devices} devices")
    return parts


def operations(costs: Costs) -> float | None:
    """The floating-point operations, an exponential or a sine counted as one.

    XLA counts these apart; what a kernel does and what all do are to add up.
    """
    if costs.flops is None:
        return costs.transcendentals
    return costs.flops + (costs.transcendentals or 0)


def compile_time(costs: Costs) -> str:
    """Write the measured compile time with its unit."""
    seconds = costs.compile_seconds or 0.0
    return f"{seconds * 1e3:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def fate(eqn: Equation) -> str:
    """Say in a few words what became of an equation."""
    if eqn.kernels:
        return several([f"k{k}" for k in eqn.kernels], " ")
    return FATES.get(eqn.fate, "")


def several(names: list[str], joint: str) -> str:
    """Write the first four of several names, and how many more there are."""
    extra = len(names) - 4
    return joint.join(names[:4]) + (f" and {extra} more" if extra > 0 else "")


def render(view: Lens) -> str:
    """Write the three columns one below the other."""
    blocks = [
        [f"lens of {view.name} on {view.platform}", " | ".join(summary(view))],
        [f"compiled in {compile_time(view.costs)}", *view.notes],
        ["", "Python source", *source_lines(view.source)],
        ["", "jaxpr", f"  in  {view.inputs}", *constant_lines(view)],
        [*equation_lines(view)],
        [f"  out {view.results}", "", "optimized HLO", *kernel_lines(view)],
    ]
    return "\n".join(line.rstrip() for block in blocks for line in block)


def constant_lines(view: Lens) -> Iterator[str]:
    """Write the captured arrays, where there are any."""
    if view.constants:
        yield f"  const {view.constants}"


def source_lines(pieces: tuple[Source, ...]) -> Iterator[str]:
    """Write each piece of source with its line numbers."""
    if not pieces:
        yield "  (none)"
    for piece in pieces:
        yield f"  {piece.file}"
        for number, line in enumerate(piece.text.split("\n"), piece.line):
            yield f"  {number:>4} | {line}"


def tree(equations: tuple[Equation, ...]) -> Iterator[Equation | tuple[int, str]]:
    """Yield equations in order and, before each inner jaxpr, its header."""
    children: dict[tuple[int | None, int], list[Equation]] = {}
    for eqn in equations:
        children.setdefault((eqn.parent, eqn.region), []).append(eqn)

    def under(parent: int | None, region: int) -> Iterator[Equation | tuple[int, str]]:
        for eqn in children.get((parent, region), []):
            yield eqn
            for number, header in enumerate(eqn.regions):
                yield eqn.depth + 1, header
                yield from under(eqn.index, number)

    return under(None, 0)


def equation_lines(view: Lens) -> Iterator[str]:
    """Write each equation: number, text, source line, kernels."""
    texts = [f"{'  ' * eqn.depth}{eqn.text}" for eqn in view.equations]
    width = min(max(map(len, texts), default=0), _WIDTH)
    for item in tree(view.equations):
        if isinstance(item, tuple):
            depth, header = item
            yield f"  {'':>4} {'  ' * depth}{header}"
            continue
        text = cut(texts[item.index], width)
        line = "" if item.span is None else f"L{item.span.line}"
        yield f"  {item.index:>4} {text:<{width}}  {line:<5} {fate(item)}"


def cut(text: str, width: int) -> str:
    """Shorten text to a width.

    >>> cut("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= width else text[: width - 1] + "…"


def kernel_title(kernel: Kernel, equations: tuple[Equation, ...]) -> str:
    """Name the primitives in a kernel, each once."""
    names = dict.fromkeys(equations[i].primitive for i in kernel.members)
    return " ".join(names) or kernel.kind


def kernel_lines(view: Lens) -> Iterator[str]:
    """Write each kernel: name, kind, type, costs, primitives, equations."""
    if not view.kernels:
        yield "  no kernel: nothing is left to compute"
    kinds = max((len(k.kind) for k in view.kernels), default=0)
    types = max((len(k.type) for k in view.kernels), default=0)
    costs = [cost_words(one) for one in view.kernel_costs]
    wide = max(map(len, costs), default=0)
    where: tuple[str, ...] = ()
    for kernel, cost in zip(view.kernels, costs, strict=True):
        if kernel.where != where:
            where = kernel.where
            yield f"  {' > '.join(where) or 'after'}:"
        pad = "  " * len(where)
        head = f"  {pad}k{kernel.index:<4}{kernel.kind:<{min(kinds, 24)}}  "
        title = kernel_title(kernel, view.equations)
        origin = "added by XLA" if kernel.appeared else f"{title}  [{origins(kernel)}]"
        yield f"{head}{kernel.type:<{min(types, 24)}}  {cost:>{wide}}  {origin}"
    if any(kernel.inferred for kernel in view.kernels):
        yield f"  {INFERRED}"


def cost_words(costs: Costs) -> str:
    """Write what a kernel costs in one run, as far as XLA knows."""
    if costs.bytes_accessed is None:
        return "cost unknown"
    return f"{operations(costs) or 0:,.0f} FLOP {costs.bytes_accessed:,.0f} B"


def origins(kernel: Kernel) -> str:
    """Write the equations in a kernel, inferred ones with a tilde."""
    members = [f"{'~' * (i in kernel.inferred)}{i}" for i in kernel.members]
    return " ".join(members) or "cannot tell"
