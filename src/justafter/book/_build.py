"""Building the site: execute, render, and replace the old site by the new.

Everything happens in a work folder beside the site. The site itself is only
ever replaced as a whole, by a build that finished; whatever goes wrong, the
previous site still stands.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from ._errors import BookError
from ._execute import Book, count_cells, execute
from ._progress import Progress
from ._settings import Settings
from ._store import write_whole


def build(settings: Settings, config: Path, output: Path, progress: Progress) -> None:
    """Execute the book and publish it at `output`.

    Raises:
        BookError: something is wrong; `output` is as it was before.
    """
    work = output.parent / f".{output.name}-work"
    with _only_one(work, progress):
        book = execute(settings, progress)
        if book.errors:
            raise BookError(_report(book))
        progress.note(count_cells(book))
        progress.note(_records_note(book))
        _render(settings, config, work, book)
        _publish(work / "html", output)
    progress.note(f"The book stands at {_shown(output / 'index.html')}")


def _report(book: Book) -> str:
    count = len(book.errors)
    noun = "problem" if count == 1 else "problems"
    return "\n\n".join(
        [*map(str, book.errors), f"{count} {noun}: nothing was published"]
    )


def _records_note(book: Book) -> str:
    """Which platforms' records the pages show, and which records are stale."""
    cells = [found for by_cell in book.records.values() for found in by_cell.values()]
    labels = sorted({record.label for found in cells for record in found})
    lines = []
    if cells or not book.stale:
        whose = ", ".join(labels) or "another platform"
        lines.append(f"{len(cells)} cells show a record of {whose}")
    if book.stale:
        lines.append(
            f"{len(book.stale)} records are stale and not shown: their cells have"
            " changed; 'nox -s docs_gpu' makes them anew"
        )
        lines += [f"  {name}" for name in book.stale]
    return "\n".join(lines)


@contextlib.contextmanager
def _only_one(work: Path, progress: Progress) -> Iterator[None]:
    """Let one build at a time use the work folder; the lock dies with its owner."""
    work.mkdir(parents=True, exist_ok=True)
    with (work / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.note("another build is at work here: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _render(settings: Settings, config: Path, work: Path, book: Book) -> None:
    """Run Sphinx in the work folder; start afresh if it was left unfinished."""
    from sphinx.cmd.build import build_main

    from ._extension import hand_over

    hand_over(book)
    unfinished = work / "unfinished"
    if unfinished.exists():
        shutil.rmtree(work / "doctrees", ignore_errors=True)
        shutil.rmtree(work / "html", ignore_errors=True)
    write_whole(unfinished, "a build started here and has not finished\n")
    status = build_main(
        [
            *("-b", "html", "-c", str(config), "-d", str(work / "doctrees")),
            *("-n", "-W", "--keep-going", "-q"),
            *("-D", f"justafter_cache={settings.cache}"),
            str(settings.source),
            str(work / "html"),
        ]
    )
    if status:
        raise BookError("the pages could not be rendered: nothing was published")
    unfinished.unlink()


def _publish(finished: Path, output: Path) -> None:
    """Put a copy of the finished site in the place of the old one."""
    new = output.with_name(f".{output.name}-new")
    old = output.with_name(f".{output.name}-old")
    for folder in (new, old):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(
        finished, new, ignore=shutil.ignore_patterns(".buildinfo*", "jupyter_execute")
    )
    if output.exists():
        output.rename(old)
    new.rename(output)
    shutil.rmtree(old, ignore_errors=True)


def _shown(path: Path) -> str:
    return os.path.relpath(path)
