"""The first picture of the book: what becomes of one line of Python, in three steps.

The directive takes what the three steps show as its content, so that a check on the
page can hold it: the line, a row for each operation with the piece of the line that it
comes from, and what the kernel does::

    ```{path-of-a-line}
    x * jax.nn.sigmoid(2 * x)
    b = mul 2.0 a | 2 * x
    c = logistic b | jax.nn.sigmoid(2 * x)
    d = mul a c | x * jax.nn.sigmoid(2 * x)
    reads x once, writes the result once
    ```

Pieces that belong together light up together: one after the other when the page opens,
and whenever one is pointed at. `landing.css` does both, without a script.
"""

from __future__ import annotations

import html
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def picture(lines: list[str]) -> str:
    """The picture as HTML.

    Raises:
        ValueError: a piece is not in the line, or holds no piece that came before it.
    """
    line, *rows, kernel = lines
    steps = [[part.strip() for part in row.split("|")] for row in rows]
    said = html.escape(
        f"One line of Python, {line}, becomes {len(rows)} operations and one kernel:"
        f" {', '.join(step[0] for step in steps)}. The kernel {kernel}.",
        quote=True,
    )
    equations = "".join(
        f'<li class="piece p{nth}"><code>{html.escape(equation)}</code></li>'
        for nth, (equation, _) in enumerate(steps)
    )
    stages = "".join(
        f'<span class="piece p{nth}">{html.escape(equation.split()[2])}</span>'
        for nth, (equation, _) in enumerate(steps)
    )
    return (
        f'<div class="room"><div class="line-path" role="img" aria-label="{said}">'
        f"<div><b>You write</b><pre>{_nested(line, [p for _, p in steps])}</pre></div>"
        f"{_ARROW.format('JAX traces')}"
        f"<div><b>JAX records</b><ol>{equations}</ol></div>"
        f"{_ARROW.format('XLA compiles')}"
        f'<div><b>The device runs</b><p class="kernel">{_ROW}<span>{stages}</span>'
        f"{_ROW}</p>"
        f"<p>One kernel: it {html.escape(kernel)}.</p></div></div></div>"
    )


_ARROW = '<span class="arrow"><i>{}</i></span>'

#: A row of numbers, which the kernel reads or writes.
_ROW = f'<span class="numbers">{"<i></i>" * 7}</span>'


def _nested(line: str, pieces: list[str]) -> str:
    """A line with each piece marked; each holds the one before it, or stands alone."""
    shown = html.escape(line)
    marked = ""
    for nth, piece in enumerate(pieces):
        text = html.escape(piece)
        inner = html.escape(pieces[nth - 1]) if nth else ""
        if inner and inner in text:
            text = text.replace(inner, marked, 1)
        marked = f'<span class="piece p{nth}">{text}</span>'
    if html.escape(pieces[-1]) not in shown:
        raise ValueError(f"{pieces[-1]!r} is no piece of {line!r}")
    return shown.replace(html.escape(pieces[-1]), marked, 1)


class PathOfALine(SphinxDirective):
    """Puts the picture into the page."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        try:
            drawn = picture([line for line in self.content if line.strip()])
        except ValueError as error:
            raise self.error(str(error)) from None
        return [nodes.raw("", drawn, format="html")]


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("path-of-a-line", PathOfALine)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
