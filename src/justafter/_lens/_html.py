"""The lens as static HTML: no server, no network, readable without JavaScript."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from ._model import Equation, Kernel
from ._text import (
    INFERRED,
    compile_time,
    cost_words,
    equations,
    fate,
    kernel_title,
    kernels,
    origin,
    summary,
)

if TYPE_CHECKING:
    from . import Lens

# Kernels are open where there are this many or fewer.
_OPEN_KERNELS = 6
# Beside an equation there is room for one word; the rest is below the kernels.
_LABELS = {"unused": "unused", "gone": "gone", "folded": "folded", "unknown": "?"}
# A lens of more instructions than this is shown without those in its kernels.
_MOST_INSTRUCTIONS = 1500

# For each equation, itself and all that it holds.
_Family = dict[int, list[int]]


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
    family: _Family = defaultdict(list)
    for eqn in view.equations:
        ancestor: int | None = eqn.index
        while ancestor is not None:
            family[ancestor].append(eqn.index)
            ancestor = view.equations[ancestor].parent
    columns = "".join(
        f'<div class="ja-column ja-{kind}"><div class="ja-caption">{title}</div>'
        f'<div class="ja-pane" tabindex="0" role="group" aria-label="{title}">'
        f"{content}</div></div>"
        for kind, title, content in (
            ("source", "Python source", _source(view, family)),
            ("jaxpr", "jaxpr", _jaxpr(view, family)),
            ("hlo", "optimized HLO", _hlo(view)),
        )
    )
    # The same lens gets the same name in each run: no counter, no clock.
    mark, name = hashlib.sha256(columns.encode()).hexdigest()[:10], escape(view.name)
    parts = " ".join(f"<span>{escape(part)}</span>" for part in summary(view))
    notes = "".join(f'<p class="ja-note">{escape(note)}</p>' for note in view.notes)
    return (
        f'<div class="ja-lens" data-lens="{mark}" role="group" '
        f'aria-label="lens of {name}">'
        f'<p class="ja-summary"><b>{name}</b> {parts} <span>compiled in '
        f'<span class="measured">{compile_time(view.costs)}</span>'
        f" on {escape(view.platform)}</span></p>{notes}"
        f'<div class="ja-columns">{columns}</div>'
        '<p class="ja-status" role="status" aria-live="polite"></p></div>'
    )


def _numbers(indices: Iterable[int]) -> str:
    return " ".join(map(str, indices))


def _reach(own: Iterable[int], family: _Family) -> str:
    """Write ``data-e`` (what a piece is) and ``data-t`` (what it lights up)."""
    mine = sorted(own)
    lit = sorted({i for one in mine for i in family[one]})
    more = f' data-t="{_numbers(lit)}"' if lit != mine else ""
    return f'data-e="{_numbers(mine)}"{more}'


def _header(depth: int, text: str) -> str:
    """Write what an inner jaxpr, a loop or the whole gets or is."""
    style = f' style="--d:{depth}"' if depth else ""
    return f'<div class="ja-io"{style}>{escape(text)}</div>'


def _source(view: Lens, family: _Family) -> str:
    """Write each function's source, expressions marked."""
    shown = ""
    for one in view.source:
        spans = [
            (*one.offsets(link.span), link.equations)
            for link in view.links
            if link.span is not None and one.holds(link.span)
        ]
        shown += f'<div class="ja-file">{escape(one.file)}, line {one.line}</div>'
        shown += f"<pre><code>{nested(one.text, spans, family)}</code></pre>"
    return shown or '<p class="ja-none">No source to show.</p>'


def nested(
    text: str, spans: list[tuple[int, int, tuple[int, ...]]], family: _Family
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
        out.append(escape(text[place:start]))
        out.append(f'<span class="ja-x" {_reach(own, family)}>')
        place = start
        ends.append(min([end, *ends[-1:]]))
    close(len(text))
    return "".join(out) + escape(text[place:])


def _jaxpr(view: Lens, family: _Family) -> str:
    """Write the equations."""
    lines = [
        _header(*item) if isinstance(item, tuple) else _equation(item, view, family)
        for item in equations(view)
    ]
    first = _header(0, f"in {view.inputs or 'nothing'}")
    if view.constants:
        first += _header(0, f"const {view.constants}")
    return first + "".join(lines) + _header(0, f"out {view.results}")


def _equation(eqn: Equation, view: Lens, family: _Family) -> str:
    """Write one equation: number, text, and the kernels or the fate."""
    depth = f' style="--d:{eqn.depth}"' if eqn.depth else ""
    words = escape(fate(eqn, view))
    label = _LABELS.get(eqn.fate, words)
    text = escape(eqn.text).replace(" = ", ' <i class="ja-eq">=</i> ', 1)
    return (
        f'<div class="ja-q{" ja-gone" * eqn.gone}" {_reach([eqn.index], family)} '
        f'data-p="{escape(eqn.primitive)}" data-f="{words}"{depth}>'
        f"<b>{eqn.index}</b><code>{text}</code>"
        f"{f'<i>{label}</i>' if label else ''}</div>"
    )


def _hlo(view: Lens) -> str:
    """Write the kernels with their instructions."""
    lines = [
        _header(*item) if isinstance(item, tuple) else _kernel(item, view)
        for item in kernels(view)
    ]
    if not view.kernels:
        lines.append('<p class="ja-none">No kernel: nothing is left to compute.</p>')
    if any(one.inferred for one in view.kernels):
        lines.append(f'<p class="ja-none">{escape(INFERRED)}</p>')
    return "".join(lines)


def _kernel(one: Kernel, view: Lens) -> str:
    """Write a kernel: its title, to open, and the instructions in it."""
    is_open = len(view.kernels) <= _OPEN_KERNELS
    is_large = sum(len(k.instructions) for k in view.kernels) > _MOST_INSTRUCTIONS
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
