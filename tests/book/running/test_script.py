"""A program is the main module of its process, and ends as Python ends it."""

import json
import sys
import types
from pathlib import Path

import pytest

from executed_book.running import script


def ran(text: str, folder: Path) -> tuple[int, str | None]:
    """The exit status of a program, and what is noted of how it ended."""
    main = types.ModuleType("__main__")
    main.__file__ = str(folder / "program.py")
    status = script._run(text, main, folder)
    raised = folder / script.RAISED
    return status, json.loads(raised.read_text()) if raised.exists() else None


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("x = 1", 0),
        ("raise SystemExit", 0),
        ("raise SystemExit(3)", 3),
        ("import sys; sys.exit('no')", 1),
        ("raise SystemExit([])", 1),
    ],
)
def test_an_exit_is_no_failure(tmp_path, text, status):
    assert ran(text, tmp_path) == (status, None)


def test_what_a_program_exits_with_is_said(tmp_path, capsys):
    ran("raise SystemExit('no such file')", tmp_path)
    assert capsys.readouterr().err == "no such file\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("x = = 1", "SyntaxError: invalid syntax (program.py, line 1)"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt: "),
        ("raise ValueError('\\ud800 é')", "ValueError: \ud800 é"),
    ],
)
def test_a_failure_is_noted_and_printed(tmp_path, capsys, text, said):
    assert ran(text, tmp_path) == (1, said)
    printed = capsys.readouterr().err
    assert "executed_book" not in printed, "no frame of ours"
    assert said.partition(":")[0] in printed


def test_a_failure_is_noted_whatever_the_program_has_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(json, "dumps", json.dumps)  # is put back at the end
    text = "import json\njson.dumps = None\n1 / 0"
    assert ran(text, tmp_path) == (1, "ZeroDivisionError: division by zero")


def test_a_program_is_compiled_by_its_own_rules_alone(tmp_path):
    """It does not inherit this package's `from __future__ import annotations`."""
    text = "def f(x: unknown_name): pass"
    if sys.version_info >= (3, 14):
        text += "\nf.__annotations__"
    assert ran(text, tmp_path) == (1, "NameError: name 'unknown_name' is not defined")
