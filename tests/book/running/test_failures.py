"""Exceptions become plain data with the reader's own lines."""

import pytest

from executed_book.model import Failure
from executed_book.running.failures import cell_file, failure_of


def failing(source: str, number: int = 3, **names: object) -> Failure:
    try:
        exec(compile(source, cell_file(number), "exec"), names)
    except BaseException as error:
        return failure_of(error, number)
    raise AssertionError("it does not fail")


def test_a_failure_has_its_class_message_and_line():
    failure = failing("x = 1\n1 / 0\n")
    assert (failure.name, failure.message) == ("ZeroDivisionError", "division by zero")
    assert failure.line == 2
    kinds = ("builtins.ZeroDivisionError", "builtins.ArithmeticError")
    assert failure.kinds[:2] == kinds
    assert failure.traceback.splitlines()[0] == "Traceback (most recent call last):"
    assert failure.traceback.splitlines()[-1] == "ZeroDivisionError: division by zero"


def test_frames_of_libraries_are_left_out():
    failure = failing("import json\n\ndef f(x):\n    json.loads(x)\n\nf('{')")
    places = [s.strip() for s in failure.traceback.splitlines() if "line" in s]
    assert places[:2] == ["Cell 3, line 6", "Cell 3, line 4, in f"]
    assert "json/" not in failure.traceback
    assert failure.line == 4


def test_the_line_is_the_last_one_in_the_cell_itself():
    defined: dict[str, object] = {}
    exec(compile("def f():\n    raise KeyError('a')", cell_file(1), "exec"), defined)
    failure = failing("\n\nf()", 2, f=defined["f"])
    assert failure.line == 3
    assert "Cell 1, line 2, in f" in failure.traceback


def test_a_failure_after_the_code_is_at_the_line_that_is_given():
    assert failure_of(ValueError("shown"), 1, last_line=9).line == 9
    assert failure_of(ValueError("shown"), 1).traceback == "ValueError: shown"


def test_notes_are_left_out():
    failure = failing("e = ValueError('a')\ne.add_note('JAX removed frames')\nraise e")
    assert "removed" not in failure.traceback


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "class A(Exception):\n    def __str__(self): raise KeyError(1)\nraise A",
            "<its message cannot be shown: KeyError>",
        ),
        (r"raise ValueError('\ud800')", r"\ud800"),
        ("raise ValueError", ""),
    ],
)
def test_a_message_that_cannot_be_shown(source, message):
    failure = failing(source)
    assert failure.message == message
    failure.traceback.encode("utf-8")
