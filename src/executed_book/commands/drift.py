"""`snapshot` and `drift`: what another version of JAX makes of the book.

`snapshot` is taken on each version, keeps how they differ in the
repository, and writes a page of it.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from ..book import execute
from ..releases.page import keep
from ..releases.snapshots import compare, read_snapshot, snapshot_of, write_snapshot
from ..running.processes import run_folder
from ..running.progress import Progress
from ..settings import Settings
from ..words import counted


def snapshot(settings: Settings, file: Path, progress: Progress) -> None:
    """Execute the book anew and write what every cell gives.

    Raises:
        BookError: no chapter runs here.
    """
    with run_folder() as cache:
        book = execute(dataclasses.replace(settings, cache=cache, pins=None), progress)
    write_snapshot(snapshot_of(book), file)


def drift(base: Path, other: Path, kept: Path, page: Path, progress: Progress) -> None:
    """Keep how two snapshots differ below `kept`, and write the page of all that is.

    Raises:
        BookError: a file is no snapshot, or they were taken of different cells.
    """
    found = compare(read_snapshot(base), read_snapshot(other))
    keep(found, kept, page)
    for change in found.changes:
        where = f"cell {change.number}" if change.number else "the chapter"
        progress.note(f"{change.docname}: {where} {change.kind}")
    progress.note(f"{len(found.changes)} of {counted(found.cells, 'cell')} differ")
