"""What is done to a page's document once MyST-NB has read it."""

import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode, depart_HideCellInput, visit_HideCellInput
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.writers.html5 import HTML5Translator
from sphinx_design.shared import create_component

from ..checking.stored import slug
from ..figures import dark_twin


def _parts(node: nodes.Element, name: str) -> list[nodes.container]:
    """The parts of a page that MyST-NB calls by a name of its own."""
    containers = node.findall(nodes.container)
    return [part for part in containers if part.get("nb_element") == name]


def cells_of(document: nodes.document) -> list[nodes.container]:
    """The code cells of a page."""
    return _parts(document, "cell_code")


def part_of(cell: nodes.container, kind: str) -> nodes.container | None:
    """The first part of a cell that shows its "source" or an "output"; None without."""
    return next(iter(_parts(cell, f"cell_code_{kind}")), None)


# The transforms run in the order of their priorities: a figure has its twin before it
# moves into a tab, and a receipt comes between the code and the program that is there
# already. All run before Sphinx collects the images of a page (at 880).


class MarkedOutputs(SphinxTransform):
    """Keep what may differ from run to run out of the search index.

    That is the output of marked cells, HTML, which marks its own parts, and a word of
    ten thousand letters, whose stem takes minutes to find. And show errors as text.
    """

    default_priority = 210

    def apply(self, **kwargs: Any) -> None:
        for cell in cells_of(self.document):
            marked = {"tag_measured", "tag_device"} & set(cell["classes"])
            for output in _parts(cell, "cell_code_output"):
                is_long = re.search(r"\w{10000}", output.astext())
                if marked or is_long or any(output.findall(nodes.raw)):
                    output["classes"].append("no-search")
            for block in cell.findall(nodes.literal_block):
                if {"traceback", "stderr"} & set(block["classes"]):
                    has_color = "\x1b" in block.astext()
                    block["language"] = "myst-ansi" if has_color else "none"


def visit_folded(translator: HTML5Translator, node: HideCodeCellNode) -> None:
    """Open a folded cell, named for screen readers by what it shows, as on the screen.

    MyST-NB names each of them alike, "Toggle hidden content".
    """
    begin = len(translator.body)
    visit_HideCellInput(translator, node)
    opened = "".join(translator.body[begin:])
    named = re.sub(r'<summary aria-label="[^"]*">', "<summary>", opened)
    translator.body[begin:] = [named]


class DarkTwins(SphinxTransform):
    """Give every figure its twin for the dark theme."""

    default_priority = 211

    def apply(self, **kwargs: Any) -> None:
        if self.config.executed_book_figures != "themed":
            return
        for cell in cells_of(self.document):
            for image in list(cell.findall(nodes.image)):
                if image["uri"].endswith(".svg"):
                    self._add_twin(image)

    def _add_twin(self, image: nodes.image) -> None:
        uri = image["uri"]
        light = Path(self.env.srcdir, uri.lstrip("/"))
        dark = light.with_name(f"{light.stem}-dark.svg")
        dark.write_text(dark_twin(light.read_text("utf-8")), "utf-8")
        twin = image.deepcopy()
        twin["uri"] = uri.removesuffix(".svg") + "-dark.svg"
        image["classes"].append("only-light")
        twin["classes"].append("only-dark")
        assert image.parent is not None
        image.parent.insert(image.parent.index(image) + 1, twin)


class OneFigure(SphinxPostTransform):
    """An EPUB has one theme, the light one: there a figure has no twin."""

    builders = ("epub",)
    default_priority = 1

    def run(self, **kwargs: Any) -> None:
        for image in list(self.document.findall(nodes.image)):
            if "only-dark" in image["classes"] and image.parent is not None:
                image.parent.remove(image)


class ProgramBoxes(SphinxTransform):
    """Put below each cell's code the program that its second button copies."""

    default_priority = 212

    def apply(self, **kwargs: Any) -> None:
        for cell in cells_of(self.document):
            metadata = cell["cell_metadata"]
            source = part_of(cell, "source")
            if source is not None and metadata.get("program"):
                cell.insert(cell.index(source) + 1, _box(metadata["program"]))
            elif source is not None and "no-program" in metadata:
                text = f"No program: {metadata['no-program']}"
                reason = nodes.paragraph("", text, classes=["no-program"])
                cell.insert(cell.index(source) + 1, reason)


class RecordTabs(SphinxTransform):
    """Where a cell was recorded on other platforms, set their outputs side by side.

    The tabs are sphinx-design's: radio buttons, so they work by keyboard and without
    scripts; its script keeps the reader's choice from page to page.
    """

    default_priority = 213

    def apply(self, **kwargs: Any) -> None:
        home: nodes.container | None = None
        tabs: nodes.container | None = None
        for cell in cells_of(self.document):
            record = cell["cell_metadata"].get("record")
            if record is None:
                home, tabs = cell, None
                continue
            output = part_of(cell, "output")
            assert home is not None, "a record follows the cell that it is of"
            assert output is not None, "a record has an output"
            assert cell.parent is not None
            cell.parent.remove(cell)
            tabs = tabs or _set_aside(home, output)
            line = nodes.paragraph("", record["stamp"], classes=["record-stamp"])
            content = [*output.children, line]
            tabs += _tab(record["label"], content, version=record["version"])


def _set_aside(home: nodes.container, like: nodes.container) -> nodes.container:
    """Put a cell's own output into the first of several tabs; the set of tabs."""
    tabs = create_component("tab-set", classes=["sd-tab-set", "records"])
    own = part_of(home, "output")
    # The container stays where MyST-NB put it; what it shows moves into the first tab.
    shown = own.children if own is not None else ()
    tabs += _tab(home["cell_metadata"]["device"], shown)
    if own is None:
        own = like.deepcopy()
        home += own
    own.children = []
    own += tabs
    return tabs


def _tab(label: str, content: Sequence[nodes.Node], version: str = "") -> nodes.Node:
    """One output among the tabs; the choice is shared by all that have its label.

    `version` says what besides the device is another one than the page's.
    """
    title = f"{label}, {version}" if version else label
    heading = nodes.rubric(title, title, classes=["sd-tab-label"])
    heading["sync_group"], heading["sync_id"] = "platform", slug(label)
    inside = create_component("tab-content", ["sd-tab-content"], children=[*content])
    return create_component("tab-item", ["sd-tab-item"], children=[heading, inside])


def _box(program: str) -> nodes.container:
    """A folded box with a program, readable and copyable without scripts too."""
    lines = len(program.splitlines())
    text = (
        f'<details class="program-box" data-lines="{lines}">'
        f"<summary>As a program, {lines} lines</summary>"
        f'<pre class="program" tabindex="0">{html.escape(program)}</pre></details>'
    )
    box = nodes.raw("", text, format="html")
    return nodes.container("", box, classes=["program-holder", "no-search"])


def setup_transforms(app: Sphinx) -> None:
    """Change the nodes that MyST-NB creates for a page's cells."""
    for transform in (MarkedOutputs, DarkTwins, ProgramBoxes, RecordTabs):
        app.add_transform(transform)
    app.add_post_transform(OneFigure)
    folded = (visit_folded, depart_HideCellInput)
    app.add_node(HideCodeCellNode, override=True, html=folded)
    app.add_css_file("cells.css")
    app.add_css_file("program.css")
    app.add_js_file("program.js", loading_method="defer")
