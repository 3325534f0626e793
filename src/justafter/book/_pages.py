"""Turning an executed chapter into what Sphinx renders."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from nbformat import NotebookNode
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxRole
from sphinx_design.shared import create_component

from ._chapters import parse
from ._execute import date_of
from ._figures import dark_twin
from ._programs import Program
from ._records import Record, slug

#: What a folded cell says, by the tag that folds it.
PROMPTS = {"check": "Checked", "solution": "Show the solution"}
_FOLDS = {"check": "hide-cell", "solution": "hide-cell"}


def executed_notebook(
    text: str,
    path: Path,
    run: dict[str, Any],
    programs: list[Program | None],
    records: dict[int, list[Record]],
) -> NotebookNode:
    """The page as a notebook with its run's outputs, its programs and its records."""
    notebook = parse(text, path)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    together = zip(cells, run["cells"], programs, strict=True)
    for count, (cell, record, program) in enumerate(together, 1):
        cell.execution_count = count
        cell.metadata["program"] = program.text if program else None
        cell.outputs = [nbformat.from_dict(item) for item in record["outputs"]]
        _present(cell)
        if elsewhere := records.get(count):
            cell.metadata["device"] = _device(run["provenance"])
            at = notebook.cells.index(cell) + 1
            notebook.cells[at:at] = [_recorded(cell, each) for each in elsewhere]
            lines = notebook.metadata["source_map"]
            lines[at:at] = [lines[at - 1]] * len(elsewhere)
    notebook.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    notebook.metadata["language_info"] = {
        "name": "python",
        "pygments_lexer": "ipython3",
        "version": run["provenance"]["python"],
    }
    return notebook


def _recorded(cell: NotebookNode, record: Record) -> NotebookNode:
    """A cell that carries what another platform gave, for `RecordTabs` to move."""
    made = nbformat.v4.new_code_cell(cell.source, execution_count=cell.execution_count)
    made.metadata = nbformat.from_dict(dict(cell.metadata))
    made.metadata["record"] = {"label": record.label, "stamp": _where(record)}
    made.metadata["program"] = None
    made.outputs = [nbformat.from_dict(item) for item in record.outputs]
    return made


def _where(record: Record) -> str:
    """Where and when a record was made, in words."""
    facts = record.provenance
    parts = [
        f"{facts['device_count']} × {facts['device_kind']}",
        *([f"driver {facts['driver']}"] if "driver" in facts else []),
        f"JAX {facts['jax']}",
        f"Python {facts['python']}",
        facts["date"],
    ]
    return "Recorded on " + ", ".join(parts)


def _device(facts: dict[str, Any]) -> str:
    """The page's own device, as the reader chooses it."""
    kind = facts["device_kind"]
    return "CPU" if facts["platform"] == "cpu" else kind


def _present(cell: NotebookNode) -> None:
    """Say in MyST-NB's terms what our options mean for how a cell looks."""
    tags = list(cell.metadata.get("tags", []))
    shown = dict(cell.metadata.get("mystnb", {}))
    for tag in set(tags) & set(PROMPTS):
        tags.append(_FOLDS[tag])
        shown["code_prompt_show"] = shown["code_prompt_hide"] = PROMPTS[tag]
    if "raises" in cell.metadata:
        tags.append("raises-exception")
    if "alt" in cell.metadata:
        shown["image"] = {**shown.get("image", {}), "alt": cell.metadata["alt"]}
    cell.metadata["tags"] = tags
    if shown:
        cell.metadata["mystnb"] = shown


class ValueRole(SphinxRole):
    """A value that the run computed, where the text names its expression.

    Occurrences are matched in the order in which they stand on the page.
    """

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        waiting = self.env.current_document.get("justafter-values", {})
        queue = waiting.get((self.name, " ".join(self.text.split())))
        if not queue:
            message = self.inliner.reporter.error(
                f"{self.name} {self.text!r}: only running text of a chapter has values",
                line=self.lineno,
            )
            return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [
                message
            ]
        text = queue.pop(0)
        classes = ["value"] if self.name == "value" else ["measured", "no-search"]
        return [nodes.inline(text, text, classes=classes)], []


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


def stamp(
    run: dict[str, Any], records: dict[int, list[Record]], varies: bool
) -> nodes.container:
    """When, where and how long a chapter was executed, from what its run recorded.

    A page with outputs that vary says on which other platforms it was recorded.
    """
    facts = run["provenance"]
    count = facts["device_count"]
    devices = f"{count} × {facts['device_kind']}" if count > 1 else facts["device_kind"]
    platform = facts["platform"]
    if platform.lower() != facts["device_kind"].lower():
        devices = f"{platform}: {devices}"
    date = date_of(run)
    box = nodes.container(classes=["stamp", "no-search"])
    line = nodes.paragraph()
    line += nodes.Text("Executed ")
    line += _measured(f"{date:%Y-%m-%d %H:%M} UTC")
    line += nodes.Text(
        f" on {devices} with JAX {facts['jax']}, Python {facts['python']}, in "
    )
    line += _measured(f"{run['seconds']:.1f} s")
    if records:
        where = sorted({_where(each) for found in records.values() for each in found})
        line += nodes.Text("".join(f". {text}" for text in where) + ".")
    elif varies and facts["platform"] == "cpu":
        line += nodes.Text(". No accelerator has been recorded for this page yet.")
    box += line
    return box


def _measured(text: str) -> nodes.inline:
    return nodes.inline(text, text, classes=["measured"])
