"""What cells gave in other places: on a GPU, or with another JAX, while it holds."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from ..model import Cell, CellResult, Executed, Output, Provenance
from .comparison import same_output
from .stored import StoredCell, outputs_of, read_outputs, stored_path, stored_source
from .text import pinned_text

#: An address in a message: with another JAX, its documentation lies elsewhere.
_ADDRESS = re.compile(r"https?://\S+")


@dataclass(frozen=True)
class Record:
    """What one cell gave on another device, for a tab beside the page's own output."""

    provenance: Provenance
    outputs: list[Output]


def recorded_elsewhere(folder: Path) -> dict[str, list[Path]]:
    """The files of all pages that were recorded on another device than a CPU."""
    files: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*/**/*.txt")):
        place, _, page = path.relative_to(folder).as_posix().partition("/")
        if not place.startswith("cpu-"):
            files.setdefault(page.removesuffix(".txt"), []).append(path)
    return files


def records_of(
    executed: Executed, paths: Sequence[Path], needs: Callable[[int], set[int]]
) -> tuple[dict[int, list[Record]], dict[str, int]]:
    """The records of a page in these files that hold, by the number of their cell.

    The second says how many cells have changed since they were recorded, by device.
    Records of the kind of device that the page itself ran on are left out. A record
    made with another JAX holds: its tab names that. But where that JAX gave the same
    on the page's own kind of device, the difference is the release's, and is left out.

    Raises:
        PageError: a file cannot be read.
    """
    here, docname = executed.run.provenance, executed.chapter.docname
    sources = [stored_source(cell) for cell in executed.chapter.cells]
    records: dict[int, list[Record]] = {}
    stale: dict[str, int] = {}
    for path, page in zip(paths, map(read_outputs, paths), strict=True):
        where = page.provenance
        if where.device_kind == here.device_kind:
            continue
        holding = same_cells(page.cells, sources, needs)
        folder = path.parents[docname.count("/") + 1]
        old = stored_path(folder, where.jax, docname, here.device_kind)
        before = read_outputs(old).cells if old.exists() else ()
        holding_before = same_cells(before, sources, needs)
        if changed := len(page.cells) - len(holding):
            stale[where.device_kind] = changed
        for cell, result in executed:
            stored = holding.get(cell.number)
            if stored is None:
                continue
            known = [pinned_text(result.outputs)]
            if cell.number in holding_before:
                known.append(holding_before[cell.number].output)
            if _is_another(cell, known, stored):
                record = Record(where, outputs_of(stored))
                records.setdefault(cell.number, []).append(record)
    return records, stale


def passed_elsewhere(
    executed: Executed, paths: Sequence[Path], needs: Callable[[int], set[int]]
) -> dict[int, list[Provenance]]:
    """Where records say that checks passed of which this run alone says too little.

    Such a check has assertions that this run missed and the record did not, or it needs
    a cell whose output depends on the device. A record holds as for `records_of`.

    Raises:
        PageError: a file cannot be read.
    """
    cells = executed.chapter.cells
    sources = [stored_source(cell) for cell in cells]
    on_device = {cell.number for cell in cells if "device" in cell.tags}
    passed: dict[int, list[Provenance]] = {}
    for page in map(read_outputs, paths):
        if page.provenance.device_kind == executed.run.provenance.device_kind:
            continue
        holding = same_cells(page.cells, sources, needs)
        for cell, result in executed:
            stored = holding.get(cell.number)
            if stored is None or stored.failed:
                continue
            ran_there = {*result.missed} - {*stored.missed}
            if ran_there or (result.reached and on_device & needs(cell.number)):
                passed.setdefault(cell.number, []).append(page.provenance)
    return passed


def _is_another(cell: Cell, known: Iterable[str], stored: StoredCell) -> bool:
    """Whether a record shows something else than is `known` of the page's device."""
    if stored.failed or not stored.parts:
        return False
    new, *old = (_ADDRESS.sub("", text) for text in (stored.output, *known))
    return cell.varies or all(same_output(text, new) for text in old)


def is_same(stored: StoredCell | None, result: CellResult) -> bool:
    """Whether a cell gave what is stored of it."""
    now = pinned_text(result.outputs)
    return stored is not None and same_output(stored.output, now) is None


def same_cells(
    stored: Sequence[StoredCell], sources: list[str], needs: Callable[[int], set[int]]
) -> dict[int, StoredCell]:
    """The stored cells that have not changed, by their number among the `sources`.

    A cell has not changed if its source is the same, and so are the sources of all
    cells that it needed when it was stored and that it `needs` now. If its needs were
    not stored, it needs all cells above it.
    """
    pairs = list(same_sources([cell.source for cell in stored], sources))
    then, now = {i + 1 for i, _ in pairs}, {j + 1 for _, j in pairs}
    needed = [
        frozenset(range(1, i + 1)) if cell.needs is None else cell.needs
        for i, cell in enumerate(stored)
    ]
    return {
        j + 1: stored[i] for i, j in pairs if needed[i] <= then and needs(j + 1) <= now
    }


def same_sources(old: list[str], new: list[str]) -> Iterator[tuple[int, int]]:
    """The positions, in both, of what is the same, in their order."""
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for i, j, size in matcher.get_matching_blocks():
        yield from ((i + k, j + k) for k in range(size))
