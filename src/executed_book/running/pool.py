"""Running tasks side by side: whose turn it is, how long each may take.

A task is a job with what the builder does about it: it hears the worker's messages and
says until when the next one has to come.
"""

import abc
import select
import time
from collections import deque
from collections.abc import Callable, Iterable

from .channel import Channel, Message
from .workers import Job, Worker, Workers

#: How long a worker may take before it says its first word (seconds).
_TO_START = 120.0

#: How long a worker may take to end once it was let go (seconds).
_TO_END = 10.0

#: How often the clock is looked at while nothing happens (seconds).
_LOOK_EVERY = 0.5


class Task(abc.ABC):
    """Something for one worker to do."""

    #: When the worker has to have said something again (`time.monotonic`); None while
    #: it waits for the machine.
    deadline: float | None = None

    #: Whether the worker starts in an interpreter that has imported nothing.
    fresh: bool = False

    @abc.abstractmethod
    def job(self) -> Job:
        """What the worker is to do."""

    @abc.abstractmethod
    def hear(self, message: Message) -> None:
        """Take note of what the worker says, and set the deadline anew."""

    @abc.abstractmethod
    def ended(self, worker: Worker, status: int | None, late: bool) -> bool:
        """The worker has ended; whether the task has to be started once more.

        `status` is its exit code, None if it was ended by the builder; `late` whether
        that was because of the deadline.
        """

    def may_go_on(self, worker: Worker) -> bool:
        """Asked every half second or so; False ends the worker."""
        return True


class _Turns:
    """Who may use the machine: several at once, or one that measures, alone.

    Whoever waits to measure goes before those who came later, so that no ordinary work
    can keep it waiting for ever.
    """

    def __init__(self) -> None:
        self._holding: dict[object, bool] = {}
        self._waiting: list[tuple[object, bool, Callable[[], None]]] = []

    def ask(self, who: object, alone: bool, granted: Callable[[], None]) -> None:
        self._waiting.append((who, alone, granted))
        self._grant()

    def give_back(self, who: object) -> None:
        self._holding.pop(who, None)
        self._waiting = [entry for entry in self._waiting if entry[0] is not who]
        self._grant()

    def _grant(self) -> None:
        while self._waiting:
            who, alone, granted = self._waiting[0]
            if self._holding and (alone or any(self._holding.values())):
                return
            self._waiting.pop(0)
            self._holding[who] = alone
            granted()


class Pool:
    """Runs tasks, a few at a time, in the order in which they are given."""

    def __init__(
        self, workers: Workers, jobs: int, tick: Callable[[], None] = lambda: None
    ) -> None:
        self._workers, self._jobs, self._tick = workers, max(1, jobs), tick
        self._running: dict[Task, Worker] = {}
        self._turns = _Turns()
        #: When each was let go of, and whether since it was late.
        self._let_go: dict[Task, tuple[float, bool]] = {}

    def run(self, tasks: Iterable[Task]) -> None:
        """Run all tasks to their ends."""
        waiting = deque(tasks)
        try:
            while waiting or self._running:
                while waiting and len(self._running) < self._jobs:
                    task = waiting.popleft()
                    task.deadline = time.monotonic() + _TO_START
                    self._running[task] = self._workers.start(task.job(), task.fresh)
                # What has to start once more has waited longest, so it goes first.
                waiting.extendleft(self._listen())
                self._tick()
        finally:
            # All are let go of before any is waited for: they end side by side.
            for worker in self._running.values():
                worker.let_go()
            for worker in self._running.values():
                worker.close()

    def _listen(self) -> list[Task]:
        """Wait for the next word, end or deadline; the tasks to start again."""
        now = time.monotonic()
        at_work = self._running.items()
        times = [t.deadline - now for t, _ in at_work if t.deadline is not None]
        speaking = {w.channel: (t, w) for t, w in at_work if w.channel.is_open}
        ending = {w.end: (t, w) for t, w in at_work}
        timeout = max(0.0, min([_LOOK_EVERY, *times]))
        ready: list[Channel | int] = [*speaking, *ending]
        ready, _, _ = select.select(ready, [], [], timeout)
        for channel in speaking.keys() & set(ready):
            self._hear(*speaking[channel])
        ended = [ending[end] for end in ending.keys() & set(ready)]
        ended += self._look_at_the_clock()
        return [task for task, worker in ended if self._end(task, worker)]

    def _hear(self, task: Task, worker: Worker) -> None:
        for message in worker.channel.arrived():
            if message["at"] == "turn":
                task.deadline = None
                self._turns.ask(task, message["measured"], worker.go_on)
                continue
            if message["at"] == "result":
                self._turns.give_back(task)
            task.hear(message)

    def _end(self, task: Task, worker: Worker) -> bool:
        self._hear(task, worker)  # its last words, if it had time for any
        del self._running[task]
        self._turns.give_back(task)
        # One that we let go of has no status of its own; where it is stuck, asking for
        # one would wait for ever.
        let_go = self._let_go.pop(task, None)
        status = worker.status() if let_go is None else None
        try:
            return task.ended(worker, status, let_go is not None and let_go[1])
        finally:
            worker.close()

    def _look_at_the_clock(self) -> list[tuple[Task, Worker]]:
        """Let go of late tasks; return those that do not end even then."""
        now = time.monotonic()
        stuck = []
        for task, worker in self._running.items():
            if task in self._let_go:
                if now > self._let_go[task][0] + _TO_END:
                    stuck.append((task, worker))
                continue
            is_late = task.deadline is not None and now > task.deadline
            if is_late or not task.may_go_on(worker):
                self._let_go[task] = now, is_late
                worker.let_go()
        return stuck
