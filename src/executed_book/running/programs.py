"""Running whole programs, each by itself, as `python program.py` would."""

import json
import time
from dataclasses import dataclass

from .channel import Message
from .pool import Task
from .processes import memory_of
from .script import RAISED
from .workers import Worker

#: A program may write this much before it is ended (characters).
_MOST = 16_000_000


@dataclass(frozen=True)
class Ran:
    """What a program did.

    Attributes:
        stdout, stderr: what it wrote.
        raised: the class and message of the exception that ended it, or None.
        status: its exit status; negative for the signal that ended it.
        stopped: why it was ended before it ended itself; empty if it was not.
    """

    stdout: str
    stderr: str
    raised: str | None
    status: int
    stopped: str = ""

    @property
    def shown(self) -> str:
        """Its output as a page shows it: what it printed, then what it raised."""
        parts = [self.stdout.rstrip("\n"), self.raised or ""]
        if self.stopped:
            parts.append(f"(stopped {self.stopped})")
        elif self.status and self.raised is None:
            parts.append(f"(ended with status {self.status})")
        return "\n".join(part for part in parts if part)


class ProgramTask(Task):
    """One program on its way through a worker; `ran` is what it did, at the end."""

    ran: Ran

    def __init__(
        self,
        text: str,
        fresh: bool = False,
        limit: float = 120.0,
        memory: float = float("inf"),
    ) -> None:
        self.text, self.fresh = text, fresh
        self._limit, self._memory = limit, memory
        self._pid, self._stopped = 0, ""

    def job(self) -> str:
        return self.text

    def hear(self, message: Message) -> None:
        self.deadline = time.monotonic() + self._limit
        self._pid = message["pid"]

    def may_go_on(self, worker: Worker) -> bool:
        if worker.wrote_below() >= _MOST:
            self._stopped = f"after {_MOST:,} characters"
        elif memory_of(self._pid) > self._memory:
            self._stopped = f"with over {self._memory / 1e9:.3g} GB of memory"
        return not self._stopped

    def ended(self, worker: Worker, status: int | None, late: bool) -> bool:
        raised = worker.folder / RAISED
        self.ran = Ran(
            stdout=worker.text_below(1),
            stderr=worker.text_below(2),
            raised=json.loads(raised.read_text()) if raised.exists() else None,
            status=-9 if status is None else status,
            stopped="at the time limit" if late else self._stopped,
        )
        return False
