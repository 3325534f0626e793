"""Snapshots: what every cell gives here and now; and how two of them differ."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypedDict, cast

from ..book import Book
from ..checking.comparison import same_output
from ..checking.pins import RELATIVE_TOLERANCE
from ..checking.text import pinned_text
from ..errors import BookError
from ..model import Executed, PlainProvenance, plain_provenance


@dataclass(frozen=True)
class CellText:
    """One cell with the text that it gave; `varies` if it may be another each time."""

    source: str
    number: int
    varies: bool
    failed: bool
    output: str


@dataclass(frozen=True)
class ChapterText:
    """A chapter's cells, or in `broken` why it could not run to its end."""

    title: str
    cells: tuple[CellText, ...] = ()
    broken: str | None = None


#: What a snapshot was taken with: what is known of the first run's provenance.
Versions = PlainProvenance


@dataclass(frozen=True)
class Snapshot:
    """What every cell of a book gives; `versions` are those that it was taken with."""

    versions: Versions
    chapters: dict[str, ChapterText]


@dataclass(frozen=True)
class Change:
    """One cell that gives another output, or a chapter that broke.

    `kind` is "changed", "broke" or "did not raise"; `new` and `old` are the outputs on
    the book's own release and on the other.
    """

    docname: str
    kind: str
    number: int = 0
    source: str = ""
    new: str = ""
    old: str = ""


@dataclass(frozen=True)
class Drift:
    """How two snapshots of the same book differ.

    `cells` is the number of cells that were compared; `titles` are those of chapters in
    which something changes.
    """

    base: Versions
    other: Versions
    cells: int
    titles: dict[str, str]
    changes: tuple[Change, ...]


class PlainChange(TypedDict, total=False):
    """A `Change` in JSON; what is empty is left out."""

    docname: str
    kind: str
    number: int
    source: str
    new: str
    old: str


class PlainDrift(TypedDict):
    """A `Drift` in JSON."""

    base: Versions
    other: Versions
    cells: int
    titles: dict[str, str]
    changes: list[PlainChange]


def snapshot_of(book: Book) -> Snapshot:
    """What every cell gave, those after a failing cell included.

    Raises:
        BookError: no chapter ran to its end.
    """
    whole = {
        docname: executed
        for docname, executed in book.executed.items()
        if len(executed.run.results) == len(executed.chapter.cells)
    }
    if not whole:
        raise BookError("no chapter runs here\n\n" + "\n\n".join(map(str, book.errors)))
    chapters = {}
    for chapter in book.chapters:
        if chapter.docname in whole:
            cells = tuple(_cells(whole[chapter.docname]))
            chapters[chapter.docname] = ChapterText(chapter.title, cells)
        else:
            said = [e.message for e in book.errors if e.path == chapter.path]
            broken = "; ".join(said)
            chapters[chapter.docname] = ChapterText(chapter.title, broken=broken)
    provenance = next(iter(whole.values())).run.provenance
    return Snapshot(plain_provenance(provenance), chapters)


def _cells(executed: Executed) -> Iterator[CellText]:
    for cell, result in executed:
        yield CellText(
            cell.source,
            cell.number,
            cell.varies,
            result.failure is not None,
            pinned_text(result.outputs),
        )


def write_snapshot(snapshot: Snapshot, path: Path) -> None:
    """Write a snapshot as JSON."""
    path.write_text(json.dumps(asdict(snapshot)), "utf-8")


def read_snapshot(path: Path) -> Snapshot:
    """The inverse of `write_snapshot`.

    Raises:
        BookError: the file is none.
    """
    try:
        plain = json.loads(path.read_text("utf-8"))
        chapters = {
            docname: ChapterText(
                chapter["title"],
                tuple(CellText(**cell) for cell in chapter["cells"]),
                chapter["broken"],
            )
            for docname, chapter in plain["chapters"].items()
        }
        versions = cast("Versions", {**plain["versions"]})
        return Snapshot(versions, chapters)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BookError(
            f"{path}: not a snapshot ({type(error).__name__}: {error})\n"
            "    → take it with 'snapshot'"
        ) from None


def compare(base: Snapshot, other: Snapshot) -> Drift:
    """How two snapshots of the same book differ, in its order.

    Raises:
        BookError: the two were not taken of the same cells.
    """
    changes: list[Change] = []
    cells = 0
    nothing = ChapterText("", broken="there is no such chapter")
    for docname, now in base.chapters.items():
        then = other.chapters.get(docname, nothing)
        broken = then.broken if then.broken is not None else now.broken
        if broken is not None:
            changes.append(Change(docname, "broke", new=broken))
            continue
        if [c.source for c in now.cells] != [c.source for c in then.cells]:
            raise BookError(
                f"{docname}: the snapshots were taken of different cells\n"
                "    → take both again without changing the chapter in between"
            )
        cells += len(now.cells)
        changes += _changes(docname, now, then)
    titles = {c.docname: base.chapters[c.docname].title for c in changes}
    return Drift(base.versions, other.versions, cells, titles, tuple(changes))


def _changes(docname: str, now: ChapterText, then: ChapterText) -> Iterator[Change]:
    for new, old in zip(now.cells, then.cells, strict=True):
        kind = _kind(new, old)
        if kind is not None:
            yield Change(docname, kind, new.number, new.source, new.output, old.output)


def _kind(new: CellText, old: CellText) -> str | None:
    """How a cell differs; None if it does not, or may."""
    if old.failed and not new.failed:
        return "broke"
    if new.failed and not old.failed:
        return "did not raise"
    if new.varies:
        return None
    same = same_output(new.output, old.output, RELATIVE_TOLERANCE) is None
    return None if same else "changed"


def to_plain(drift: Drift) -> PlainDrift:
    """A drift as plain data, made to be read in a diff: what is empty is left out."""
    return {
        "base": drift.base,
        "other": drift.other,
        "cells": drift.cells,
        "titles": drift.titles,
        "changes": [_plain_change(change) for change in drift.changes],
    }


def _plain_change(change: Change) -> PlainChange:
    plain = {name: value for name, value in asdict(change).items() if value}
    return cast("PlainChange", plain)


def from_plain(plain: PlainDrift) -> Drift:
    """The inverse of `to_plain`."""
    return Drift(
        base=plain["base"],
        other=plain["other"],
        cells=plain["cells"],
        titles=plain["titles"],
        changes=tuple(Change(**change) for change in plain["changes"]),
    )
