"""Tables of results: aligned text for a terminal, HTML for notebooks and pages."""

from __future__ import annotations

import html
from collections.abc import Collection, Sequence
from typing import ClassVar

Row = tuple[str, ...]


class Shown:
    """A result that shows as a table, by what `_parts` gives."""

    __slots__ = ()
    # The columns whose text begins at the left.
    _to_left: ClassVar[frozenset[int]] = frozenset({0})

    def _parts(self) -> tuple[str, list[Row], list[str]]:
        """A title, the rows with their head, and the lines below them."""
        raise NotImplementedError

    def _fixed(self, head: Row) -> Sequence[int]:
        """The columns that are the same in each run."""
        return ()

    def __repr__(self) -> str:
        title, rows, below = self._parts()
        return "\n".join(
            [*[title] * bool(title), *aligned(rows, self._to_left), *below]
        )

    def _repr_html_(self) -> str:
        title, rows, below = self._parts()
        if not rows:
            return f"<p>{html.escape(title)}</p>"
        fixed = self._fixed(rows[0])
        show = html.escape if fixed else measured
        lines = show("\n".join(below))
        foot = f"<pre>{lines}</pre>" if below else ""
        return as_html(title, rows, foot, fixed)


def aligned(rows: Sequence[Row], to_left: Collection[int]) -> list[str]:
    """Lines of aligned columns, those of `to_left` at the left."""
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = (
            cell.ljust(width) if i in to_left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, wide, strict=True))
        )
        lines.append("  ".join(cells).rstrip())
    return lines


_STYLE = """<style>
.ja-table{--ja-ink:#1f2328;--ja-soft:#59636e;--ja-line:#d1d9e0;
color:var(--ja-ink);font-size:.95em;max-width:100%;overflow-x:auto}
@media (prefers-color-scheme:dark){html:not([data-theme=light]) .ja-table{
--ja-ink:#e6edf3;--ja-soft:#9ea7b3;--ja-line:#3d444d}}
html[data-theme=dark] .ja-table{
--ja-ink:#e6edf3;--ja-soft:#9ea7b3;--ja-line:#3d444d}
.ja-table table{border-collapse:collapse;margin:0;width:auto;color:inherit}
.ja-table caption{text-align:left;color:inherit;font-weight:600;caption-side:top}
.ja-table th,.ja-table td{padding:.25em .8em;text-align:right;border:0;
border-bottom:1px solid var(--ja-line);background:none;color:inherit;
font-variant-numeric:tabular-nums;white-space:nowrap}
.ja-table th:first-child{text-align:left}
.ja-table :is(th,td):last-child{text-align:left;white-space:normal}
.ja-table :is(code,pre){background:none;border:0;padding:0;color:inherit}
.ja-table pre{color:var(--ja-soft);margin:.3em 0;white-space:pre-wrap}
</style>"""


def as_html(
    title: str, rows: Sequence[Row], below: str, fixed: Sequence[int] = ()
) -> str:
    """A table, the head first in `rows`, with HTML below it.

    What varies from run to run is in a ``<span class="measured">``: not the first
    column, nor those in `fixed`.
    """
    head, *body = rows
    caption = f"<caption><code>{html.escape(title)}</code></caption>" if title else ""
    top = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in head)
    lines = "".join(_row(row, fixed) for row in body)
    return (
        f'{_STYLE}<div class="ja-table"><table>{caption}<thead><tr>{top}</tr></thead>'
        f"<tbody>{lines}</tbody></table>{below}</div>"
    )


def _row(row: Row, fixed: Sequence[int]) -> str:
    cells = "".join(
        f"<td>{html.escape(cell) if i in fixed else measured(cell)}</td>"
        for i, cell in enumerate(row[1:], 1)
    )
    return f'<tr><th scope="row">{html.escape(row[0])}</th>{cells}</tr>'


def measured(text: str) -> str:
    """Text that varies from run to run, marked so."""
    return f'<span class="measured">{html.escape(text)}</span>' if text else ""
