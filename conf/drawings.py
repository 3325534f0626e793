"""Drawings of ideas, as inline SVG in the page's colors, with parts that can be lit.

On a page::

    ```{drawing} call
    :lit: trace jaxpr
    A caption, in Markdown.
    ```

`call` is a name in `DRAWINGS`, and `:lit:` names boxes of it; without the option no box
is lit. To add a drawing, add an entry there: boxes with a name, the left top corner,
the width, a title and one or two lines below it, and arrows between points. A drawing
is 400 wide, so that its text can be read on a phone, and as high as it needs. What a
screen reader says is made of its texts, in the order of the boxes. The attributes give
the colors of the light theme, for an EPUB; `drawings.css` replaces them by the page's.
"""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from executed_book.figures import CYCLE, GRID, INK, MUTED

WIDTH = 400
Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """A box: its name, its left top corner, its width, its title, the lines below."""

    name: str
    at: Point
    width: float
    title: str
    lines: tuple[str, ...] = ()
    code: bool = False

    @property
    def height(self) -> float:
        return 32 + 18 * len(self.lines)


@dataclass(frozen=True)
class Arrow:
    """An arrow through some points, with a word that begins at a place beside it."""

    points: tuple[Point, ...]
    label: str = ""
    label_at: Point = (0, 0)
    dashed: bool = False


@dataclass(frozen=True)
class Drawing:
    """What a drawing is about, in one sentence; its height, boxes and arrows."""

    about: str
    height: float
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...] = ()


