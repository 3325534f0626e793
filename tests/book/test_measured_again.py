"""Assertions on what was measured, which noise alone can make fail."""

from __future__ import annotations

from .conftest import new_book

MEASURED = """\
:tags: [measured]
from pathlib import Path
count = Path({count!r})
count.write_text(count.read_text() + "x" if count.exists() else "x")
runs = len(count.read_text())
print(runs)"""


def executed(tmp_path, check):
    """The status and output of a build, and how often the chapter ran."""
    book, count = new_book(tmp_path / "book"), tmp_path / "count"
    book.index("one")
    measured = MEASURED.format(count=str(count))
    book.chapter("one", measured, f":tags: [check]\n{check}")
    status, output = book.run("execute")
    return status, output, len(count.read_text())


def test_what_does_not_hold_once_is_measured_again(tmp_path):
    status, output, runs = executed(tmp_path, "assert runs == 2")
    assert (status, runs) == (0, 2)
    assert "did not hold (2 of 3): one" in output


def test_what_does_not_hold_three_times_is_an_error(tmp_path):
    status, output, runs = executed(tmp_path, "assert runs == 4")
    assert (status, runs) == (1, 3)
    assert output.count("raised AssertionError") == 1


def test_what_was_not_measured_is_run_once(tmp_path):
    status, output, runs = executed(tmp_path, "counted = 1\nassert counted == 2")
    assert (status, runs) == (1, 1)
    assert "measured again" not in output


def test_another_error_of_what_was_measured_is_told_at_once(tmp_path):
    status, _, runs = executed(tmp_path, "assert runs / 0")
    assert (status, runs) == (1, 1)
