"""Tasks take turns, and who does not end is given up."""

import os
from typing import Any

import pytest

from executed_book.running import pool as module
from executed_book.running.pool import Pool, Task
from executed_book.running.workers import Worker

from .test_workers import Ends


class Stuck(Ends):
    def start(self, job: Any, fresh: bool = False) -> Worker:
        return self.worker


class Silent(Task):
    def job(self) -> str:
        return "nothing"

    def hear(self, message: dict[str, Any]) -> None:
        raise AssertionError(message)

    def ended(self, worker: Worker, status: int | None, late: bool) -> bool:
        self.end = status, late
        return False


def test_who_does_not_even_end_when_it_is_late_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_LOOK_EVERY", 0.01)
    monkeypatch.setattr(module, "_TO_START", 0.05)
    monkeypatch.setattr(module, "_TO_END", 0.05)
    stuck, task = Stuck(tmp_path / "1"), Silent()
    Pool(stuck, 1).run([task])
    stuck.close()
    assert task.end == (None, True)
    assert not stuck.worker.folder.exists()


def test_an_interrupt_ends_all_that_run(tmp_path, monkeypatch):
    """It comes by the tick, which is called while tasks run."""
    monkeypatch.setattr(module, "_TO_START", 0.5)
    monkeypatch.setattr(module, "_TO_END", 0.05)
    stuck, task = Stuck(tmp_path / "1"), Silent()

    def interrupt() -> None:
        stuck.theirs.close()
        os.close(stuck.end)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Pool(stuck, 2, interrupt).run([task])
    assert not stuck.worker.folder.exists()
    assert not hasattr(task, "end")
    assert os.read(stuck.life, 1) == b"", "the worker was not let go"
    os.close(stuck.life)


class Turns:
    """Turns, and the names of those who have been granted theirs."""

    def __init__(self) -> None:
        self.turns, self.granted = module._Turns(), []

    def ask(self, name: str, alone: bool = False) -> None:
        self.turns.ask(name, alone, lambda: self.granted.append(name))


@pytest.fixture
def turns() -> Turns:
    """One has its turn, and then one that measures and another one ask for theirs."""
    turns = Turns()
    turns.ask("a")
    turns.ask("measures", alone=True)
    turns.ask("b")
    assert turns.granted == ["a"]
    return turns


def test_who_measures_is_alone_and_goes_before_those_who_came_later(turns):
    turns.turns.give_back("a")
    assert turns.granted == ["a", "measures"]
    turns.turns.give_back("measures")
    assert turns.granted == ["a", "measures", "b"]


def test_who_is_gone_waits_no_more_and_ordinary_work_runs_side_by_side(turns):
    turns.turns.give_back("measures")
    assert turns.granted == ["a", "b"]
