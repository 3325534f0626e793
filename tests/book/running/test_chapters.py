"""What a worker says of a chapter becomes its run, or one error at a line."""

from __future__ import annotations

import io
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from executed_book.errors import PageError
from executed_book.model import Cell, Chapter, Value
from executed_book.running.chapters import ChapterTask, Finished
from executed_book.running.progress import Progress
from executed_book.settings import Settings

from ..made import chapter

VALUE = Value("value", "x + 1", 15)
CHAPTER = chapter(
    Cell(1, "x = 1", 10, values=(VALUE,)),
    Cell(2, "x", 20, tags=frozenset({"measured"})),
)


class Task(ChapterTask):
    """A task with a quiet progress; what it finished is in `runs`."""

    def __init__(self, made: Chapter = CHAPTER, **settings: Any) -> None:
        self.runs: list[Finished] = []
        root = Path("/book")
        progress = Progress(io.StringIO())
        with progress.chapters([made], {made.docname}):
            pass
        super().__init__(
            made,
            Settings(root / "docs", root / "cache", **settings),
            progress,
            lambda chapter, finished: self.runs.append(finished),
        )
        self.began = self.job()

    def hears(self, *messages: dict[str, Any]) -> Task:
        for message in messages:
            self.hear(message)
        return self

    def ends(
        self, status: int | None = 0, late: bool = False, words: str = ""
    ) -> PageError:
        """The error of a chapter that ended before its end."""
        worker: Any = SimpleNamespace(last_words=lambda: words)
        assert self.ended(worker, status, late) is False
        [error] = self.errors
        return error


def test_every_message_gives_the_limit_of_a_cell_anew(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("executed_book.running.chapters.time.monotonic", lambda: now[0])
    task = Task(cell_seconds=5.0).hears({"at": "cell", "number": 1})
    assert task.deadline == 105.0
    now[0] = 103.0
    task.hears({"at": "values", "number": 1})
    assert task.deadline == 108.0
    own = Task(chapter("x", limit=60.0), cell_seconds=5.0)
    assert own.hears({"at": "begin", "pid": 0}).deadline == 163.0


def test_a_page_without_a_limit_is_never_late(monkeypatch):
    worker: Any = SimpleNamespace(wrote_below=lambda: 0)
    task = Task(cell_seconds=math.inf).hears({"at": "cell", "number": 1})
    assert task.may_go_on(worker)
    assert task.deadline == math.inf


def test_the_last_words_of_a_process_are_told():
    error = Task().hears({"at": "cell", "number": 2}).ends(-6, words="boiler on fire")
    assert (error.detail, error.hint) == (
        "boiler on fire",
        "what it said last stands above",
    )


def test_a_chapter_that_does_not_even_begin_is_told_at_its_first_line():
    error = Task(chapter("x")).ends(-11)
    assert (error.line, error.message) == (
        1,
        "the chapter killed its process (SIGSEGV)",
    )


def test_a_chapter_that_broke_the_shell_tells_how():
    task = Task().hears(
        {"at": "cell", "number": 1}, {"at": "broken", "text": "Traceback"}
    )
    error = task.ends(0)
    assert error.message == "cell 1 broke the process that runs it"
    assert error.detail == "Traceback"
