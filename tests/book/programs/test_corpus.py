"""Programs of small pages and of random ones: most are right as they are sliced.

Each page of `corpus.txt` reaches a branch of `programs/` that no other page reaches,
nor those of `test_programs` and `test_slice`.

What is wrong is found by running it, as `verify` does: it is lengthened, or caught.
"""

import argparse
import ast
import contextlib
import dataclasses
import functools
import inspect
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from executed_book.programs.cells import SourceCell
from executed_book.programs.slicing import NoFaithfulProgram, Page
from executed_book.programs.text import Programs
from tests.book.programs import harness, random_pages

pytestmark = pytest.mark.usefixtures("ready_workers")

CORPUS = Path(__file__).with_name("corpus.txt")
#: Seeds of random pages: at every push, and in four parts each week.
SEEDS = [range(6), *(range(6 + i, 100, 4) for i in range(4))]
#: At least the first share of the programs is right as it is sliced, and at most the
#: second share is wrong even after all cells above were added. Of the random pages at
#: every push 96 programs of 97 are right and one is lengthened.
AT_EACH_PUSH, EACH_WEEK, OF_CORPUS = (0.98, 0.0), (0.6, 0.05), (0.8, 0.0)


@pytest.mark.weekly
def test_programs_of_small_pages(tmp_path, record_property):
    check(harness.read_pages(CORPUS), OF_CORPUS, tmp_path, record_property)


@pytest.mark.parametrize(
    "seeds", [SEEDS[0], *(pytest.param(s, marks=pytest.mark.weekly) for s in SEEDS[1:])]
)
def test_programs_of_random_pages(seeds: range, tmp_path, record_property):
    bounds = AT_EACH_PUSH if seeds == SEEDS[0] else EACH_WEEK
    pages = {str(seed): random_pages.Page(seed).cells() for seed in seeds}
    check(pages, bounds, tmp_path, record_property)


def check(pages, bounds, folder, record_property) -> None:
    offers = harness.verified(pages, folder)
    kinds = Counter(harness.kind(offer) for some in offers.values() for offer in some)
    record_property("counts", dict(kinds))
    other = "\n".join(
        f"{harness.kind(offer)}: {name}, cell {k}: {offer and offer.verdict.note}"
        for name, some in offers.items()
        for k, offer in enumerate(some)
        if harness.kind(offer) != "right"
    )
    print(kinds, other, sep="\n")
    right, caught = bounds
    assert kinds["right"] >= right * kinds.total(), other
    assert kinds["caught"] <= caught * kinds.total(), other


@pytest.mark.parametrize("module", [argparse, ast, contextlib, dataclasses, functools])
def test_any_python_has_programs_or_a_reason(module: ModuleType):
    """Sources of the standard library, cut into cells: nothing breaks the walk."""
    parts = inspect.getsource(module).split("\n\n\n")
    programs = Programs(Page([SourceCell(part) for part in parts]), "# here")
    made, reasons = 0, []
    for k in range(len(parts)):
        try:
            made += bool(programs.of(k))
        except NoFaithfulProgram as refusal:
            reasons.append(str(refusal))
    assert made + len(reasons) == len(parts)
    assert made > len(parts) / 2
    assert all(reasons)
