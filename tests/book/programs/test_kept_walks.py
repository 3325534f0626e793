"""A walk through a function that is kept tells what a repeated walk would.

The programs of a page are made twice: once as always, once with every call of a
function walked again, whatever was seen before.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

from executed_book.programs import NoFaithfulProgram, Page, Programs, SourceCell
from executed_book.programs.run import Run
from executed_book.reading.chapters import read_page
from tests.book.programs import harness, random_pages
from tests.book.programs.test_corpus import FILES, SEEDS

DOCS = Path(__file__).parents[3] / "docs"
#: These need seconds where nothing is kept, or do not end.
LONG = {"systems/lora", "systems/training-loop", "devices/performance"}
CHAPTERS = sorted(
    path.relative_to(DOCS).with_suffix("").as_posix()
    for path in DOCS.rglob("*.md")
    if "{code-cell}" in path.read_text("utf-8")
)
LONG_PAGES = {"a statement that takes too long to be followed prints once"}
#: What two calls make in one statement is one thing where the second walk is the first.
SHARED = {"closure counter"}
#: Pages on which a second walk does what the first one did not, each for a reason.
OWN = harness.read_pages(Path(__file__).with_name("kept_walks.txt"))
QUICK = SEEDS[::25]
#: So many cells of a random page make its objects.
MAKING = 10


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what is kept, more calls are walked through."""
    monkeypatch.setattr(Run, "LIMIT", 10 * Run.LIMIT)
    monkeypatch.setattr(Run, "WORK", 10 * Run.WORK)


def programs(cells: Sequence[SourceCell]) -> list[tuple[str, frozenset[object]]]:
    """The text of each cell's program and what it holds, or why there is none."""
    made = Programs(Page(cells), "# here")
    found = []
    for k in range(len(cells)):
        try:
            program = made.of(k)
            found.append((program.text, frozenset[object](program.kept)))
        except NoFaithfulProgram as refusal:
            found.append((str(refusal), frozenset[object]()))
    return found


def both(cells: Sequence[SourceCell]) -> tuple[object, object]:
    """The programs with what is kept, and without."""
    kept = programs(cells)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Run, "walk_again", lambda self, key: None)
        return kept, programs(cells)


def chapter(name: str) -> list[SourceCell]:
    read = read_page(DOCS / f"{name}.md", DOCS).chapter
    assert read is not None
    return [SourceCell(cell.source, cell.tags, cell.raises) for cell in read.cells]


def crowded(seed: int) -> list[SourceCell]:
    """A random page whose statements call the same functions again and again.

    Between two calls of a function stands what may change what it sees.
    """
    cells = random_pages.Page(seed).cells()
    made = cells[:MAKING]
    for first in range(MAKING, len(cells) - 2):
        parts = [cell.code for cell in cells[first : first + 3]]
        body = textwrap.indent("\n".join(2 * parts), "    ")
        made.append(SourceCell(f"for again in range(2):\n{body}"))
        made.append(SourceCell("print(items, more, table, count)"))
    return made


@pytest.mark.parametrize("name", OWN)
def test_programs_of_pages_where_a_second_walk_sees_something_else(name: str):
    kept, repeated = both(OWN[name])
    assert kept == repeated


def test_a_walk_that_is_kept_too_long_is_told(monkeypatch: pytest.MonkeyPatch):
    """All of these pages are sensitive to walks that are never repeated."""
    repeated = {name: programs(cells) for name, cells in OWN.items()}
    monkeypatch.setattr(Run, "walk_again", lambda self, key: self.walked.get(key))
    kept = {name: programs(cells) for name, cells in OWN.items()}
    assert [name for name in OWN if kept[name] == repeated[name]] == []


@pytest.mark.parametrize("seed", QUICK)
def test_programs_of_random_pages(seed: int):
    kept, repeated = both(crowded(seed))
    assert kept == repeated


@pytest.mark.parametrize("name", ["tracing/retracing", "composing/pytrees"])
def test_programs_of_chapters(name: str):
    kept, repeated = both(chapter(name))
    assert kept == repeated


def test_walks_are_kept_and_found_again():
    """What is compared differs: nothing would be tested if no walk were ever kept."""
    found, own = [], Run.walk_again

    def noted(self: Run, key: object) -> object:
        found.append(own(self, key))
        return found[-1]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Run, "walk_again", noted)
        for seed in QUICK:
            programs(crowded(seed))
    assert sum(walked is not None for walked in found) > 50


@pytest.mark.weekly
def test_programs_of_all_chapters():
    assert set(CHAPTERS) > LONG
    for name in sorted({*CHAPTERS} - LONG):
        kept, repeated = both(chapter(name))
        assert kept == repeated, name


@pytest.mark.weekly
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_programs_of_small_pages(path: Path):
    for name, cells in harness.read_pages(path).items():
        if name in LONG_PAGES:
            continue
        kept, repeated = both(cells)
        if name in SHARED:
            assert longer_at_most(kept, repeated), name
        else:
            assert kept == repeated, name


@pytest.mark.weekly
@pytest.mark.parametrize("seed", sorted({*SEEDS} - {*QUICK}))
def test_programs_of_more_random_pages(seed: int):
    kept, repeated = both(crowded(seed))
    assert kept == repeated


def longer_at_most(kept: object, repeated: object) -> bool:
    """Whether each program holds what the other does, and some program more."""
    pairs = [(one[1], other[1]) for one, other in zip(kept, repeated, strict=True)]
    return all(one >= other for one, other in pairs) and kept != repeated
