"""`verify`: run the programs of the pages by themselves, and keep what they gave."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping

from ..book import Book, execute
from ..errors import BookError, raise_all
from ..model import Chapter, Value
from ..programs.cells import SourceCell, parse
from ..programs.names import bound_names
from ..programs.values import question
from ..programs.verify import verify as run_offers
from ..running.progress import Progress
from ..settings import Settings


def page_values(
    settings: Settings, progress: Progress
) -> Mapping[tuple[str, int], dict[str, str]]:
    """What the names that each cell binds hold on its page, described as text.

    The chapters are executed once more, and asked after each cell; what they said is
    kept as runs are.
    """
    asking = dataclasses.replace(
        settings,
        cache=settings.cache / "values",
        pins=None,
        records=None,
        rules=frozenset(),
    )
    book = execute(asking, progress, choose=_asked)
    return {
        (docname, cell.number): _told(result.values[-1].text)
        for docname, executed in book.executed.items()
        for cell, result in executed
        if result.values
    }


def _told(text: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(text) if text.startswith("{") else {}
    return found


def _asked(chapter: Chapter) -> Chapter:
    """A chapter that describes what each of its cells binds."""
    for cell in chapter.cells:
        names = bound_by(cell.source) if not cell.is_skipped else set()
        values = (Value("eval", question(names), cell.line),) if names else ()
        chapter = chapter.with_cells([cell.number], values=values)
    return dataclasses.replace(chapter, leading=())


def bound_by(source: str) -> set[str]:
    """The names that a cell's source binds."""
    nodes = parse(SourceCell(source, raises="")).nodes
    return {name for name in bound_names(nodes) if not name.startswith("_")}


__all__ = ["BookError", "Book", "page_values", "raise_all", "run_offers"]
