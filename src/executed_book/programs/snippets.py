"""Programs for the pages: the text that each cell's second button copies."""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import cast

from ..errors import PageError
from ..files import code_digest, digest
from ..model import Cell, CellResult, Executed
from ..running.store import Store
from .cells import SourceCell
from .slicing import NoFaithfulProgram, Page
from .text import Programs


@dataclass(frozen=True)
class Snippets:
    """The programs of a chapter.

    Attributes:
        programs: the program of each cell, or None.
        reasons: why a cell has no program, by its index, where running it said so.
        needs: the numbers of the cells that each cell needs.
    """

    programs: list[str | None]
    reasons: dict[int, str] = field(default_factory=dict, hash=False)
    needs: list[list[int]] = field(default_factory=list, hash=False)

    def needed(self, number: int) -> set[int]:
        """The numbers of the cells that a cell needs."""
        return set(self.needs[number - 1])


def snippets_of(executed: Executed, store: Store) -> tuple[Snippets, list[PageError]]:
    """A chapter's snippets, kept from an earlier build where they still hold.

    Slicing is most of what a build does when nothing has to be executed.
    """
    chapter, key = executed.chapter, _key_of(executed)
    cached = store.load(chapter.docname, key)
    if cached is not None:
        errors = [PageError(chapter.path, *error) for error in cached["errors"]]
        return Snippets(cached["programs"], needs=cached["needs"]), errors
    programs, errors = _programs_of(executed)
    needed = needed_cells(executed)
    needs = [sorted(needed(cell.number)) for cell in chapter.cells]
    said = [[error.line, error.message, error.hint] for error in errors]
    entry = {"programs": programs, "errors": said, "needs": needs}
    store.save(chapter.docname, key, entry)
    return Snippets(programs, needs=needs), errors


def lengthened(
    executed: Executed, store: Store, number: int, added: Sequence[tuple[int, int]]
) -> str | None:
    """A cell's program with the statements `added`, kept from an earlier build.

    None if there is no faithful program with them.
    """
    name, key = f"{executed.chapter.docname} {number}", _key_of(executed)
    key = digest([key, list(map(list, added))])
    cached = store.load(name, key)
    if cached is not None:
        return cast("str | None", cached["program"])
    try:
        program: str | None = programs_by_cell(executed).of(number - 1, added)
    except NoFaithfulProgram:
        program = None
    store.save(name, key, {"program": program})
    return program


def _key_of(executed: Executed) -> str:
    """A digest of all that a chapter's programs depend on."""
    cells = source_cells(executed)
    seen = [[cell.displays, cell.prints, cell.fails_at] for cell in cells]
    return digest([executed.chapter.text, seen, page_header(executed), _own_digest()])


@cache
def _own_digest() -> str:
    """A digest of what makes programs."""
    folder = Path(__file__).parent
    files = [*sorted(folder.glob("*.py")), folder.with_name("names.py")]
    return code_digest(files)


def source_cells(executed: Executed) -> list[SourceCell]:
    """The chapter's cells as the slicer wants them, with what the run knows."""
    return [
        SourceCell(
            code="" if cell.is_skipped else cell.source,
            tags=cell.tags,
            raises=raised(cell, result),
            displays="execute_result" in {o["output_type"] for o in result.outputs},
            prints=any(item.get("name") == "stdout" for item in result.outputs),
            fails_at=_fails_at(cell, result),
            label=cell.check,
            needs=cell.needs,
        )
        for cell, result in executed
    ]


def raised(cell: Cell, result: CellResult) -> str | None:
    """What a cell is to raise: what it announces, or what it was seen to raise."""
    if cell.raises is None and cell.may_raise and result.failure is not None:
        return f"{result.failure.name}: "
    return cell.raises


def _fails_at(cell: Cell, result: CellResult) -> int | None:
    """The line of the statement that failed; None if that was no statement's.

    The line of the failure itself may be one of a function that the statement called.
    """
    traceback = result.failure.traceback if result.failure is not None else ""
    frame = re.search(rf"(?m)^  Cell {cell.number}, line (\d+)$", traceback)
    return int(frame[1]) if frame else None


def page_header(executed: Executed) -> str:
    """The first line of a chapter's programs: its address and the JAX version."""
    site = os.environ.get("BOOK_URL", "").rstrip("/")
    page = f"{executed.chapter.docname}.html"
    address = f"{site}/{page}" if site else page
    jax = executed.run.provenance.jax
    return f"# {address}" + (f", run with JAX {jax}" if jax else "")


def _programs_of(executed: Executed) -> tuple[list[str | None], list[PageError]]:
    """A program for each cell, or None with an error where there is no faithful one."""
    chapter, made = executed.chapter, cache(lambda: programs_by_cell(executed))
    programs, errors = list[str | None](), list[PageError]()
    for k, cell in enumerate(chapter.cells):
        programs.append(None)
        if cell.is_skipped:
            continue
        try:
            programs[k] = made().of(k)
        except (NoFaithfulProgram, RecursionError) as failure:
            if isinstance(failure, RecursionError):
                failure = NoFaithfulProgram(k, 1, "the page nests code too deeply")
            line = chapter.cells[failure.at].line + failure.line - 1
            message = f"cell {cell.number} cannot be copied as a program: {failure}"
            hint = "rewrite the line in plain Python"
            errors.append(PageError(chapter.path, line, message, hint))
    return programs, errors


def programs_by_cell(executed: Executed) -> Programs:
    """What makes a chapter's programs."""
    return Programs(_page_of(executed), page_header(executed))


def _page_of(executed: Executed) -> Page:
    return _sliced(tuple(source_cells(executed)))


@lru_cache(maxsize=2)  # what is asked of a page is asked one after the other
def _sliced(cells: tuple[SourceCell, ...]) -> Page:
    return Page(cells)


def needed_cells(executed: Executed) -> Callable[[int], set[int]]:
    """What tells which cells a cell needs, worked out once it is asked."""
    page_of = cache(lambda: _page_of(executed))

    def needs(number: int) -> set[int]:
        try:
            page = page_of()
            return {page.statements[i].cell + 1 for i in page.needed(number - 1)}
        except (NoFaithfulProgram, RecursionError):
            return set(range(1, number))  # it cannot be told: all of them

    return needs
