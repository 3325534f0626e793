"""The lens as static HTML: no server, no network, readable without JavaScript."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from ._model import Equation, Instruction, Kernel, Source
from ._text import (
    INFERRED,
    compile_time,
    cost_words,
    fate,
    kernel_title,
    summary,
    tree,
)

if TYPE_CHECKING:
    from . import Lens

# Columns longer than this are folded; the first lines stay in sight.
_HEAD, _CHUNK, _OPEN_KERNELS, _SOURCE_LINES = 60, 100, 6, 80

# Beside an equation there is room for one word; the rest is below the kernels.
_LABELS = {"unused": "unused", "gone": "gone", "folded": "folded", "unknown": "?"}

# A lens of more instructions than this is shown without those in its kernels.
_MOST_INSTRUCTIONS = 1500


def asset(name: str) -> str:
    """Read the style sheet or the script that travels with each lens."""
    return (files(__package__) / name).read_text(encoding="utf-8")


def fragment(view: Lens) -> str:
    """Write a lens for a notebook or a page, with its style and script."""
    style, script = asset("lens.css"), asset("lens.js")
    return f"<style>{style}</style>{body(view)}<script>{script}</script>"


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


def body(view: Lens) -> str:
    """Write the summary and the three columns."""
    columns = "".join(
        (
            column("source", "Python source", source(view)),
            column("jaxpr", "jaxpr", jaxpr(view)),
            column("hlo", "optimized HLO", hlo(view)),
        )
    )
    # The same lens gets the same name in each run: no counter, no clock.
    mark = hashlib.sha256(columns.encode()).hexdigest()[:10]
    notes = "".join(f'<p class="ja-note">{escape(note)}</p>' for note in view.notes)
    return (
        f'<div class="ja-lens" data-lens="{mark}" role="group" '
        f'aria-label="lens of {escape(view.name)}">'
        f"{top(view)}{notes}"
        f'<div class="ja-columns">{columns}</div>'
        f'<p class="ja-status" role="status" aria-live="polite"></p></div>'
    )


def top(view: Lens) -> str:
    """Write the summary line."""
    parts = [f"<span>{escape(part)}</span>" for part in summary(view)]
    parts.append(
        f'<span>compiled in <span class="measured">{compile_time(view.costs)}</span>'
        f" on {escape(view.platform)}</span>"
    )
    return f'<p class="ja-summary"><b>{escape(view.name)}</b> {" ".join(parts)}</p>'


def column(kind: str, title: str, content: str) -> str:
    """Write one column: a caption and a pane that scrolls and takes the focus."""
    return (
        f'<div class="ja-column ja-{kind}"><div class="ja-caption">{title}</div>'
        f'<div class="ja-pane" tabindex="0" role="group" aria-label="{title}">'
        f"{content}</div></div>"
    )


def numbers(indices: Iterable[int]) -> str:
    """Write indices for a ``data-`` attribute."""
    return " ".join(map(str, indices))


def families(equations: tuple[Equation, ...]) -> dict[int, list[int]]:
    """Map each equation to itself and all that it holds."""
    family: dict[int, list[int]] = defaultdict(list)
    for eqn in equations:
        ancestor: int | None = eqn.index
        while ancestor is not None:
            family[ancestor].append(eqn.index)
            ancestor = equations[ancestor].parent
    return family


def reach(own: Iterable[int], family: dict[int, list[int]]) -> str:
    """Write ``data-e`` (what a piece is) and ``data-t`` (what it lights up)."""
    mine = sorted(own)
    lit = sorted({i for one in mine for i in family[one]})
    more = f' data-t="{numbers(lit)}"' if lit != mine else ""
    return f'data-e="{numbers(mine)}"{more}'


# --- source ---------------------------------------------------------------------


def source(view: Lens) -> str:
    """Write each function's source, expressions marked."""
    family = families(view.equations)
    if not view.source:
        return '<p class="ja-none">No source to show.</p>'
    return "".join(piece(one, view, family) for one in view.source)


def piece(one: Source, view: Lens, family: dict[int, list[int]]) -> str:
    """Write one function: a title, and its text with nested marks."""
    spans = [
        (*one.offsets(link.span), link.equations)
        for link in view.links
        if link.span is not None and one.holds(link.span)
    ]
    text = marked(one.text, spans, family)
    code = f"<pre><code>{text}</code></pre>"
    title = f"{escape(one.file)}, line {one.line}"
    if one.text.count("\n") > _SOURCE_LINES:
        return f"<details><summary>{title}</summary>{code}</details>"
    return f'<div class="ja-file">{title}</div>{code}'


def marked(
    text: str,
    spans: list[tuple[int, int, tuple[int, ...]]],
    family: dict[int, list[int]],
) -> str:
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
        end = min([end, *ends[-1:]])
        out.append(escape(text[place:start]))
        out.append(f'<span class="ja-x" {reach(own, family)}>')
        place = start
        ends.append(end)
    close(len(text))
    return "".join(out) + escape(text[place:])


