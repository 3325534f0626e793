"""How far the chapters are: lines in a log, a table on a terminal."""

from __future__ import annotations

import io
import re
from types import SimpleNamespace

import pytest
from rich.console import Console

from executed_book.running import progress as module
from executed_book.running.progress import Progress

from ..made import chapter

CHAPTERS = [chapter("a", "b"), chapter("c", docname="second")]


@pytest.fixture
def log() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def progress(log: io.StringIO) -> Progress:
    return Progress(Console(file=log, width=40, highlight=False))


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set."""
    now = [0.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_a_log_says_what_is_to_do_and_each_chapter_that_ends(progress, log, clock):
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


def test_one_chapter_is_one(progress, log):
    with progress.chapters(CHAPTERS[:1], set()):
        pass
    assert log.getvalue() == "1 chapter: 1 unchanged, 0 to execute (0 cells)\n"


def test_a_long_chapter_gives_a_sign_of_life_now_and_then(progress, log, clock):
    with progress.chapters(CHAPTERS, {"one"}):
        progress.started("one")
        for clock[0] in (1.0, 14.0, 16.0, 17.0, 32.0):
            progress.tick()
        progress.finished("one", 33.0)
        clock[0] = 99.0
        progress.tick()
    lines = [line for line in log.getvalue().splitlines() if "running" in line]
    assert [re.findall(r"[\d.]+ s", line) for line in lines] == [["16.0 s"], ["32.0 s"]]


def test_steps_are_told_seldom_and_at_the_end(progress, log, clock):
    with progress.steps(3, "programs run") as step:
        step()
        clock[0] = 20.0
        step()
        step()
    assert log.getvalue().splitlines() == [
        "  2/3 programs run",
        "  3/3 programs run",
    ]


def test_what_is_said_is_not_taken_for_markup_and_not_wrapped(progress, log):
    progress.note("[bold]" + "x " * 40)
    assert log.getvalue() == "[bold]" + "x " * 40 + "\n"


def test_a_terminal_shows_bars_and_keeps_the_lines(log):
    console = Console(file=log, force_terminal=True, width=80, highlight=False)
    progress = Progress(console)
    with progress.chapters(CHAPTERS, {"one"}):
        progress.started("one")
        progress.advanced("one", 1)
        progress.tick()
        progress.finished("one", 1.0)
    with progress.steps(1, "programs run") as step:
        step()
    assert progress._bars is None
    assert "  one       1/2 cells     1.0 s" in log.getvalue()
    assert "━" in log.getvalue()
