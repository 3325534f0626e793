"""Pins: what a build gives is what was accepted, or the build fails.

Accepting new outputs is a step of its own: the command `pin`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from difflib import SequenceMatcher
from pathlib import Path

from ..errors import PageError
from ..model import Cell, Chapter, Executed
from .comparison import same_output
from .stored import (
    RELATIVE_TOLERANCE,
    StoredCell,
    accepted_page,
    accepted_path,
    read_outputs,
)

_ACCEPT = "accept them with 'python -m executed_book pin'"


def check_pins(
    executed: Executed, folder: Path, spoilt: Collection[int] = ()
) -> Iterator[PageError]:
    """Every output of a run that is not the accepted one, at the cell's line.

    Cells whose numbers are in `spoilt` failed, which `rules.failed` reports.
    """
    chapter = executed.chapter
    path = accepted_path(folder, chapter.docname, executed.run.provenance.jax)
    if path is None:
        yield PageError(
            chapter.path,
            1,
            "the chapter's outputs are not pinned",
            f"read them on the page, then {_ACCEPT}",
        )
        return
    try:
        pinned = read_outputs(path).cells
    except PageError as error:
        yield error
        return
    yield from _compared_page(executed, pinned, spoilt)


def _compared_page(
    executed: Executed, pinned: tuple[StoredCell, ...], spoilt: Collection[int]
) -> Iterator[PageError]:
    """What is new on a page, what differs from its pins, and what is gone."""
    chapter, now = executed.chapter, accepted_page(executed).cells
    cells: list[Cell | None] = [*([None] if chapter.leading else []), *chapter.cells]
    before, after = ([cell.source for cell in page] for page in (pinned, now))
    opcodes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    is_whole = len(chapter.cells) == len(executed.run.results)
    has_new = False
    for kind, i, i_end, j, j_end in opcodes:
        if kind == "equal":
            for k, cell in enumerate(cells[j:j_end]):
                if cell is None or cell.number not in spoilt:
                    yield from _compared(chapter, cell, pinned[i + k], now[j + k])
            continue
        has_new = has_new or j < j_end
        yield from (_not_pinned(chapter, cell) for cell in cells[j:j_end])
        if j == j_end and is_whole and not has_new:
            yield PageError(
                chapter.path,
                1,
                f"{i_end - i} pinned cells are no longer on the page",
                "accept that with 'python -m executed_book pin'",
                pinned[i].source,
            )


def _not_pinned(chapter: Chapter, cell: Cell | None) -> PageError:
    return PageError(
        chapter.path,
        cell.line if cell else 1,
        f"cell {cell.number if cell else 0} is new or has changed"
        " since its output was pinned",
        f"read its output on the page, then {_ACCEPT}",
    )


def _compared(
    chapter: Chapter, cell: Cell | None, pinned: StoredCell, now: StoredCell
) -> Iterator[PageError]:
    if pinned.varies != now.varies:
        detail = "one of them is marked as varying, the other is not"
    else:
        difference = same_output(pinned.text, now.text, RELATIVE_TOLERANCE)
        if difference is None:
            return
        detail = str(difference)
    yield PageError(
        chapter.path,
        cell.line if cell else 1,
        f"cell {cell.number if cell else 0} does not give what is pinned",
        f"correct the cell; or if the new outputs are right, {_ACCEPT}",
        detail,
    )
