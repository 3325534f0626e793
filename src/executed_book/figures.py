"""How the book's figures look: one style, and its twin for the dark theme.

A chapter draws each figure once, in matplotlib's default colors. The build draws it
with `light_style` and computes the other file from the finished SVG with `dark_twin`,
so that the two can never show different data.
"""

import re

#: Those of Matplotlib's rcParams that JSON can express.
Style = dict[str, str | float | bool | tuple[float, float] | None]

INK, MUTED, GRID = "#1c2328", "#566067", "#dedbd2"

CYCLE = ("#0b6e69", "#c4740e", "#24408e", "#7d1537", "#8a5238", "#8195a8")
"""Teal, amber, indigo, wine, rust, steel: told apart with any common color vision."""

DARK = {
    INK: "#e6e9ea",
    MUTED: "#9fabb2",
    GRID: "#333d43",
    CYCLE[0]: "#5fd0c5",
    CYCLE[1]: "#f2b25c",
    CYCLE[2]: "#929ee6",
    CYCLE[3]: "#e83a64",
    CYCLE[4]: "#c25a2e",
    CYCLE[5]: "#6f8797",
    # Asked for by name in a chapter, black would vanish into a dark page.
    "#000000": "#e6e9ea",
}
"""Each color of the light theme, with the color that replaces it in the dark."""

_COLOR = re.compile(r"#[0-9a-f]{6}\b", re.IGNORECASE)
_ROOT = re.compile(r"<svg\b")


def light_style() -> Style:
    """Return matplotlib's rcParams for a figure on the light theme.

    The background is transparent. Text is drawn as paths, so that a figure looks the
    same whatever fonts the reader has, and identifiers are salted with a constant, so
    that the same figure is the same file in each build.

    >>> light_style()["figure.facecolor"]
    'none'
    """
    return {
        "axes.axisbelow": True,
        "axes.edgecolor": MUTED,
        "axes.facecolor": "none",
        "axes.grid": True,
        "axes.labelcolor": INK,
        "axes.labelpad": 6.0,
        # As a string: importing cycler here would need matplotlib installed.
        "axes.prop_cycle": f"cycler('color', {list(CYCLE)})",
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlelocation": "left",
        "axes.titlepad": 10.0,
        "axes.titlesize": 11.0,
        "axes.titleweight": "bold",
        "figure.constrained_layout.use": True,
        "figure.facecolor": "none",
        "figure.figsize": (6.0, 3.0),
        "font.family": "DejaVu Sans",
        "font.size": 10.0,
        "grid.color": GRID,
        "grid.linewidth": 0.7,
        "legend.frameon": False,
        "lines.linewidth": 2.0,
        "lines.markersize": 5.0,
        "patch.edgecolor": MUTED,
        "savefig.bbox": None,
        "savefig.facecolor": "none",
        "svg.fonttype": "path",
        "svg.hashsalt": "just after execution",
        "text.color": INK,
        "xtick.color": MUTED,
        "xtick.labelcolor": INK,
        "ytick.color": MUTED,
        "ytick.labelcolor": INK,
    }


def dark_twin(svg: str) -> str:
    """Return an SVG drawn in `light_style` recolored for the dark theme.

    Only the style's own colors and black change. A color that a colormap or a chapter
    chose stays, and so does what is embedded as a bitmap.

    >>> dark_twin('<svg><path style="stroke: #0b6e69"/></svg>')
    '<svg fill="#e6e9ea"><path style="stroke: #5fd0c5"/></svg>'
    """
    recolored = _COLOR.sub(lambda hit: DARK.get(hit[0].lower(), hit[0]), svg)
    # Matplotlib leaves a black fill unsaid, since SVG fills with black by default.
    return _ROOT.sub(f'<svg fill="{DARK[INK]}"', recolored, count=1)
