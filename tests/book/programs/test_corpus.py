"""Every program of several hundred small pages gives what its page shows."""

from __future__ import annotations

import argparse
import ast
import contextlib
import dataclasses
import functools
import inspect
from pathlib import Path
from types import ModuleType

import pytest

from executed_book.programs import NoFaithfulProgram, Page, Programs, SourceCell
from tests.book.programs import harness, random_pages

HERE = Path(__file__).parent
FILES = sorted([*HERE.glob("corpus/*.txt"), *HERE.glob("second/*.txt")])
#: Random pages, each by its seed.
SEEDS = range(100)


@pytest.mark.weekly
@pytest.mark.parametrize(
    "path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_programs_of_small_pages(path: Path, record_property):
    check(harness.read_pages(path), record_property)


@pytest.mark.parametrize("part", range(4))
def test_programs_of_random_pages(part: int, record_property):
    seeds = SEEDS[part::4]
    check({str(s): random_pages.Page(s).cells() for s in seeds}, record_property)


def check(pages: dict[str, list[SourceCell]], record_property) -> None:
    verdicts = harness.judge(pages, harness.execute(pages))
    counts = harness.counts(verdicts)
    record_property("counts", counts)
    print(counts)
    wrong = [
        f"{v.page}, cell {v.cell}: {v.why}\n{v.text}" for v in verdicts if v.is_bad
    ]
    assert not wrong, "\n\n".join(wrong)


def test_a_wrong_program_is_told(monkeypatch: pytest.MonkeyPatch):
    """Without what a call changed, a program of a page shows something else."""
    page = {"page": harness.read_cells("# %%\na = [1]\n# %%\na.append(2)\n# %%\na\n")}
    executed = harness.execute(page)
    assert [v.kind for v in harness.judge(page, executed)] == ["right"] * 3
    needed = Page.needed
    monkeypatch.setattr(Page, "needed", lambda self, k: needed(self, k)[:1])
    last = harness.judge(page, executed)[-1]
    assert last.kind == "wrong"
    assert "[1, 2]" in last.why


@pytest.mark.parametrize("seed", SEEDS[::10])
def test_whole_programs_of_random_pages_hold_all_that_is_above(seed: int):
    """The program for a cell whose short one was found wrong leaves nothing out."""
    page = Page(random_pages.Page(seed).cells())
    programs = Programs(page, "# here")
    for k in range(len(page.cells)):
        assert programs.whole(k).is_whole
        above = [s for s in page.statements if s.cell < k]
        assert len(programs.whole(k).kept) == len(above)
        assert set(programs.of(k).kept) <= set(programs.whole(k).kept)


def test_whole_programs_give_what_the_page_shows(record_property):
    """Checked over the pages about functions and about failures."""
    for name in ("functions", "failures"):
        pages = harness.read_pages(HERE / "corpus" / f"{name}.txt")
        pages = dict(list(pages.items())[::4])
        verdicts = harness.judge(pages, harness.execute(pages), whole=True)
        assert [v for v in verdicts if v.is_bad] == []


@pytest.mark.parametrize("module", [argparse, ast, contextlib, dataclasses, functools])
def test_any_python_has_programs_or_a_reason(module: ModuleType):
    """Sources of the standard library, cut into cells: nothing breaks the walk."""
    parts = inspect.getsource(module).split("\n\n\n")
    programs = Programs(Page([SourceCell(part) for part in parts]), "# here")
    made, reasons = 0, []
    for k in range(len(parts)):
        try:
            made += bool(programs.of(k).text)
        except NoFaithfulProgram as refusal:
            reasons.append(refusal.why)
    assert made + len(reasons) == len(parts)
    assert made > len(parts) / 2
    assert all(reasons)
