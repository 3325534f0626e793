"""How far the chapters are: few lines in a log, one line on a terminal."""

import io
import re
from types import SimpleNamespace

import pytest

from executed_book.running import progress as module
from executed_book.running.progress import Progress

from ..made import chapter

CHAPTERS = [chapter("a", "b"), chapter("c", docname="second")]


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_a_log_says_what_is_to_do_and_each_chapter_that_ends(clock):
    progress = Progress(log := io.StringIO())
    with progress.chapters(CHAPTERS, {"one", "second"}):
        for docname in ("one", "second"):
            progress.started(docname)
        progress.advanced("one", 2)
        progress.finished("one", 12.34)
        clock[0] = 7.0
        progress.failed("second")
    assert log.getvalue().splitlines() == [
        "2 chapters: 0 unchanged, 2 to execute (3 cells)",
        "  one       2/2 cells    12.3 s",
        "  second    0/1 cells     7.0 s  FAILED",
    ]


def test_a_log_says_seldom_what_runs(clock):
    progress = Progress(log := io.StringIO())
    with progress.chapters(CHAPTERS, {"one", "second"}):
        progress.started("one")
        progress.started("second")
        progress.advanced("one", 1)
        for clock[0] in range(300):
            progress.tick()
        progress.finished("one", 33.0)
        clock[0] = 999.0
        progress.finished("second", 33.0)
        progress.tick()
    lines = [line for line in log.getvalue().splitlines() if "left" in line]
    assert lines[0] == "  2 chapters left: one cell 2/2 (16 s), second cell 1/1 (16 s)"
    assert [re.findall(r"\d+ s", line)[0] for line in lines] == [
        *("16 s", "47 s", "108 s", "229 s")
    ]


def test_a_chapter_that_runs_again_is_left_again(clock):
    progress = Progress(log := io.StringIO())
    with progress.chapters(CHAPTERS, {"one"}):
        for clock[0] in (0.0, 100.0):
            progress.started("one")
            clock[0] += 50.0
            progress.tick()
            progress.finished("one", 50.0)
    left = [line for line in log.getvalue().splitlines() if "left" in line]
    assert [line.split(":")[0] for line in left] == ["  1 chapter left"] * 2


def test_a_log_says_seldom_what_holds_now(clock):
    progress = Progress(log := io.StringIO())
    progress.show("1/3")
    clock[0] = 20.0
    progress.show("2/3")
    progress.show("3/3")
    assert log.getvalue() == "2/3\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_rewrites_one_line_and_keeps_what_ended(clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    progress = Progress(log := Terminal())
    with progress.chapters(CHAPTERS, {"one"}):
        progress.started("one")
        progress.tick()
        progress.advanced("one", 1)
        clock[0] = 2.0
        progress.tick()
        progress.finished("one", 1.0)
        progress.tick()
    progress.show("  1/2 programs")
    progress.note("done")
    shown = [line.split("\r\x1b[K")[1:] for line in log.getvalue().split("\n")]
    assert shown == [
        ["2 chapters: 1 unchanged, 1 to execute (2 cells)"],
        [
            *("  1 chapter left: one cell 1/2 (0 s)",),
            *("  1 chapter left: one cell 2/2 (2 s)",),
            "  one       1/2 cells     1.0 s",
        ],
        ["", "  1/2 programs", "done"],
        [],
    ]
