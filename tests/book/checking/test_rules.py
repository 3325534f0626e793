"""What must hold of every run, told at the page's own lines."""

import sys
from pathlib import Path
from typing import Any

import pytest

from executed_book.checking.rules import announcement, check_run, failed
from executed_book.errors import PageError
from executed_book.model import Cell, CellResult, Failure, Value, ValueResult

from ..made import chapter, executed, gave, printed, raised, shown


def wrong(cell: Cell | str, result: CellResult, *rules: str, **run: Any) -> list[str]:
    errors = check_run(executed(chapter(cell), result, **run), rules)
    return [f"{e.line}: {e.message}\n{e.hint}" for e in errors]


def needing(**needs: set[int]) -> Any:
    """Which cells a cell needs, by numbers such as `c3={1}`."""
    return lambda number: needs.get(f"c{number}", set())


def test_what_is_needed_is_only_asked_once_a_cell_has_failed():
    def never(number: int) -> set[int]:
        raise AssertionError(number)

    assert failed(executed(chapter("a", "b"), gave(), gave()), never) == ([], set())


@pytest.mark.parametrize(
    "fields", [{"may_raise": True}, {"raises": "ValueError: other"}]
)
def test_a_failure_that_is_announced_is_no_failure(fields):
    made = executed(chapter(Cell(1, "x", 1, **fields)), raised())
    assert failed(made, needing()) == ([], set())


def test_printing_too_much_cannot_be_announced():
    said = "printed over 1,000 characters"
    over = CellResult(failure=Failure("OutputLimit", (), said, 1, ""))
    made = executed(chapter(Cell(1, "x", 7, may_raise=True)), over)
    [error], _ = failed(made, needing())
    assert (error.line, error.message) == (7, "cell 1 printed over 1,000 characters")


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("\n  first\nsecond", ':raises: "ValueError: first"'),
        ("é", ':raises: "ValueError: é"'),
        ("array (0x7f0012345678) is", ':raises: "ValueError: array"'),
        ("word " * 20, ':raises: "ValueError: ' + ("word " * 11) + 'word"'),
        ("x" * 100, ':raises: "ValueError: ' + "x" * 60 + '"'),
    ],
)
def test_the_announcement_of_a_failure(message, said):
    failure = Failure("ValueError", (), message, 1, "")
    assert announcement("raises", failure) == said


@pytest.mark.parametrize(
    "said", ["ValueError: bad", "ValueError: a", "builtins.ValueError: bad"]
)
def test_an_announced_failure_that_comes(said):
    assert wrong(Cell(1, "x", 5, raises=said), raised()) == []


WARNED = gave(printed("UserWarning: careful\n", "stderr"))


def test_an_announced_warning_is_looked_for_whatever_the_rules():
    warns = Cell(1, "x", 5, warns="UserWarning: care")
    assert wrong(warns, WARNED) == []
    for other in ("UserWarning: not", "UserWarning: full", "Warning: care"):
        [told] = wrong(Cell(1, "x", 5, warns=other), WARNED)
        assert "and gives another\nwrite :warns: " in told


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("0x7f0012345678", "a memory address"),
        ("object id 139812", "an object's id"),
        ("ipykernel_12", "a temporary kernel name"),
        ("<ipython-input-3>", "a temporary kernel name"),
        ("/home/user/a.py", "a machine path"),
        (r"C:\\Users\\me", "a machine path"),
        ("lib/site-packages/jax", "a machine path"),
        (f"{sys.prefix}/lib", "a machine path"),
        (f"{Path.cwd()}/a.py", "a machine path"),
    ],
)
def test_noise(text, what):
    assert wrong("x", gave(printed(text))) == []
    [told] = wrong("x", gave(printed(f"first\n{text}\n")), "noise")
    assert told.startswith(f"10: cell 1 prints {what}: ")


@pytest.mark.parametrize(
    "text", ["0x1f", "color #7f0012", "look at 0.5", "bits 0xdeadbeef", "home/user"]
)
def test_no_noise(text):
    assert wrong("x", gave(printed(text)), "noise") == []


def test_noise_is_looked_for_in_all_that_is_shown_and_shown_with_its_line():
    noise = "an <A at 0x7f00123456>"
    failing = {"output_type": "error", "traceback": ["Traceback", noise]}
    value = Cell(1, "x", 10, values=(Value("value", "x", 12),))
    for cell, result in (
        ("x", gave(shown("x", html=f"<b>\n{noise}\n</b>"))),
        ("x", gave(failing)),
        (value, gave(values=(ValueResult(noise),))),
    ):
        errors = check_run(executed(chapter(cell), result), ["noise"])
        assert [error.detail for error in errors] == [noise]


def test_spoilt_cells_are_not_looked_at():
    made = executed(chapter("x", "y"), WARNED, WARNED)
    errors = check_run(made, ["stderr"], spoilt={1})
    assert [error.line for error in errors] == [20]


def measured(source: str, tag: str = "measured") -> Cell:
    return Cell(1, source, 5, tags=frozenset({tag}))


def unchecked(*cells: Cell | str) -> list[PageError]:
    made = chapter(*cells)
    return check_run(executed(made, *[gave() for _ in made.cells]), ["measured"])


def test_what_varies_is_held_by_an_assert_there_or_below():
    [error] = unchecked(measured("t = 1"))
    assert (error.line, error.message) == (
        5,
        "cell 1 has output that varies, and no assertion checks it",
    )
    assert unchecked(measured("assert t")) == []
    below = Cell(2, "assert t", 9, tags=frozenset({"check"}))
    assert unchecked(measured("t = 1"), below) == []
    assert len(unchecked(measured("t = 1", "device"), "assert t")) == 1


@pytest.mark.parametrize(
    ("source", "has_one"),
    [
        ("assert x", True),
        ("if x:\n    assert y", True),
        ("# assert x\n'assert y'", False),
        ("!ls\nassert x", True),
        ("%time f()\nx = 1", False),
        ("", False),
    ],
)
def test_an_assert_is_a_statement(source, has_one):
    measured = Cell(1, source, 1, tags=frozenset({"measured"}))
    run = executed(chapter(measured), gave())
    assert bool(check_run(run, {"measured"})) is not has_one
