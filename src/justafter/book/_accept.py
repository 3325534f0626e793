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
    measured has to differ, in a third run at the latest.

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
        errors = _marked_wrongly(settings, book, set(changed), progress)
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


def _marked_wrongly(
    settings: Settings, book: Book, changed: set[str], progress: Progress
) -> list[PageError]:
    """What is wrong with the marks of the changed chapters, seen from more runs."""
    progress.note("once more, to see which outputs stay the same:")
    chapters = [c for c in book.chapters if c.docname in changed]
    runs = {c.docname: [book.runs[c.docname]] for c in chapters}
    _run_again(settings, runs, changed, progress)
    if alike := {c.docname for c in chapters if any(_alike(c, runs[c.docname]))}:
        progress.note("a third time, since a timing may read the same by chance:")
        _run_again(settings, runs, alike, progress)
    return [error for c in chapters for error in _errors(c, runs[c.docname])]


def _run_again(
    settings: Settings,
    runs: dict[str, list[dict[str, Any]]],
    docnames: set[str],
    progress: Progress,
) -> None:
    """Execute some chapters anew, and add what they gave to `runs`."""
    with tempfile.TemporaryDirectory(prefix="justafter-pin-") as cache:
        only = frozenset(docnames)
        again = dataclasses.replace(settings, cache=Path(cache), only=only)
        book = execute(again, progress)
    if book.errors:
        raise BookError("\n\n".join(map(str, book.errors)))
    for docname in docnames:
        runs[docname].append(book.runs[docname])


def _results(
    chapter: Chapter, runs: list[dict[str, Any]]
) -> Iterator[tuple[Cell, list[str]]]:
    """Each cell with the text that it gave in each run."""
    for cell, *results in zip(
        chapter.cells, *(run["cells"] for run in runs), strict=True
    ):
        yield cell, [output_text(result) for result in results]


def _alike(chapter: Chapter, runs: list[dict[str, Any]]) -> Iterator[tuple[Cell, str]]:
    """The cells that are marked as measured and gave the same numbers every time."""
    for cell, texts in _results(chapter, runs):
        has_numbers = any(character.isdigit() for character in texts[0])
        if "measured" in cell.tags and has_numbers and len(set(texts)) == 1:
            yield cell, texts[0]


def _errors(chapter: Chapter, runs: list[dict[str, Any]]) -> Iterator[PageError]:
    """What is wrong with the marks of a chapter's cells."""
    for cell, (first, *others) in _results(chapter, runs):
        differences = (same_output(first, o, RELATIVE_TOLERANCE) for o in others)
        difference = next((d for d in differences if d is not None), None)
        if not cell.varies and difference is not None:
            yield PageError(
                chapter.path,
                cell.line,
                f"cell {cell.number} gave two outputs in two runs",
                "make it the same every time, or tag it 'measured' and assert"
                " its bounds",
                str(difference),
            )
    for cell, text in _alike(chapter, runs):
        yield PageError(
            chapter.path,
            cell.line,
            f"cell {cell.number} is marked as measured, and gave the same every time",
            "drop the tag: the output can be pinned",
            text,
        )


def _difference(docname: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), "pinned", docname, lineterm="", n=2
    )
    return "\n".join(lines)
