"""Outputs are compared with what is pinned, and accepted by a step of its own."""

from __future__ import annotations

import pytest

from executed_book.checking.pins import (
    Pin,
    check_pins,
    is_pin_file,
    pinned_with,
    pins_of,
    read_pins,
    write_pins,
)
from executed_book.model import Cell, Provenance, Value, ValueResult
from executed_book.platforms.records import pinned_texts

from ..conftest import copy_of, new_book
from ..made import CPU, chapter, executed, gave, printed, shown


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


# -- one run at a time


def told(tmp_path, made, *results, pinned=None, spoilt=()):
    """What is wrong with a run of cells whose outputs these pins are."""
    if pinned is not None:
        text = pinned if isinstance(pinned, str) else write_pins(pinned, CPU)
        (tmp_path / "one.txt").write_text(text)
    errors = check_pins(executed(made, *results), tmp_path, spoilt)
    return [f"{error.line}: {error.message}" for error in errors]


@pytest.mark.parametrize(
    "source",
    ["x = 1  \ny", "if x:\n    \n    y", "x\x0c\ny", "\n\nx\n", "'''a\n\nb'''"],
)
def test_any_source_can_be_pinned(tmp_path, source):
    made = chapter(source)
    pins = pins_of(executed(made, gave(shown("1"))))
    assert told(tmp_path, made, gave(shown("1")), pinned=pins) == []
    assert pinned_texts(made, tmp_path) == {1: "1"}


@pytest.mark.parametrize("output", ["a\rb", "a\n\n\nb", "  a", "| a", "~", "\x0c"])
def test_any_output_can_be_pinned(tmp_path, output):
    made, result = chapter("x"), gave(printed(output))
    pins = pins_of(executed(made, result))
    assert told(tmp_path, made, result, pinned=pins) == []
    other = gave(printed(output + "other"))
    assert len(told(tmp_path, made, other, pinned=pins)) == 1


def test_values_above_the_first_cell_are_pinned_too(tmp_path):
    value = Value("value", "x", 3)
    made = chapter("x", leading=(value, Value("measured", "t", 4)))
    run = {"leading": (ValueResult("7"), ValueResult("0.1"))}
    pins = pins_of(executed(made, gave(), **run))
    assert pins[0] == Pin("", "{value} x = 7")
    (tmp_path / "one.txt").write_text(write_pins(pins, CPU))
    other = executed(made, gave(), leading=(ValueResult("8"), ValueResult("0.2")))
    [error] = check_pins(other, tmp_path)
    assert (error.line, error.message) == (1, "cell 0 does not give what is pinned")


def test_what_varies_is_pinned_without_its_output(tmp_path):
    varies = Cell(1, "x", 5, tags=frozenset({"measured"}))
    assert pins_of(executed(chapter(varies), gave(shown("1")))) == [Pin("x", None)]
    quoted = Cell(1, "x", 5, tags=varies.tags, values=(Value("value", "n", 9),))
    result = gave(shown("1"), values=(ValueResult("3"),))
    assert pins_of(executed(chapter(quoted), result)) == [Pin("x", "{value} n = 3")]


def test_cells_that_are_gone_are_told_once_nothing_else_is(tmp_path):
    pins = [Pin("x", "1"), Pin("gone", "2")]
    run = chapter("x"), gave(shown("1"))
    assert told(tmp_path, *run, pinned=pins) == [
        "1: 1 pinned cells are no longer on the page"
    ]
    changed = chapter("y"), gave(shown("1"))
    assert told(tmp_path, *changed, pinned=pins) == [
        "10: cell 1 is new or has changed since its output was pinned"
    ]


def test_a_chapter_that_ended_early_misses_no_pins(tmp_path):
    pins = [Pin("x", "1"), Pin("y", "2")]
    assert told(tmp_path, chapter("x", "y"), gave(shown("1")), pinned=pins) == []


def test_cells_that_failed_are_not_compared(tmp_path):
    run = chapter("x", "y"), gave(shown("7")), gave(shown("2"))
    pins = [Pin("x", "1"), Pin("y", "2")]
    assert len(told(tmp_path, *run, pinned=pins)) == 1
    assert told(tmp_path, *run, pinned=pins, spoilt={1}) == []


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    (tmp_path / "one.txt").write_bytes(b"# JAX 1, cpu\n\n>>> s\xe9\n")
    [said] = told(tmp_path, chapter("x"), gave())
    assert said.startswith("1: not a file of pins: 'utf-8' codec can't decode")


def test_with_which_jax_a_file_was_made(tmp_path):
    path = tmp_path / "one.txt"
    assert pinned_with(path) is None
    assert not is_pin_file(path)
    path.write_text(write_pins([], CPU))
    assert pinned_with(path) == "0.12.0"
    assert is_pin_file(path)
    path.write_text("# Notes\n")
    assert pinned_with(path) is None
    assert not is_pin_file(path)
