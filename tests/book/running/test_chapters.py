"""What a worker says of a chapter becomes its run, or one error at a line."""

import io
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from executed_book.model import to_plain
from executed_book.running.chapters import ChapterTask
from executed_book.running.progress import Progress
from executed_book.settings import Settings

from ..made import chapter, gave

SETTINGS = Settings(Path("docs"), Path("cache"), cell_seconds=5)


def task_of(*cells: str) -> ChapterTask:
    progress, ran = Progress(io.StringIO()), lambda *_: pytest.fail("it ran")
    return ChapterTask(chapter(*cells), SETTINGS, progress, ran)


@pytest.mark.parametrize(
    ("status", "cause"),
    [(-11, "SIGSEGV"), (-40, "signal 40"), (3, "exit code 3")],
)
def test_a_chapter_that_does_not_even_begin_is_told_at_its_first_line(status, cause):
    task = task_of("x")
    worker: Any = SimpleNamespace(text_below=lambda number: "")
    with task.progress.chapters([task.chapter], {"one"}):
        task.job()
        assert task.ended(worker, status, late=False) is False
    [error] = task.errors
    said = f"the chapter killed its process ({cause})"
    assert (error.line, error.message) == (1, said)


def test_each_message_sets_the_limit_anew(monkeypatch):
    task = task_of("x", "y")
    cells = [{"at": "cell", "number": n} for n in (1, 2)]
    for clock, message in enumerate([{"at": "begin", "pid": 1}, *cells]):
        monkeypatch.setattr(time, "monotonic", lambda clock=clock: float(clock))
        task.hear(message)
        assert task.deadline == clock + 5


def test_a_chapter_that_starts_afresh_forgets_what_it_gave():
    task = task_of("x")
    with task.progress.chapters([task.chapter], {"one"}):
        for message in (
            {"at": "cell", "number": 1},
            {"at": "result", "result": to_plain(gave())},
            {"at": "afresh", "name": "JAX_ENABLE_X64"},
        ):
            task.hear(message)
        worker: Any = None
        assert task.ended(worker, 0, late=False) is True
    assert task.fresh
    assert task.so_far() is None