DRAWINGS = {
    "call": Drawing(
        "The way of a call of a function under jit.",
        396,
        (
            Box("call", (100, 2), 200, "fast(x)", code=True),
            Box(
                "cache",
                (40, 66),
                320,
                "cache",
                ("was there a call with such arguments before?",),
            ),
            Box("trace", (2, 158), 230, "trace", ("Python runs with tracers",)),
            Box("jaxpr", (2, 230), 230, "jaxpr", ("the operations they met",)),
            Box("compile", (2, 302), 230, "compile", ("XLA makes an executable",)),
            Box("run", (264, 302), 134, "run", ("the executable",)),
        ),
        (
            Arrow(((200, 34), (200, 66))),
            Arrow(((117, 116), (117, 158)), "no: a miss", (10, 142)),
            Arrow(((117, 208), (117, 230))),
            Arrow(((117, 280), (117, 302))),
            Arrow(((232, 327), (264, 327))),
            Arrow(((331, 116), (331, 302)), "yes: a hit", (262, 142)),
            Arrow(((331, 352), (331, 382)), "the result", (254, 380)),
            Arrow(
                ((200, 302), (200, 290), (248, 290), (248, 116)),
                "cached",
                (252, 222),
                dashed=True,
            ),
        ),
    ),
    "reverse": Drawing(
        "A gradient in reverse mode: forward through three operations, and back.",
        278,
        (
            Box("argument", (2, 2), 166, "angle", code=True),
            Box("double", (2, 70), 166, "a = 2 * angle", code=True),
            Box("sine", (2, 138), 166, "b = sin(a)", code=True),
            Box("result", (2, 206), 166, "c = 40 * b", code=True),
            Box("one", (232, 206), 166, "1", ("dc / dc",)),
            Box("back-result", (232, 138), 166, "times 40", ("dc / db",)),
            Box("back-sine", (232, 70), 166, "times cos(a)", ("dc / da",)),
            Box("gradient", (232, 2), 166, "times 2", ("dc / d angle",)),
        ),
        (
            Arrow(((85, 34), (85, 70))),
            Arrow(((85, 102), (85, 138))),
            Arrow(((85, 170), (85, 206))),
            Arrow(((168, 222), (232, 222))),
            Arrow(((315, 206), (315, 188))),
            Arrow(((315, 138), (315, 120))),
            Arrow(((315, 70), (315, 52))),
            Arrow(((168, 90), (232, 90)), "a, kept", (177, 83), dashed=True),
        ),
    ),
    "keys": Drawing(
        "Two trees of keys: a wide one, whose steps are children of one key, and a deep"
        " one, a chain of splits.",
        382,
        (
            Box("root", (155, 2), 90, "root"),
            Box("weights", (2, 84), 110, "weights"),
            Box("order", (145, 84), 110, "order"),
            Box("train", (288, 84), 110, "train"),
            Box("step-0", (100, 166), 90, "step 0"),
            Box("step-1", (204, 166), 90, "step 1"),
            Box("step-n", (308, 166), 90, "step n"),
            Box("chain", (2, 264), 96, "train"),
            Box("key-1", (144, 264), 96, "key", code=True),
            Box("key-2", (286, 264), 96, "key", code=True),
            Box("link-0", (2, 346), 96, "step 0"),
            Box("link-1", (144, 346), 96, "step 1"),
            Box("link-2", (286, 346), 96, "step 2"),
        ),
        (
            Arrow(((185, 34), (65, 84)), "split", (75, 54)),
            Arrow(((200, 34), (200, 84))),
            Arrow(((215, 34), (335, 84))),
            Arrow(((325, 116), (153, 166)), "fold_in", (170, 138)),
            Arrow(((335, 116), (255, 166))),
            Arrow(((345, 116), (353, 166))),
            Arrow(((98, 280), (144, 280)), "deep: split after split", (2, 252)),
            Arrow(((240, 280), (286, 280))),
            Arrow(((382, 280), (398, 280)), dashed=True),
            Arrow(((50, 296), (50, 346)), "split", (58, 325)),
            Arrow(((192, 296), (192, 346)), "split", (200, 325)),
            Arrow(((334, 296), (334, 346)), "split", (342, 325)),
        ),
    ),
    "scan": Drawing(
        "A scan as a machine: one turn takes the carry and one input, and gives the"
        " next carry and one output.",
        296,
        (
            Box("carry", (2, 96), 92, "carry", ("the ball",)),
            Box("input", (120, 2), 160, "one input", ("a kick",)),
            Box("body", (120, 96), 160, "turn", ("traced once",), code=True),
            Box("next", (306, 96), 92, "carry", ("moved on",)),
            Box("output", (120, 190), 160, "one output", ("a height, stacked",)),
        ),
        (
            Arrow(((94, 121), (120, 121))),
            Arrow(((200, 52), (200, 96))),
            Arrow(((280, 121), (306, 121))),
            Arrow(((200, 146), (200, 190))),
            Arrow(
                ((352, 146), (352, 268), (48, 268), (48, 146)),
                "again, for the next input",
                (126, 288),
                dashed=True,
            ),
        ),
    ),
    "tree": Drawing(
        "A pytree taken apart: a dict with two entries, of which cup is a dict again,"
        " becomes a list of leaves and a structure.",
        304,
        (
            Box("root", (150, 2), 100, "params", code=True),
            Box("cup", (70, 80), 120, "cup", ("a dict",), code=True),
            Box("room", (284, 80), 114, "room", ("a leaf",), code=True),
            Box("gap", (2, 166), 114, "gap", ("a leaf",), code=True),
            Box("rate", (144, 166), 114, "rate", ("a leaf",), code=True),
            Box("leaves", (2, 252), 236, "leaves", ("[gap, rate, room]",)),
            Box("structure", (256, 252), 142, "structure", ("where each was",)),
        ),
        (
            Arrow(((185, 34), (140, 80))),
            Arrow(((215, 34), (320, 80))),
            Arrow(((115, 130), (70, 166))),
            Arrow(((145, 130), (190, 166))),
            Arrow(((59, 216), (59, 252))),
            Arrow(((201, 216), (201, 252))),
            Arrow(((325, 130), (325, 234), (225, 234), (225, 252))),
        ),
    ),
    "training": Drawing(
        "One step of training. Params and opt_state go in and come out; the batch is"
        " new.",
        348,
        (
            Box("params", (2, 2), 118, "params", code=True),
            Box("batch", (141, 2), 118, "batch", code=True),
            Box("opt_state", (280, 2), 118, "opt_state", code=True),
            Box("grads", (62, 84), 198, "value_and_grad", ("gives grads",), code=True),
            Box(
                "updates",
                (186, 176),
                212,
                "optimizer.update",
                ("makes updates of them",),
                code=True,
            ),
            Box(
                "apply",
                (2, 256),
                212,
                "apply_updates",
                ("adds them to params",),
                code=True,
            ),
        ),
        (
            Arrow(((95, 34), (95, 84))),
            Arrow(((200, 34), (200, 84))),
            Arrow(((30, 34), (30, 256))),
            Arrow(((220, 134), (220, 176)), "grads", (172, 160)),
            Arrow(((339, 34), (339, 176))),
            Arrow(((200, 226), (200, 256)), "updates", (138, 246)),
            Arrow(((108, 306), (108, 340)), "new params", (116, 330)),
            Arrow(((360, 226), (360, 340)), "new opt_state", (264, 330)),
        ),
    ),
    "timeline": Drawing(
        "A call over time, from left to right. Python hands out the work and goes on,"
        " and waits only in block_until_ready, until the device is done.",
        156,
        (
            Box("call", (2, 22), 62, "call"),
            Box("python", (68, 22), 132, "Python"),
            Box("wait", (204, 22), 194, "block_until_ready", code=True),
            Box("device", (48, 112), 336, "the device works"),
        ),
        (
            Arrow(((34, 54), (54, 112)), "time", (2, 14)),
            Arrow(((378, 112), (390, 54)), "the result is there", (262, 98)),
        ),
    ),
    "blocks": Drawing(
        "Two devices: the images are divided, the parameters are copied, and the logits"
        " are divided like the images.",
        262,
        (
            Box("images", (50, 2), 300, "1500 images"),
            Box(
                "device-0",
                (2, 90),
                190,
                "device 0",
                ("images 0 to 749", "all parameters"),
            ),
            Box(
                "device-1",
                (208, 90),
                190,
                "device 1",
                ("images 750 to 1499", "all parameters"),
            ),
            Box("result", (50, 214), 300, "logits of 1500 images"),
        ),
        (
            Arrow(((120, 34), (100, 90))),
            Arrow(((280, 34), (300, 90))),
            Arrow(((100, 158), (120, 214))),
            Arrow(((300, 158), (280, 214))),
        ),
    ),
    "tracers": Drawing(
        "What the multiplication x * x meets under three transformations.",
        234,
        (
            Box(
                "jit",
                (2, 2),
                396,
                "jit: x has a type, but no value",
                ("x * x adds a line to the jaxpr",),
            ),
            Box(
                "grad",
                (2, 74),
                396,
                "grad: x is 3.0",
                ("x * x is 9.0,", "and 3.0 is kept for the way back"),
            ),
            Box(
                "vmap",
                (2, 164),
                396,
                "vmap: x is one of [1.0, 2.0, 3.0]",
                ("x * x is [1.0, 4.0, 9.0]", "in one operation for all three"),
            ),
        ),
    ),
}


