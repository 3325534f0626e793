"""What is done to a page's document once MyST-NB has read it."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx_design.shared import create_component

from ..platforms.records import slug
from ..running.figures import dark_twin


class MarkVaryingOutputs(SphinxTransform):
    """Keep what may differ from run to run out of the search index.

    That is the output of marked cells, and HTML, which marks its own parts.
    """

    default_priority = 210

    def apply(self, **kwargs: Any) -> None:
        for cell in self.document.findall(_is_cell):
            marked = {"tag_measured", "tag_device"} & set(cell["classes"])
            for output in cell.findall(_is_output):
                if marked or any(output.findall(nodes.raw)):
                    output["classes"].append("no-search")


class DarkTwins(SphinxTransform):
    """Give every figure its twin for the dark theme."""

    default_priority = 211

    def apply(self, **kwargs: Any) -> None:
        if self.config.executed_book_figures != "themed":
            return
        for cell in list(self.document.findall(_is_cell)):
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
        image.parent.insert(image.parent.index(image) + 1, twin)


class ProgramBoxes(SphinxTransform):
    """Put below each cell's code the program that its second button copies."""

    default_priority = 212

    def apply(self, **kwargs: Any) -> None:
        for cell in self.document.findall(_is_cell):
            metadata = cell["cell_metadata"]
            source = next(cell.findall(_is_source), None)
            if source is not None and metadata.get("program"):
                cell.insert(cell.index(source) + 1, program_box(metadata["program"]))
            elif source is not None and "no-program" in metadata:
                reason = nodes.paragraph(classes=["no-program"])
                reason += nodes.Text(f"No program: {metadata['no-program']}")
                cell.insert(cell.index(source) + 1, reason)


class RecordTabs(SphinxTransform):
    """Where a cell was recorded on other platforms, set their outputs side by side.

    The tabs are sphinx-design's: radio buttons, so they work by keyboard and without
    scripts; its script keeps the reader's choice from page to page.
    """

    default_priority = 213

    def apply(self, **kwargs: Any) -> None:
        home = tabs = None
        for cell in list(self.document.findall(_is_cell)):
            record = cell["cell_metadata"].get("record")
            output = next(cell.findall(_is_output), None)
            if record is None:
                home, tabs = cell, None
                continue
            cell.parent.remove(cell)
            if tabs is None:
                tabs = _tab_set()
                own = next(home.findall(_is_output), None)
                device = home["cell_metadata"]["device"]
                tabs += _tab(device, own.children if own else [], checked=True)
                if own is None:
                    own = output.deepcopy()
                    home += own
                own.children = []
                own += tabs
            line = nodes.paragraph("", record["stamp"], classes=["record-stamp"])
            tabs += _tab(record["label"], [*output.children, line])


def _tab_set() -> nodes.container:
    return create_component("tab-set", classes=["sd-tab-set", "records"])


def _tab(label: str, content: list[nodes.Node], checked: bool = False) -> nodes.Node:
    """One output among the tabs; the choice is shared by all that have its label."""
    tab = create_component("tab-item", classes=["sd-tab-item"], selected=checked)
    heading = nodes.rubric(label, label, classes=["sd-tab-label"])
    heading["sync_group"], heading["sync_id"] = "platform", slug(label)
    tab += heading
    tab += create_component("tab-content", classes=["sd-tab-content"], children=content)
    return tab


def program_box(program: str) -> nodes.container:
    """A folded box with a program, readable and copyable without scripts too."""
    lines = len(program.splitlines())
    box = nodes.container(classes=["program-holder", "no-search"])
    box += nodes.raw(
        "",
        f'<details class="program-box" data-lines="{lines}">'
        f"<summary>As a program <small>{lines} lines</small>"
        '<span class="program-status" role="status"></span></summary>'
        f'<pre class="program" tabindex="0">{html.escape(program)}</pre></details>',
        format="html",
    )
    return box


def _is_cell(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


def _is_source(node: nodes.Node) -> bool:
    return (
        isinstance(node, nodes.container)
        and node.get("nb_element") == "cell_code_source"
    )


def _is_output(node: nodes.Node) -> bool:
    return (
        isinstance(node, nodes.container)
        and node.get("nb_element") == "cell_code_output"
    )
