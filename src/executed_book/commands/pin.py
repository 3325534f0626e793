"""`pin`: accepting the outputs as they are now, and showing what changed."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterator
from pathlib import Path

from ..book import Book, execute
from ..checking.comparison import same_output
from ..checking.stored import (
    RELATIVE_TOLERANCE,
    accepted_page,
    accepted_path,
    is_accepted,
    outputs_text,
    stored_path,
)
from ..checking.text import pinned_text
from ..errors import BookError, PageError, raise_all
from ..files import write_whole
from ..model import Cell, Executed
from ..plurals import counted
from ..running.processes import run_folder
from ..running.progress import Progress
from ..settings import Settings


def pin(settings: Settings, progress: Progress) -> None:
    """Pin the outputs of all chapters as they are now, and print each change.

    Chapters whose outputs change are executed a second time first: an output
    that is not the same twice cannot be pinned, and one that is marked as
    measured has to differ, in a third run at the latest.

    Raises:
        BookError: a chapter fails, or an output is marked wrongly, or `conf.py` does
            not say where pins are. No pin changes.
    """
    folder = settings.outputs
    if folder is None:
        raise BookError(
            "nowhere to keep pins\n    → name a folder in conf.py:"
            ' executed_book_outputs = "../outputs/cells"'
        )
    settings = dataclasses.replace(settings, outputs=None)
    book = execute(settings, progress)
    raise_all(book.errors)
    texts: dict[Path, str] = {}
    changed: dict[str, Path] = {}
    for docname, executed in book.executed.items():
        path = stored_path(folder, executed.run.provenance.jax, docname)
        texts[path] = outputs_text(accepted_page(executed))
        if _read(path) != texts[path]:
            changed[docname] = path
    if changed:
        raise_all(_marked_wrongly(settings, book, set(changed), progress))
    for docname, path in changed.items():
        before = path if path.exists() else accepted_path(folder, docname)
        progress.note(_difference(docname, _read(before), texts[path]))
        write_whole(path, texts[path])
    if settings.only is None:
        _remove_orphans(folder, set(texts), progress)
    progress.note(
        f"{book.count_cells()}; {counted(len(changed), 'chapter')} accepted anew"
    )


def _remove_orphans(folder: Path, written: set[Path], progress: Progress) -> None:
    """Remove the accepted outputs of chapters that are gone."""
    places = {folder / path.relative_to(folder).parts[0] for path in written}
    present = {path for place in places for path in place.rglob("*.txt")}
    for path in sorted(present - written):
        if is_accepted(path):
            progress.note(f"removed: {path.name}, of a chapter that is gone")
            path.unlink()


def _read(path: Path | None) -> str:
    return path.read_text("utf-8") if path is not None and path.exists() else ""


def _marked_wrongly(
    settings: Settings, book: Book, changed: set[str], progress: Progress
) -> list[PageError]:
    """What is wrong with the marks of the changed chapters, seen from more runs."""
    progress.note("once more, to see which outputs stay the same:")
    runs = {docname: [book.executed[docname]] for docname in sorted(changed)}
    _run_again(settings, runs, changed, progress)
    if alike := {docname for docname in runs if any(_alike(runs[docname]))}:
        progress.note("a third time, since a timing may read the same by chance:")
        _run_again(settings, runs, alike, progress)
    return [error for several in runs.values() for error in _errors(several)]


def _run_again(
    settings: Settings,
    runs: dict[str, list[Executed]],
    docnames: set[str],
    progress: Progress,
) -> None:
    """Execute some chapters anew, and add what they gave to `runs`."""
    with run_folder() as cache:
        only = frozenset(docnames)
        again = dataclasses.replace(settings, cache=cache, only=only)
        book = execute(again, progress)
    raise_all(book.errors)
    for docname in docnames:
        runs[docname].append(book.executed[docname])


def _results(several: list[Executed]) -> Iterator[tuple[Cell, list[str]]]:
    """Each cell with the text that it gave in each run."""
    for together in zip(*several, strict=True):
        cell, _ = together[0]
        yield cell, [pinned_text(result.outputs) for _, result in together]


def _alike(several: list[Executed]) -> Iterator[tuple[Cell, str]]:
    """The cells that are marked as measured and gave the same numbers every time."""
    for cell, texts in _results(several):
        has_numbers = any(character.isdigit() for character in texts[0])
        if "measured" in cell.tags and has_numbers and len(set(texts)) == 1:
            yield cell, texts[0]


def _errors(several: list[Executed]) -> Iterator[PageError]:
    """What is wrong with the marks of a chapter's cells, seen from several runs."""
    path = several[0].chapter.path
    for cell, (first, *others) in _results(several):
        differences = (same_output(first, o, RELATIVE_TOLERANCE) for o in others)
        difference = next((d for d in differences if d is not None), None)
        if not cell.varies and difference is not None:
            yield PageError(
                path,
                cell.line,
                f"cell {cell.number} gave two outputs in two runs",
                "make it the same every time, or tag it 'measured' and assert"
                " its bounds",
                str(difference),
            )
    for cell, text in _alike(several):
        yield PageError(
            path,
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