def svg(drawing: Drawing, lit: frozenset[str] = frozenset()) -> str:
    """The drawing as SVG, with some of its boxes lit.

    Raises:
        ValueError: it has no box of such a name.
    """
    names = {box.name for box in drawing.boxes}
    if unknown := lit - names:
        raise ValueError(f"no box {sorted(unknown)}; there are {sorted(names)}")
    parts = [_arrow(arrow) for arrow in drawing.arrows]
    parts += [_box(box, box.name in lit) for box in drawing.boxes]
    said = html.escape(described(drawing, lit), quote=True)
    return (
        f'<svg class="drawing" role="img" aria-label="{said}"'
        f' viewBox="0 0 {WIDTH} {drawing.height:g}"'
        f' xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


def described(drawing: Drawing, lit: frozenset[str] = frozenset()) -> str:
    """The drawing in words, for who does not see it."""
    boxes = [
        ": ".join(filter(None, (b.title, " ".join(b.lines)))) for b in drawing.boxes
    ]
    titles = [box.title for box in drawing.boxes if box.name in lit]
    marked = f" Marked here: {', '.join(titles)}." if titles else ""
    return f"{drawing.about} {'; '.join(boxes)}.{marked}"


def _box(box: Box, lit: bool) -> str:
    x, y = box.at
    middle = x + box.width / 2
    fill, edge, weight = ("#e2efec", CYCLE[0], 2.5) if lit else ("#f5f3ed", GRID, 1.5)
    shown = "monospace" if box.code else "sans-serif"
    texts = [_text(box.title, (middle, y + 22), INK, f'class="title {shown}"')]
    texts += [
        _text(line, (middle, y + 41 + 18 * nth), MUTED, 'class="line"')
        for nth, line in enumerate(box.lines)
    ]
    return (
        f'<g class="box{" lit" * lit}"><rect x="{x:g}" y="{y:g}" rx="5"'
        f' width="{box.width:g}" height="{box.height:g}" fill="{fill}"'
        f' stroke="{edge}" stroke-width="{weight:g}"></rect>{"".join(texts)}</g>'
    )


def _text(text: str, at: Point, color: str, more: str, anchor: str = "middle") -> str:
    size = 15 if "title" in more else 13
    return (
        f'<text x="{at[0]:g}" y="{at[1]:g}" text-anchor="{anchor}" fill="{color}"'
        f' font-size="{size}" {more}>{html.escape(text)}</text>'
    )


def _arrow(arrow: Arrow) -> str:
    (x0, y0), (x, y) = arrow.points[-2:]
    turn = math.degrees(math.atan2(y - y0, x - x0))
    line = " ".join(f"{px:g},{py:g}" for px, py in arrow.points)
    dashes = ' stroke-dasharray="4 4"' if arrow.dashed else ""
    label = _text(arrow.label, arrow.label_at, MUTED, 'class="line"', "start")
    return (
        f'<g class="arrow"><polyline points="{line}" fill="none" stroke="{MUTED}"'
        f' stroke-width="1.5"{dashes}></polyline><path d="M0 0L-9 4.5V-4.5Z"'
        f' transform="translate({x:g} {y:g}) rotate({turn:g})" fill="{MUTED}"></path>'
        f"{label if arrow.label else ''}</g>"
    )


class DrawingDirective(SphinxDirective):
    """Puts a drawing into the page, and its caption below it."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"lit": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        name, lit = self.arguments[0], self.options.get("lit", "").split()
        if name not in DRAWINGS:
            raise self.error(f"no drawing {name!r}; there are {sorted(DRAWINGS)}")
        try:
            drawn = svg(DRAWINGS[name], frozenset(lit))
        except ValueError as error:
            raise self.error(str(error)) from None
        holder = nodes.container("", nodes.raw("", drawn, format="html"))
        holder["classes"].append("drawing-holder")
        holder += self.parse_content_to_nodes()
        return [holder]


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("drawing", DrawingDirective)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
