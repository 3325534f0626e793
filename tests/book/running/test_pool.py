"""Tasks take turns, and end at their deadlines; the workers here are only pipes."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from executed_book.running import pool as module
from executed_book.running.channel import Channel
from executed_book.running.pool import Pool, Task
from executed_book.running.workers import Worker

#: What a worker does, given its end of the channel, until it ends by returning.
Script = Callable[[Channel], None]


class Threads:
    """Starts threads in the place of workers; as a supervisor, it ends them."""

    def __init__(self, root: Path) -> None:
        self.root, self.started, self.threads = root, 0, []
        self.stuck: set[str] = set()

    def start(self, job: Any, fresh: bool = False) -> Worker:
        self.started += 1
        folder = self.root / str(self.started)
        folder.mkdir()
        ours, theirs = socket.socketpair()
        life, life_write = os.pipe()
        end_read, end = os.pipe()
        script = SCRIPTS[job]

        def work() -> None:
            channel = Channel(theirs)
            script(channel)
            channel.close()
            os.write(end, json.dumps({"status": 0}).encode())
            os.close(end)
            os.close(life)

        def wait_to_be_let_go() -> None:
            os.read(life, 1)
            os.close(life)
            theirs.close()
            if job != "stuck":
                os.close(end)
            else:
                self.left = end

        target = work if script is not hang else wait_to_be_let_go
        self.threads.append(threading.Thread(target=target))
        self.threads[-1].start()
        return Worker(folder, Channel(ours), life_write, end_read)


def hang(channel: Channel) -> None:
    """Say nothing more; see `Threads`."""


LOG: list[str] = []


def speak(name: str, measured: bool = False) -> Script:
    """Ask for the machine, and say when it came."""

    def script(channel: Channel) -> None:
        channel.send(at="turn", measured=measured)
        channel.receive()
        LOG.append(f"{name} begins")
        channel.send(at="cell", number=1)
        LOG.append(f"{name} ends")
        channel.send(at="result")

    return script


SCRIPTS: dict[str, Script] = {
    "a": speak("a"),
    "b": speak("b"),
    "measured": speak("measured", measured=True),
    "words": lambda channel: channel.send(at="last words"),
    "late": hang,
    "stuck": hang,
    "refused": hang,
}


class Said(Task):
    """A task that notes everything."""

    def __init__(self, text: str, limit: float = 60.0, again: int = 0) -> None:
        self.text, self.limit, self.again = text, limit, again
        self.heard: list[str] = []
        self.ends: list[tuple[int | None, bool]] = []

    def job(self) -> str:
        return self.text

    def hear(self, message: dict[str, Any]) -> None:
        self.heard.append(message["at"])

    def ended(self, worker: Worker, status: int | None, late: bool) -> bool:
        self.ends.append((status, late))
        self.again -= 1
        return self.again >= 0

    def may_go_on(self, worker: Worker) -> bool:
        return self.text != "refused"


@pytest.fixture
def threads(tmp_path, monkeypatch):
    LOG.clear()
    monkeypatch.setattr(module, "_LOOK_EVERY", 0.01)
    made = Threads(tmp_path)
    yield made
    for thread in made.threads:
        thread.join(timeout=5)
    if hasattr(made, "left"):
        os.close(made.left)


def test_tasks_run_to_their_ends_and_are_heard_to_the_last_word(threads):
    tasks = [Said("a"), Said("b"), Said("words")]
    Pool(threads, 1).run(tasks)
    assert [task.heard for task in tasks] == [
        ["cell", "result"],
        ["cell", "result"],
        ["last words"],
    ]
    assert [task.ends for task in tasks] == [[(0, False)]] * 3
    assert LOG == ["a begins", "a ends", "b begins", "b ends"]
    assert list(threads.root.iterdir()) == [], "their folders are gone"


def test_a_task_that_asks_for_it_is_started_again(threads):
    task = Said("words", again=2)
    Pool(threads, 2).run([task])
    assert (threads.started, task.ends) == (3, [(0, False)] * 3)


def test_a_tick_comes_while_tasks_run(threads):
    ticks = []
    Pool(threads, 1, lambda: ticks.append(1)).run([Said("a")])
    assert ticks


def starting_late(monkeypatch, seconds: float) -> None:
    monkeypatch.setattr(module, "_TO_START", seconds)


def test_who_does_not_even_end_then_is_given_up(threads, monkeypatch):
    starting_late(monkeypatch, 0.05)
    monkeypatch.setattr(module, "_TO_END", 0.05)
    stuck = Said("stuck")
    Pool(threads, 1).run([stuck])
    assert stuck.ends == [(None, True)]


def test_a_task_may_end_its_worker_itself(threads):
    refused = Said("refused")
    Pool(threads, 1).run([refused])
    assert refused.ends == [(None, False)]


# -- turns


class Turns:
    """Turns, and the names of those who have been granted theirs."""

    def __init__(self) -> None:
        self.turns, self.granted = module._Turns(), []

    def ask(self, name: str, alone: bool = False) -> None:
        self.turns.ask(name, alone, lambda: self.granted.append(name))


def test_ordinary_work_runs_side_by_side():
    turns = Turns()
    turns.ask("a")
    turns.ask("b")
    assert turns.granted == ["a", "b"]


def test_who_measures_is_alone_and_goes_before_those_who_came_later():
    turns = Turns()
    turns.ask("a")
    turns.ask("measures", alone=True)
    turns.ask("b")
    assert turns.granted == ["a"]
    turns.turns.give_back("a")
    assert turns.granted == ["a", "measures"]
    turns.turns.give_back("measures")
    assert turns.granted == ["a", "measures", "b"]


def test_who_is_gone_waits_no_more():
    turns = Turns()
    turns.ask("a")
    turns.ask("measures", alone=True)
    turns.ask("b")
    turns.turns.give_back("measures")
    assert turns.granted == ["a", "b"]
