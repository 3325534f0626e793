"""Cells with an address, and their parts as groups that a screen reader names."""

import html
import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.writers.html5 import HTML5Translator
from sphinx_design.extension import depart_container, visit_container

from .transforms import cells_of, part_of

#: Where a traceback names a cell of its page.
_PLACE = re.compile(r"\bCell (\d+)(?=, line \d)")


class NamedCells(SphinxTransform):
    """Give each cell an address by its number, and each of its parts a name.

    In a notebook of others numbers may be missing or stand twice: such a cell has no
    address.
    """

    default_priority = 215  # when the records of other devices are no cells any more

    def apply(self, **kwargs: object) -> None:
        shown: list[int] = []
        for cell in cells_of(self.document):
            number = cell.get("exec_count")
            if number and number not in shown:
                shown.append(number)
                cell["ids"].append(f"cell-{number}")
            said = f"Cell {number}, " if number else ""
            if (source := part_of(cell, "source")) is not None:
                source["group"] = f"{said}code"
            if (output := part_of(cell, "output")) is not None:
                output["group"] = said + _content(output)
                output["shown_cells"] = shown


def _content(output: nodes.container) -> str:
    """What an output is, in a word or three."""
    blocks = [n for n in output.findall(nodes.Element) if "output" in n["classes"]]
    errors = ["traceback" in block["classes"] for block in blocks]
    if not any(errors):
        return "output"
    return "error" if all(errors) else "output and error"


def visit_group(translator: HTML5Translator, node: nodes.container) -> None:
    """Open a part of a cell as a named group, and any other container as it was."""
    begin = len(translator.body)
    visit_container(translator, node)
    if name := node.get("group"):
        opened = f'<div role="group" aria-label="{html.escape(name)}"'
        translator.body[begin] = translator.body[begin].replace("<div", opened, 1)
        node["begin"] = begin


def depart_group(translator: HTML5Translator, node: nodes.container) -> None:
    """Close it; a place that a traceback names is a link if the page shows its cell."""
    depart_container(translator, node)
    shown = node.get("shown_cells", ())
    if shown and any("traceback" in n["classes"] for n in node.children):
        begin = node["begin"]

        def linked(place: re.Match[str]) -> str:
            if int(place[1]) not in shown:
                return place[0]
            return f'<a href="#cell-{place[1]}">{place[0]}</a>'

        text = _PLACE.sub(linked, "".join(translator.body[begin:]))
        translator.body[begin:] = [text]


def setup_groups(app: Sphinx) -> None:
    """Name the parts of cells; a container is sphinx-design's besides."""
    app.add_transform(NamedCells)
    app.add_node(nodes.container, override=True, html=(visit_group, depart_group))
