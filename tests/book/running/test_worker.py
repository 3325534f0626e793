"""What a worker says while it does a chapter, one message after the other."""

from __future__ import annotations

import pickle
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from executed_book.model import Cell, Chapter, Value
from executed_book.running.channel import BELOW, JOB, Channel
from executed_book.running.server import python_running
from executed_book.running.workers import worker_environment
from executed_book.settings import Settings

from ..made import chapter

VALUES = (Value("value", "x * 2", 15), Value("value", "y", 16))
CELLS = (
    Cell(1, "import os, sys\nx = 2\nprint(x)\nx + 1", 10, values=VALUES),
    Cell(2, "print('skipped')", 20, is_skipped=True),
    Cell(3, "os.write(1, b'below\\n')\n1 / 0", 30, tags=frozenset({"measured"})),
    Cell(4, "open('data.txt').read(), sys.argv, sys.path[0]", 40),
)


def talk(
    run: Path, made: Chapter, turns: int = 9, runs_in: str = "page"
) -> list[dict[str, Any]]:
    """All that a worker says that gets its turn so many times."""
    run.mkdir()
    settings = Settings(run.parent / "docs", run / "cache", folder=runs_in)
    (run / JOB).write_bytes(pickle.dumps((made, settings)))
    (run / "fresh").touch()
    ours, theirs = socket.socketpair()
    files = [(run / name).open("a+b") for name in BELOW.values()]
    channel = Channel(ours)
    process = subprocess.Popen(
        [*python_running("worker"), str(run), str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=files[0],
        stderr=files[1],
        env=worker_environment(),
    )
    theirs.close()
    said = []
    while (message := channel.receive()) is not None:
        said.append(message)
        if message["at"] == "turn":
            if not turns:
                break
            turns -= 1
            channel.send(at="go")
    channel.close()
    assert process.wait(timeout=60) == 0
    for file in files:
        file.close()
    return said


@pytest.fixture(scope="module")
def said(tmp_path_factory) -> list[dict[str, Any]]:
    """What is said of a chapter in the folder of its page."""
    root = tmp_path_factory.mktemp("worker")
    (root / "docs").mkdir()
    (root / "docs" / "data.txt").write_text("data")
    made = chapter(*CELLS, path=root / "docs" / "one.md")
    return [{"root": root}, *talk(root / "run", made)]


def test_each_step_is_said_before_it_is_done(said):
    assert [m["at"] for m in said[1:]] == [
        "begin",
        *("turn", "cell", "values", "result"),
        "result",
        *("turn", "cell", "values", "result"),
        *("turn", "cell", "values", "result"),
        *("end", "done"),
    ]
    assert [m["measured"] for m in said if m.get("at") == "turn"] == [
        False,
        True,
        False,
    ]
    assert [m["number"] for m in said if m.get("at") == "result"] == [1, 2, 3, 4]


def test_a_chapter_that_breaks_the_shell_is_told_with_a_traceback(tmp_path):
    cell = "from IPython import get_ipython\nget_ipython().compile = None\n"
    said = talk(tmp_path / "run", chapter(cell, "1"), runs_in="empty")
    assert said[-1]["at"] == "broken"
    assert "AttributeError: 'NoneType' object has no attribute" in said[-1]["text"]
