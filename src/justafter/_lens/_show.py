"""The two forms of a lens: plain text, and static HTML that needs no server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from ._model import Costs, Equation, Kernel

if TYPE_CHECKING:
    from . import Lens

FATES = {
    "view": "no work",
    "folded": "gone: a constant by now",
    "unused": "gone: result unused",
    "gone": "gone: merged, simplified away, or a bitcast of another's",
    "unknown": "cannot tell: XLA kept no record",
    "wrapper": "",
}
INFERRED = "~ inferred: XLA's own record names another equation, or none"
_WIDTH, _MEMBERS = 68, 12
# Kernels are open where there are this many or fewer.
_OPEN_KERNELS = 6
# Beside an equation there is room for one word; the rest is below the kernels.
_LABELS = {"unused": "unused", "gone": "gone", "folded": "folded", "unknown": "?"}
# A lens of more instructions than this is shown without those in its kernels.
_MOST_INSTRUCTIONS = 1500


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


def page(view: Lens) -> str:
    """Write a lens as a document of its own."""
    title = escape(f"lens of {view.name}")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title></head>"
        f'<body class="ja-lens-page"><main><h1>{title}</h1>{fragment(view)}</main>'
        "</body></html>\n"
    )


def fragment(view: Lens) -> str:
    """Write a lens for a notebook or a page, with its style and script."""
    style, script = (
        (files(__package__) / name).read_text(encoding="utf-8")
        for name in ("lens.css", "lens.js")
    )
    return f"<style>{style}</style>{body(view)}<script>{script}</script>"


def body(view: Lens) -> str:
    """Write the summary and the three columns."""
    columns = "".join(
        f'<div class="ja-column ja-{kind}"><div class="ja-caption">{title}</div>'
        f'<div class="ja-pane" tabindex="0" role="group" aria-label="{title}">'
        f"{content}</div></div>"
        for kind, title, content in (
            ("source", "Python source", _source(view)),
            ("jaxpr", "jaxpr", _jaxpr(view)),
            ("hlo", "optimized HLO", _hlo(view)),
        )
    )
    name = escape(view.name)
    parts = " ".join(f"<span>{escape(part)}</span>" for part in summary(view))
    notes = "".join(f'<p class="ja-note">{escape(note)}</p>' for note in view.notes)
    return (
        f'<div class="ja-lens" role="group" '
        f'aria-label="lens of {name}">'
        f'<p class="ja-summary"><b>{name}</b> {parts} <span>compiled in '
        f'<span class="measured">{compile_time(view.costs)}</span>'
        f" on {escape(view.platform)}</span></p>{notes}"
        f'<div class="ja-columns">{columns}</div>'
        '<p class="ja-status" role="status" aria-live="polite"></p></div>'
    )


def _numbers(indices: Iterable[int]) -> str:
    return " ".join(map(str, indices))


def _header(depth: int, text: str) -> str:
    """Write what an inner jaxpr, a loop or the whole gets or is."""
    style = f' style="--d:{depth}"' if depth else ""
    return f'<div class="ja-io"{style}>{escape(text)}</div>'


def _source(view: Lens) -> str:
    """Write each function's source, expressions marked."""
    shown = ""
    for one in view.source:
        spans = [
            (*one.offsets(link.span), link.equations)
            for link in view.links
            if link.span is not None and one.holds(link.span)
        ]
        shown += f'<div class="ja-file">{escape(one.file)}, line {one.line}</div>'
        shown += f"<pre><code>{nested(one.text, spans)}</code></pre>"
    return shown or '<p class="ja-none">No source to show.</p>'


def nested(text: str, spans: list[tuple[int, int, tuple[int, ...]]]) -> str:
    """Wrap each span in an element; inner expressions nest in outer ones."""
    out: list[str] = []
    ends: list[int] = []
    place = 0

    def close(until: int) -> None:
        nonlocal place
        while ends and ends[-1] <= until:
            out.append(escape(text[place : ends[-1]]) + "</span>")
            place = ends.pop()

    for start, end, own in sorted(spans, key=lambda s: (s[0], -s[1])):
        close(start)
        out.append(escape(text[place:start]))
        out.append(f'<span class="ja-x" data-e="{_numbers(own)}">')
        place = start
        ends.append(min([end, *ends[-1:]]))
    close(len(text))
    return "".join(out) + escape(text[place:])


def _jaxpr(view: Lens) -> str:
    """Write the equations."""
    lines = [
        _header(*item) if isinstance(item, tuple) else _equation(item, view)
        for item in equations(view)
    ]
    first = _header(0, f"in {view.inputs or 'nothing'}")
    if view.constants:
        first += _header(0, f"const {view.constants}")
    return first + "".join(lines) + _header(0, f"out {view.results}")


def _equation(eqn: Equation, view: Lens) -> str:
    """Write one equation: number, text, and the kernels or the fate."""
    depth = f' style="--d:{eqn.depth}"' if eqn.depth else ""
    words = escape(fate(eqn, view))
    label = _LABELS.get(eqn.fate, words)
    text = escape(eqn.text).replace(" = ", ' <i class="ja-eq">=</i> ', 1)
    return (
        f'<div class="ja-q{" ja-gone" * eqn.gone}" data-e="{eqn.index}" '
        f'data-p="{escape(eqn.primitive)}" data-f="{words}"{depth}>'
        f"<b>{eqn.index}</b><code>{text}</code>"
        f"{f'<i>{label}</i>' if label else ''}</div>"
    )


def _hlo(view: Lens) -> str:
    """Write the kernels with their instructions."""
    is_large = sum(len(k.instructions) for k in view.kernels) > _MOST_INSTRUCTIONS
    lines = [
        _header(*item) if isinstance(item, tuple) else _kernel(item, view, is_large)
        for item in kernels(view)
    ]
    if not view.kernels:
        lines.append('<p class="ja-none">No kernel: nothing is left to compute.</p>')
    if any(one.inferred for one in view.kernels):
        lines.append(f'<p class="ja-none">{escape(INFERRED)}</p>')
    return "".join(lines)


def _kernel(one: Kernel, view: Lens, is_large: bool) -> str:
    """Write a kernel: its title, to open, and the instructions in it."""
    is_open = len(view.kernels) <= _OPEN_KERNELS
    title = kernel_title(one, view)
    words = [f"{one.kind}, " * (title != one.kind) + one.type]
    words += [cost_words(view.kernel_costs[one.index]), origin(one)]
    inside = "".join(
        # A number in the Python code is in the equation's text; it did not appear.
        f'<div class="ja-i" data-e="{_numbers(line.equations)}"><b>'
        f"{_numbers(line.equations) or '+' * (line.opcode != 'constant')}</b>"
        f"<code>{escape(line.text)}</code></div>"
        for line in one.instructions
    )
    if is_large:
        inside = '<p class="ja-none">Too many instructions to show.</p>'
    depth = f' style="--d:{len(one.where)}"' if one.where else ""
    return (
        f'<details class="ja-k"{" open" if is_open else ""}{depth}>'
        f'<summary data-e="{_numbers(one.members)}" '
        f'data-k="k{one.index}"><b>k{one.index}</b> <code>{escape(title)}</code> '
        f"<i>{escape('; '.join(words))}</i></summary>{inside}</details>"
    )
