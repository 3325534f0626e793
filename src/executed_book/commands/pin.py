"""`pin`: accepting the outputs as they are now, and showing what changed."""

import dataclasses
import difflib
from collections.abc import Iterator
from pathlib import Path

from ..book import Book, execute
from ..checking.comparison import same_output
from ..checking.stored import (
    accepted_page,
    accepted_path,
    is_accepted,
    outputs_text,
    stored_path,
)
from ..checking.text import pinned_text
from ..errors import PageError, counted, raise_all
from ..files import write_whole
from ..running.processes import run_folder
from ..running.progress import Progress
from ..settings import Settings


def pin(settings: Settings, progress: Progress) -> None:
    """Pin the outputs of all chapters as they are now, and print each change.

    Chapters whose outputs change are executed a second time first: an output
    that is not the same twice cannot be pinned.

    Raises:
        BookError: a chapter fails, or an output is not the same twice, or `conf.py`
            does not say where pins are. No pin changes.
    """
    folder = settings.outputs_folder
    settings = dataclasses.replace(settings, compares=False)
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
        raise_all([*_not_the_same(settings, book, set(changed), progress)])
    for docname, path in changed.items():
        before = path if path.exists() else accepted_path(folder, docname)
        old, new = _read(before).splitlines(), texts[path].splitlines()
        lines = difflib.unified_diff(old, new, "pinned", docname, lineterm="", n=2)
        progress.note("\n".join(lines))
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
    return (
        path.read_text("utf-8", "replace") if path is not None and path.exists() else ""
    )


def _not_the_same(
    settings: Settings, book: Book, changed: set[str], progress: Progress
) -> Iterator[PageError]:
    """The cells of some chapters that give something else in a second run."""
    progress.note("once more, to see which outputs stay the same:")
    with run_folder() as cache:
        again = dataclasses.replace(settings, cache=cache, only=frozenset(changed))
        second = execute(again, progress)
    raise_all(second.errors)
    for docname in sorted(changed):
        first = book.executed[docname]
        for (cell, one), (_, other) in zip(
            first, second.executed[docname], strict=True
        ):
            texts = pinned_text(one.outputs), pinned_text(other.outputs)
            difference = same_output(*texts)
            if not cell.varies and difference is not None:
                yield first.chapter.wrong(
                    cell,
                    "gave two outputs in two runs",
                    "make it the same every time, or tag it 'measured' and assert"
                    " its bounds",
                    difference,
                )
