"""The card that other sites show for a link to the book: 1200 by 630 pixels.

The build makes it. It shows the line that the lens on the landing page shows, with its
operations and one kernel.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sphinx.application import Sphinx

from executed_book.figures import CYCLE, GRID, INK, MUTED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, HEIGHT, DPI = 1200, 630, 100
PAPER = "#fdfcf9"
NAME = "card.png"

_STEPS = (
    ("You write", ("x * sigmoid(2 * x)",), 70, 330),
    ("JAX records", ("b = mul 2.0 a", "c = logistic b", "d = mul a c"), 480, 270),
    ("The device runs", ("one kernel",), 830, 300),
)


def card(title: str, lines: tuple[str, ...], version: str) -> Figure:
    """The card as a figure, whose units are pixels from the left top corner."""
    # A build without an address makes no card, and does not wait for Matplotlib.
    from matplotlib.figure import Figure
    from matplotlib.patches import Polygon

    figure = Figure(figsize=(WIDTH / DPI, HEIGHT / DPI), dpi=DPI, facecolor=PAPER)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDTH), ylim=(HEIGHT, 0))
    axes.axis("off")
    teal, amber = CYCLE[0], CYCLE[1]
    axes.add_patch(Polygon([(70, 72), (70, 132), (122, 102)], color=teal))
    axes.plot([126, 150, 126], [76, 102, 128], color=amber, linewidth=7)
    serif = {"family": "serif", "weight": "bold"}
    axes.text(180, 122, title, color=INK, fontsize=44, **serif)
    for nth, line in enumerate(lines):
        axes.text(70, 205 + 44 * nth, line, color=MUTED, fontsize=22)
    for nth, (name, rows, left, width) in enumerate(_STEPS):
        _step(axes, name, rows, left, width, teal if nth == 2 else GRID)
        if nth:
            axes.annotate(
                "",
                (left - 12, 440),
                (left - 68, 440),
                arrowprops={"arrowstyle": "-|>", "color": MUTED, "linewidth": 2},
            )
    said = f"JAX {version}; the build executes what the pages show"
    axes.text(70, 588, said, color=MUTED, fontsize=15)
    return figure


def _step(
    axes: Any, name: str, rows: tuple[str, ...], left: float, width: float, edge: str
) -> None:
    from matplotlib.patches import FancyBboxPatch

    axes.text(left, 342, name, color=MUTED, fontsize=17, weight="bold")
    frame = FancyBboxPatch(
        (left, 362),
        width,
        156,
        boxstyle="round,pad=0,rounding_size=8",
        facecolor="#f5f3ed",
        edgecolor=edge,
        linewidth=2,
    )
    axes.add_patch(frame)
    begin = 446 - 21 * (len(rows) - 1)
    for nth, row in enumerate(rows):
        place = (left + 22, begin + 42 * nth)
        axes.text(*place, row, color=INK, fontsize=19, family="monospace")


def write(app: Sphinx, exception: Exception | None) -> None:
    """Write the card, where it is known at which address the book stands."""
    if exception is None and app.builder.name == "html" and app.config.html_baseurl:
        version = app.config.html_context["jax_version"]
        drawn = card(app.config.project, app.config.card_lines, version)
        drawn.savefig(Path(app.outdir, "_static", NAME), metadata={"Software": None})


def setup(app: Sphinx) -> dict[str, Any]:
    """Make the card when the site is finished."""
    app.add_config_value("card_lines", (), "html", (tuple,))
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
