"""Accepting outputs: `nox -s pin` makes the pins anew and shows what changed."""

from __future__ import annotations

import dataclasses
import difflib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ._chapters import Cell, Chapter
from ._compare import same_output
from ._errors import BookError, PageError
from ._execute import Book, count_cells, execute
from ._pins import RELATIVE_TOLERANCE, output_text, pin_path, pins_of, write_pins
from ._progress import Progress
from ._settings import Settings
from ._store import write_whole


def accept(settings: Settings, folder: Path, progress: Progress) -> None:
    """Pin the outputs of all chapters as they are now, and print each change.

    Chapters whose outputs change are executed a second time first: an output
    that is not the same twice cannot be pinned, and one that is marked as
    measured has to differ.

    Raises:
        BookError: a chapter fails, or an output is marked wrongly. No pin changes.
    """
    settings = dataclasses.replace(settings, pins=None)
    book = execute(settings, progress)
    if book.errors:
        raise BookError("\n\n".join(map(str, book.errors)))
    texts = {c.docname: _text(c, book) for c in book.chapters}
    changed = {
        docname: text
        for docname, text in texts.items()
        if _read(pin_path(folder, docname)) != text
    }
    if changed:
        again = _second_run(settings, frozenset(changed), progress)
        errors = [
            error
            for chapter in again.chapters
            for error in _marked_wrongly(chapter, book, again)
        ]
        if errors:
            raise BookError("\n\n".join(map(str, errors)))
    for docname, text in changed.items():
        path = pin_path(folder, docname)
        progress.note(_difference(docname, _read(path), text))
        write_whole(path, text)
    if settings.only is None:
        _remove_orphans(folder, {pin_path(folder, name) for name in texts}, progress)
    progress.note(f"{count_cells(book)}; {len(changed)} chapters accepted anew")


def _remove_orphans(folder: Path, kept: set[Path], progress: Progress) -> None:
    for path in sorted(set(folder.rglob("*.txt")) - kept):
        progress.note(f"removed: {path.name}, of a chapter that is gone")
        path.unlink()


def _text(chapter: Chapter, book: Book) -> str:
    run = book.runs[chapter.docname]
    return write_pins(pins_of(chapter, run), run["provenance"])


def _read(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


def _second_run(settings: Settings, only: frozenset[str], progress: Progress) -> Book:
    progress.note("once more, to see which outputs stay the same:")
    with tempfile.TemporaryDirectory(prefix="justafter-pin-") as cache:
        again = dataclasses.replace(settings, cache=Path(cache), only=only)
        book = execute(again, progress)
    if book.errors:
        raise BookError("\n\n".join(map(str, book.errors)))
    return book


def _marked_wrongly(chapter: Chapter, book: Book, again: Book) -> Iterator[PageError]:
    first, second = book.runs[chapter.docname], again.runs[chapter.docname]
    for cell, one, two in zip(
        chapter.cells, first["cells"], second["cells"], strict=True
    ):
        if problem := _problem(cell, one, two):
            message, hint, detail = problem
            yield PageError(chapter.path, cell.line, message, hint, detail)


def _problem(
    cell: Cell, one: dict[str, Any], two: dict[str, Any]
) -> tuple[str, str, str] | None:
    """What is wrong with a cell's mark, seen from two runs of it."""
    before, after = output_text(one), output_text(two)
    difference = same_output(before, after, RELATIVE_TOLERANCE)
    if not cell.varies and difference is not None:
        return (
            f"cell {cell.number} gave two outputs in two runs",
            "make it the same every time, or tag it 'measured' and assert its bounds",
            str(difference),
        )
    has_text = any(character.isdigit() for character in before)
    if "measured" in cell.tags and has_text and before == after:
        return (
            f"cell {cell.number} is marked as measured, and gave the same twice",
            "drop the tag: the output can be pinned",
            before,
        )
    return None


def _difference(docname: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), "pinned", docname, lineterm="", n=2
    )
    return "\n".join(lines)
