"""Each bench runs, at its smallest."""

import os
import sys
from pathlib import Path

import pytest

from tests.book.conftest import ended, new_book

BENCHES = Path(__file__).parent
#: The arguments with which each takes least time.
SMALLEST = {
    "bench_book": ["--rounds=1", "--docs", "docs"],
    "bench_instruments": ["misses", "lenses"],
    "bench_lm": ["--rounds=1", "--small"],
}


def test_every_bench_has_its_smallest():
    assert {path.stem for path in BENCHES.glob("bench_*.py")} == SMALLEST.keys()


@pytest.mark.weekly
@pytest.mark.parametrize("name", SMALLEST)
def test_it_runs(name: str, tmp_path: Path):
    book = new_book(tmp_path)
    book.chapter("one", "print(1 + 1)")
    python = (sys.executable, "-m", f"tests.bench.{name}")
    path = os.pathsep.join(sys.path)
    status, said = ended(book.start(*SMALLEST[name], python=python, PYTHONPATH=path))
    assert status == 0, said
    assert said
