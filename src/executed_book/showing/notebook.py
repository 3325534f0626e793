"""An executed chapter as the notebook that MyST-NB renders."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from ..book import ExecutedPage
from ..checking.elsewhere import Record
from ..model import Cell, CellResult, Chapter, Prose, Provenance
from ..reading.options import of_myst_nb
from .exercises import checks_first
from .receipts import receipts_of
from .stamp import where

#: What a folded cell says, by the tag that folds it.
PROMPTS = {
    "solution": "Show the solution",
    "exercise-check": "Check your answer",
    "asked": "Show the output",
}
_FOLDS = {**dict.fromkeys(PROMPTS, "hide-cell"), "asked": "hide-output"}

#: Text after a question that readers of the page do not see.
_UNSEEN = re.compile(
    r"^(`{3,}|:{3,})\{index\}.*?^\1[ ]*$|^%[^\n]*$", re.MULTILINE | re.DOTALL
)


#: A notebook in nbformat's form, and a cell of one, whose `metadata` holds a page's
#: options and what is ours.
Notebook = dict[str, Any]
NotebookCell = dict[str, Any]

#: A part of a chapter with the notebook cells that show it.
Shown = tuple[Cell | Prose, list[NotebookCell]]

#: MyST-NB's source map holds lines counted from 0, of the line above.
_SHIFT = 2


def notebook_of(page: ExecutedPage, asks: str = "") -> Notebook:
    """The page with its run's outputs, its programs and its records, as plain data.

    Lines of the page travel as MyST-NB's source map, so that warnings name them.

    Args:
        page: the executed page.
        asks: the word with which a question to the reader begins, in bold type; the
            output of the cell after it stays folded. No output does if it is empty.
    """
    metadata = page.executed.chapter.metadata
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    ran = {
        "kernelspec": kernel,
        "language_info": {**_LANGUAGE, "version": page.executed.run.provenance.python},
        # A page that asks MyST-NB to execute it has been executed already.
        "mystnb": of_myst_nb(metadata) | {"execution_mode": "off"},
    }
    shown = checks_first(_parts(page, asks), lambda part: getattr(part[0], "tags", ()))
    return _notebook(shown, metadata | ran)


def _notebook(parts: Iterable[Shown], metadata: dict[str, Any]) -> Notebook:
    cells: list[NotebookCell] = []
    lines: list[int] = []
    for part, made in parts:
        for cell in made:
            cells.append({"id": f"part-{len(cells)}", **cell})
            lines.append(part.line - _SHIFT)
    metadata = {**metadata, "source_map": lines}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells}


def _parts(page: ExecutedPage, asks: str) -> Iterator[Shown]:
    results = iter(page.executed.run.results)
    programs = iter(page.snippets.programs)
    provenance = page.executed.run.provenance
    receipts = receipts_of(page.executed, page.passed)
    is_asked = False
    for part in page.executed.chapter.parts:
        if isinstance(part, Prose):
            is_asked = ends_with_a_question(part.text, asks)
            yield part, [_text_cell(part)]
            continue
        cell = _code_cell(part, next(results), next(programs))
        if is_asked and not part.tags & {"check", *PROMPTS}:
            _fold(cell["metadata"], "asked")
            is_asked = False
        if part.check in receipts:
            cell["metadata"]["receipt"] = receipts[part.check]
        if (reason := page.snippets.reasons.get(part.number - 1)) is not None:
            cell["metadata"]["no-program"] = reason
        elsewhere = page.records.get(part.number, [])
        if elsewhere:
            is_cpu = provenance.platform == "cpu"
            cell["metadata"]["device"] = "CPU" if is_cpu else provenance.device_kind
        yield part, [cell, *(_recorded(cell, r, provenance) for r in elsewhere)]


def ends_with_a_question(text: str, asks: str) -> bool:
    """Whether the last paragraph has the word that asks the reader, in bold type.

    >>> ends_with_a_question("One.\\n\\nTwo. **Guess:** which?", "Guess")
    True
    >>> ends_with_a_question("% A comment.\\n\\n**Guess** it.", "Guess")
    True
    >>> ends_with_a_question("**Guess** it.\\n\\nIt is two.", "Guess")
    False
    """
    last = _UNSEEN.sub("", text).rstrip().rpartition("\n\n")[2]
    return bool(asks) and re.search(rf"\*\*{re.escape(asks)}\b", last) is not None


def _text_cell(part: Prose) -> NotebookCell:
    return {"cell_type": part.kind, "source": part.text, "metadata": part.options}


def _code_cell(cell: Cell, result: CellResult, program: str | None) -> NotebookCell:
    return {
        "cell_type": "code",
        "source": cell.source,
        "execution_count": cell.number,
        "metadata": {**_present(cell), "program": program},
        "outputs": list(result.outputs),
    }


def _recorded(cell: NotebookCell, record: Record, page: Provenance) -> NotebookCell:
    """A cell that carries what another platform gave, for `RecordTabs` to move."""
    facts = record.provenance
    shown = {
        "label": facts.device_kind,
        "version": f"JAX {facts.jax}" if facts.jax != page.jax else "",
        "stamp": where(facts, page),
    }
    metadata = {**cell["metadata"], "record": shown, "program": None, "receipt": None}
    return {**cell, "metadata": metadata, "outputs": list(record.outputs)}


def _present(cell: Cell) -> dict[str, Any]:
    """A cell's options, and what ours mean for its look, in MyST-NB's terms."""
    options = {**cell.options, "tags": sorted(cell.tags)}
    tags = options["tags"]
    for tag in cell.tags & PROMPTS.keys():
        _fold(options, tag)
    shown = dict(options.get("mystnb") or {})
    if cell.raises is not None:
        tags.append("raises-exception")
    if cell.alt is not None:
        shown["image"] = {**shown.get("image", {}), "alt": cell.alt}
    return {**options, **({"mystnb": shown} if shown else {})}


def _fold(options: dict[str, Any], tag: str) -> None:
    """Fold a cell as a tag of ours has it, and say so in the tag's words."""
    options["tags"] += [
        name for name in (tag, _FOLDS[tag]) if name not in options["tags"]
    ]
    show = PROMPTS[tag]
    prompts = {
        "code_prompt_show": show,
        "code_prompt_hide": show.replace("Show", "Hide"),
    }
    options["mystnb"] = {**(options.get("mystnb") or {}), **prompts}


def unexecuted_notebook(chapter: Chapter) -> Notebook:
    """A chapter that is not executed: its text and its cells."""
    nothing = CellResult()
    cells = (
        _text_cell(part) if isinstance(part, Prose) else _code_cell(part, nothing, None)
        for part in chapter.parts
    )
    parts = ((part, [cell]) for part, cell in zip(chapter.parts, cells, strict=True))
    return _notebook(parts, {**chapter.metadata, "language_info": _LANGUAGE})


def stored_notebook(text: str) -> Notebook:
    """A notebook file that is not executed, to be shown with what it holds.

    MyST-NB asks for the language of its cells, which not every program writes down.

    Raises:
        ValueError: it is no notebook.
    """
    plain = json.loads(text)
    if not isinstance(plain, dict):
        raise ValueError("a notebook is an object")
    metadata = {"language_info": _LANGUAGE, **plain.get("metadata", {})}
    return {**plain, "metadata": metadata}


_LANGUAGE = {"name": "python", "pygments_lexer": "ipython3"}
