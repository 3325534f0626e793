"""Programs for the pages: what stands behind each cell's second copy button.

Also the chapter as one script and as one notebook, from the same source.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from ._chapters import Cell, Chapter, parse
from ._errors import PageError
from ._programs import NoFaithfulProgram, Program, header, notebook, program, script
from ._slice import Page, SourceCell
from ._store import Store, digest, package_digest


@dataclass(frozen=True)
class Snippets:
    """What a reader can take from a chapter, as text.

    Attributes:
        programs: one a cell, None where the chapter says why there is none.
        script: the chapter as a Python script.
        notebook: the chapter as a notebook without outputs, in its file format.
    """

    programs: list[Program | None]
    script: str
    notebook: str


def snippets_of(
    chapter: Chapter, run: dict[str, Any], store: Store
) -> tuple[Snippets, list[PageError]]:
    """A chapter's snippets, kept from an earlier build where they still hold.

    Slicing is most of what a build does when nothing has to be executed.
    """
    cells = source_cells(chapter, run)
    facts = [chapter.text, [cell.displays for cell in cells], page_header(chapter, run)]
    key = digest([facts, package_digest()])
    kept = store.load(chapter.docname, key)
    if kept is not None:
        programs = [
            p and Program(p["text"], p["cell"], tuple(map(tuple, p["kept"])))
            for p in kept["programs"]
        ]
        return Snippets(programs, kept["script"], kept["notebook"]), []
    programs, errors = programs_of(chapter, run)
    made = Snippets(
        programs,
        chapter_script(chapter, run),
        nbformat.writes(chapter_notebook(chapter, run)) + "\n",
    )
    if not errors:
        store.save(chapter.docname, key, asdict(made))
    return made, errors


def source_cells(chapter: Chapter, run: dict[str, Any]) -> list[SourceCell]:
    """The chapter's cells as the slicer wants them, with what the run knows."""
    return [
        SourceCell(
            code=cell.source,
            tags=cell.tags,
            raises=cell.raises,
            displays=any(
                item["output_type"] == "execute_result" for item in record["outputs"]
            ),
            no_program=cell.no_program,
        )
        for cell, record in zip(chapter.cells, run["cells"], strict=True)
    ]


def page_header(chapter: Chapter, run: dict[str, Any]) -> str:
    """The first line of a chapter's programs: its address and the JAX version."""
    site = os.environ.get("BOOK_URL", "").rstrip("/")
    address = f"{site}/{chapter.docname}.html" if site else f"{chapter.docname}.html"
    return header(address, run["provenance"]["jax"])


def programs_of(
    chapter: Chapter, run: dict[str, Any]
) -> tuple[list[Program | None], list[PageError]]:
    """A program for each cell, None where the chapter says why there is none.

    The second list holds an error for each cell that has no faithful program
    and does not say why.
    """
    page = Page(source_cells(chapter, run))
    first = page_header(chapter, run)
    programs: list[Program | None] = []
    errors: list[PageError] = []
    for k, cell in enumerate(chapter.cells):
        programs.append(None)
        if cell.no_program is not None:
            continue
        try:
            programs[k] = program(page, k, first)
        except NoFaithfulProgram as failure:
            errors.append(_no_program(chapter, cell, failure))
    return programs, errors


def _no_program(chapter: Chapter, cell: Cell, failure: NoFaithfulProgram) -> PageError:
    return PageError(
        chapter.path,
        chapter.cells[failure.at].line + failure.line - 1,
        f"cell {cell.number} cannot be copied as a program: {failure.why}",
        'rewrite the line, or say why on the page: :no-program: "..."',
    )


def chapter_script(chapter: Chapter, run: dict[str, Any]) -> str:
    """The chapter as one script that runs to its end."""
    return script(_parts(chapter, run), page_header(chapter, run))


def chapter_notebook(chapter: Chapter, run: dict[str, Any]) -> NotebookNode:
    """The chapter as a notebook without outputs."""
    return notebook(_parts(chapter, run))


def _parts(chapter: Chapter, run: dict[str, Any]) -> list[SourceCell | str]:
    """The chapter's cells and prose, in order."""
    cells = iter(source_cells(chapter, run))
    return [
        next(cells) if part.cell_type == "code" else part.source
        for part in parse(chapter.text, Path(chapter.path)).cells
        if part.cell_type in ("code", "markdown")
    ]
