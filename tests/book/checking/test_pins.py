"""Outputs are compared with what is pinned, and accepted by a step of its own."""

from __future__ import annotations

import pytest

from executed_book.checking.pins import Pin, read_pins, write_pins
from executed_book.model import Provenance

from ..conftest import copy_of, new_book


@pytest.fixture(scope="module")
def pinned_once(tmp_path_factory):
    """A tiny book with its outputs pinned."""
    book = new_book(tmp_path_factory.mktemp("pinned"))
    (book.root / "outputs" / "pins").mkdir(parents=True)
    book.index("one")
    book.page(
        "one",
        "---\nfile_format: mystnb\n---\n\n# One\n\n"
        "```{code-cell}\nx = 3\nprint('x is', x)\nx / 7\n```\n\n"
        "Twice that is {value}`2 * x`.\n\n"
        '```{code-cell}\n:raises: "ZeroDivisionError: division"\nx / 0\n```\n\n'
        "```{code-cell}\n:tags: [measured]\nimport time\n\nt = time.time()\n"
        "assert t > 0\nprint(t)\n```\n",
    )
    status, output = book.run("pin")
    assert status == 0, output
    assert "+| x is 3" in output, "what is accepted is shown"
    assert "3 cells: 2 give the same every time, 1 are marked" in output
    return book


@pytest.fixture
def pinned(pinned_once, tmp_path):
    return copy_of(pinned_once, tmp_path)


def pins(book):
    return book.root / "outputs" / "pins" / "one.txt"


def replace(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_pins_read_as_a_session(pinned):
    assert pins(pinned).read_text().partition("\n\n")[2] == (
        ">>> x = 3\n... print('x is', x)\n... x / 7\n"
        "| x is 3\n| 0.42857142857142855\n| {value} 2 * x = 6\n\n"
        ">>> x / 0\n| ZeroDivisionError: division by zero\n\n"
        ">>> import time\n...\n... t = time.time()\n... assert t > 0\n... print(t)\n~\n"
    )


def test_what_holds_passes(pinned):
    pinned.executed()


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("| x is 3", "| x is 4", 8, ["expected | x is 4", "got      | x is 3"]),
        ("0.428571", "0.438571", 8, ["expected | 0.43857"]),
        ("2 * x = 6", "2 * x = 7", 8, ["expected | {value} 2 * x = 7"]),
        ("by zero", "by nothing", 17, ["expected | ZeroDivisionError: division by no"]),
        ("... print(t)\n~", "... print(t)\n| 4", 22, ["marked as varying"]),
        (">>> x / 0", ">>> x / 1", 17, ["is new or has changed", "executed_book pin"]),
    ],
)
def test_what_differs_fails_at_its_line(pinned, old, new, line, words):
    replace(pins(pinned), old, new)
    status, output = pinned.run("execute")
    assert status == 1
    assert f"docs/one.md:{line}: " in output
    for word in words:
        assert word in output


def test_rounding_is_tolerated(pinned):
    replace(pins(pinned), "0.42857142857142855", "0.428571")
    pinned.executed()


def test_a_removed_cell_and_a_new_chapter_are_told(pinned):
    replace(pinned.root / "docs" / "one.md", "x / 0\n", "int('0') / 0\n")
    pinned.run("execute")
    path = pins(pinned)
    path.write_text(path.read_text() + "\n>>> gone()\n| 1\n")
    pinned.chapter("two", "1")
    _, output = pinned.run("execute")
    assert "docs/two.md:1: the chapter's outputs are not pinned" in output
    assert "cell 2 is new or has changed" in output


def test_an_output_that_changes_by_itself_cannot_be_pinned(pinned):
    pinned.chapter("one", "import time\nprint(time.time_ns())")
    before = pins(pinned).read_text()
    status, output = pinned.run("pin")
    assert status == 1
    assert "docs/one.md:9: cell 1 gave two outputs in two runs" in output
    assert pins(pinned).read_text() == before


def test_a_mark_without_need_is_an_error(pinned):
    pinned.chapter("one", ":tags: [measured]\nassert True\nprint(42)")
    status, output = pinned.run("pin")
    assert status == 1
    assert "docs/one.md:10: cell 1 is marked as measured, and gave the same" in output


def test_a_timing_that_reads_the_same_by_chance_gets_a_third_run(pinned, tmp_path):
    count = tmp_path / "count"
    count.write_text("0")
    pinned.chapter(
        "one",
        ":tags: [measured]\nfrom pathlib import Path\n"
        f"count = Path({str(count)!r})\nruns = int(count.read_text())\n"
        "count.write_text(str(runs + 1))\nassert True\nprint(runs // 2)",
    )
    status, output = pinned.run("pin")
    assert status == 0, output
    assert count.read_text() == "3"


def test_files_and_pins_are_inverse():
    made = [
        Pin("", "{value} x = 1"),
        Pin("a = 1\n\nb = 2", ""),
        Pin("print('\\n>>> x\\n| y')", "\n>>> x\n| y\n\nz"),
        Pin("t()", None),
    ]
    text = write_pins(made, Provenance("cpu", "cpu", 1, "1", "1", "3"))
    assert read_pins(text) == made