# --- jaxpr ----------------------------------------------------------------------


def jaxpr(view: Lens) -> str:
    """Write the equations, folded where there are many."""
    family = families(view.equations)
    lines = [
        region(*item) if isinstance(item, tuple) else equation(item, family)
        for item in tree(view.equations)
    ]
    first = f'<div class="ja-io">in {escape(view.inputs) or "nothing"}</div>'
    if view.constants:
        first += f'<div class="ja-io">const {escape(view.constants)}</div>'
    last = f'<div class="ja-io">out {escape(view.results)}</div>'
    return first + folded(lines, "lines") + last


def region(depth: int, header: str) -> str:
    """Write the first line of an inner jaxpr."""
    return f'<div class="ja-io" style="--d:{depth}">{escape(header)}</div>'


def equation(eqn: Equation, family: dict[int, list[int]]) -> str:
    """Write one equation: number, text, and the kernels or the fate."""
    depth = f' style="--d:{eqn.depth}"' if eqn.depth else ""
    is_gone = " ja-gone" if eqn.gone else ""
    words = escape(fate(eqn))
    label = _LABELS.get(eqn.fate, words)
    text = escape(eqn.text).replace(" = ", ' <i class="ja-eq">=</i> ', 1)
    return (
        f'<div class="ja-q{is_gone}" {reach([eqn.index], family)} '
        f'data-p="{escape(eqn.primitive)}" data-f="{words}"{depth}>'
        f"<b>{eqn.index}</b><code>{text}</code>"
        f"{f'<i>{label}</i>' if label else ''}</div>"
    )


def folded(lines: list[str], noun: str) -> str:
    """Show the first lines, and the rest in parts to open."""
    out = lines[:_HEAD] if len(lines) > _HEAD + 10 else lines
    parts = ["".join(out)]
    for start in range(len(out), len(lines), _CHUNK):
        chunk = lines[start : start + _CHUNK]
        label = f"{noun} {start + 1} to {start + len(chunk)} of {len(lines)}"
        parts.append(
            f'<details class="ja-fold"><summary>{label}</summary>'
            f"{''.join(chunk)}</details>"
        )
    return "".join(parts)


# --- HLO ------------------------------------------------------------------------


def hlo(view: Lens) -> str:
    """Write the kernels with their instructions."""
    is_open = len(view.kernels) <= _OPEN_KERNELS
    is_large = sum(len(one.instructions) for one in view.kernels) > _MOST_INSTRUCTIONS
    lines: list[str] = []
    where: tuple[str, ...] = ()
    for one in view.kernels:
        if one.where != where:
            where = one.where
            label = escape(" \N{RIGHTWARDS ARROW} ".join(where) or "after the loop")
            lines.append(f'<div class="ja-io" style="--d:{len(where)}">{label}</div>')
        lines.append(kernel(one, view, is_open, is_large))
    if not view.kernels:
        lines.append('<p class="ja-none">No kernel: nothing is left to compute.</p>')
    if any(one.inferred for one in view.kernels):
        lines.append(f'<p class="ja-none">{escape(INFERRED)}</p>')
    return folded(lines, "rows")


def kernel(one: Kernel, view: Lens, is_open: bool, is_large: bool) -> str:
    """Write a kernel: its title, to open, and the instructions in it."""
    title = kernel_title(one, view.equations)
    kind = "" if title == one.kind else f"{one.kind}, "
    words = (
        f"{kind}{one.type}; {cost_words(view.kernel_costs[one.index])}; {origin(one)}"
    )
    inside = "".join(map(instruction, one.instructions))
    if is_large:
        inside = '<p class="ja-none">The text of the program, .hlo, has them.</p>'
    depth = f' style="--d:{len(one.where)}"' if one.where else ""
    return (
        f'<details class="ja-k"{" open" if is_open else ""}{depth}>'
        f'<summary data-e="{numbers(one.members)}" '
        f'data-k="k{one.index}"><b>k{one.index}</b> <code>{escape(title)}</code> '
        f"<i>{escape(words)}</i></summary>{inside}</details>"
    )


def origin(one: Kernel) -> str:
    """Say which equations a kernel came from, and how that is known."""
    if one.appeared:
        return "appeared: added by XLA"
    marked = [f"{'~' * (i in one.inferred)}{i}" for i in one.members]
    return f"from {listed(marked)}" if marked else "from which equation: cannot tell"


def listed(names: list[str]) -> str:
    """Write up to twelve names."""
    more = ", \N{HORIZONTAL ELLIPSIS}" if len(names) > 12 else ""
    return ", ".join(names[:12]) + more


def instruction(one: Instruction) -> str:
    """Write one HLO instruction with the number of its equation."""
    own = numbers(one.equations)
    # A number in the Python code is in the equation's text; it did not appear.
    mark = own or ("" if one.opcode == "constant" else "+")
    return (
        f'<div class="ja-i" data-e="{own}"><b>{mark}</b>'
        f"<code>{escape(one.text)}</code></div>"
    )
