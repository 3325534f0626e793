"""The lens in a terminal: plain, aligned text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ._model import Costs, Equation, Kernel

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
_WIDTH, _MEMBERS = 68, 12


def count(number: int, noun: str) -> str:
    """Write a number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def summary(view: Lens) -> list[str]:
    """List the parts of the summary line that are the same in each run."""
    costs, gone = view.costs, len(view.gone)

    def figure(value: float | None, noun: str) -> str:
        return f"{'at least ' * bool(costs.unknown)}{count(int(value or 0), noun)}"

    return [
        f"{count(len(view.primitives), 'primitive')} in",
        *[f"{gone:,} gone"] * bool(gone),
        f"{count(len(view.kernels), 'kernel')} out",
        figure(costs.flops, "FLOP"),
        f"{figure(costs.bytes_accessed, 'byte')} accessed",
        *[f"{count(costs.unknown, 'kernel')} of unknown cost"] * bool(costs.unknown),
        *[f"on each of {costs.devices} devices"] * (costs.devices > 1),
    ]


def compile_time(costs: Costs) -> str:
    """Write the measured compile time with its unit."""
    seconds = costs.compile_seconds or 0.0
    return f"{seconds * 1e3:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def fate(eqn: Equation, view: Lens) -> str:
    """Say what became of an equation: its kernels, or why it has none."""
    if not eqn.kernels:
        return FATES.get(eqn.fate, "")
    few = [view.kernels[k] for k in eqn.kernels[:4]]
    names = " ".join(f"{'~' * (eqn.index in k.inferred)}k{k.index}" for k in few)
    extra = len(eqn.kernels) - len(few)
    return names + (f" and {extra} more" if extra else "")


def render(view: Lens) -> str:
    """Write the summary, and the equations with their kernels."""
    lines = [
        *(f"lens of {view.name} on {view.platform}", " | ".join(summary(view))),
        *(f"compiled in {compile_time(view.costs)}", *view.notes, ""),
        f"  in  {view.inputs}",
        *[f"  const {view.constants}"] * bool(view.constants),
        *_equation_lines(view),
        f"  out {view.results}",
        *[INFERRED] * any(kernel.inferred for kernel in view.kernels),
    ]
    return "\n".join(line.rstrip() for line in lines)


def equations(view: Lens) -> Iterator[Equation | tuple[int, str]]:
    """Yield equations in order and, before each inner jaxpr, its depth and header."""
    children: dict[tuple[int | None, int], list[Equation]] = {}
    for eqn in view.equations:
        children.setdefault((eqn.parent, eqn.region), []).append(eqn)

    def under(parent: int | None, region: int) -> Iterator[Equation | tuple[int, str]]:
        for eqn in children.get((parent, region), []):
            yield eqn
            for number, header in enumerate(eqn.regions):
                yield eqn.depth + 1, header
                yield from under(eqn.index, number)

    return under(None, 0)


def kernels(view: Lens) -> Iterator[Kernel | tuple[int, str]]:
    """Yield kernels in order and, before those of a loop or branch, depth and name."""
    where: tuple[str, ...] = ()
    for kernel in view.kernels:
        if kernel.where != where:
            where = kernel.where
            yield len(where), " > ".join(where) or "after the loop"
        yield kernel


def _equation_lines(view: Lens) -> Iterator[str]:
    """Write each equation: number, text, source line, kernels."""
    texts = [f"{'  ' * eqn.depth}{eqn.text}" for eqn in view.equations]
    width = min(max(map(len, texts), default=0), _WIDTH)
    for item in equations(view):
        if isinstance(item, tuple):
            yield f"  {'':>4} {'  ' * item[0]}{item[1]}"
            continue
        text = texts[item.index]
        text = text if len(text) <= width else text[: width - 1] + "…"
        line = "" if item.span is None else f"L{item.span.line}"
        yield f"  {item.index:>4} {text:<{width}}  {line:<5} {fate(item, view)}"


def kernel_title(kernel: Kernel, view: Lens) -> str:
    """Name the primitives in a kernel, each once."""
    names = dict.fromkeys(view.equations[i].primitive for i in kernel.members)
    return " ".join(names) or kernel.kind


def origin(kernel: Kernel) -> str:
    """Write the equations that a kernel came from, inferred ones with a tilde."""
    if not kernel.members:
        return "from which equation: cannot tell" if kernel.lost else "added by XLA"
    numbers = [f"{'~' * (i in kernel.inferred)}{i}" for i in kernel.members[:_MEMBERS]]
    return f"from {', '.join(numbers)}{', …' * (len(kernel.members) > _MEMBERS)}"


def cost_words(costs: Costs) -> str:
    """Write what a kernel costs in one run, as far as XLA knows."""
    if costs.bytes_accessed is None:
        return "cost unknown"
    return f"{costs.flops or 0:,.0f} FLOP {costs.bytes_accessed:,.0f} B"
