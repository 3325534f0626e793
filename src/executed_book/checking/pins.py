"""Pins: what a build gives is what was accepted, or the build fails.

Accepting new outputs is a step of its own: the command `pin`.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from ..errors import PageError
from ..model import Executed
from .comparison import same_output
from .elsewhere import same_sources
from .stored import accepted_page, accepted_path, read_outputs

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
        hint = f"read them on the page, then {_ACCEPT}"
        yield PageError(chapter.path, 1, "the chapter's outputs are not pinned", hint)
        return
    try:
        pinned = read_outputs(path).cells
    except PageError as error:
        yield error
        return
    now = accepted_page(executed).cells
    pairs = same_sources([c.source for c in pinned], [c.source for c in now])
    before = {j: pinned[i] for i, j in pairs}
    for j, (cell, gave) in enumerate(zip(chapter.cells, now, strict=False)):
        if j not in before:
            what = "is new or has changed since its output was pinned"
            yield chapter.wrong(
                cell, what, f"read its output on the page, then {_ACCEPT}"
            )
        elif cell.number not in spoilt:
            difference = same_output(before[j].text, gave.text)
            if before[j].varies != gave.varies:
                difference = "one of them is marked as varying, the other is not"
            if difference is not None:
                what = "does not give what is pinned"
                hint = f"correct the cell; or if the new outputs are right, {_ACCEPT}"
                yield chapter.wrong(cell, what, hint, difference)
    gone = [cell.source for cell in pinned if cell not in before.values()]
    is_whole = len(chapter.cells) == len(executed.run.results)
    if gone and is_whole and len(before) == len(now):
        what = f"{len(gone)} pinned cells are no longer on the page"
        yield PageError(chapter.path, 1, what, f"if that is right, {_ACCEPT}", gone[0])
