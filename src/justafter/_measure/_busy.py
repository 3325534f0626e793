"""How long this process waited for a CPU that others had."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

# Less than this is the scheduler's ordinary work.
ORDINARY = 0.02


@dataclass(frozen=True)
class Waiting:
    """Seconds that this process's threads ran, and that they waited to run.

    Both are zero where the system does not tell: it is Linux that does.
    """

    ran: float = 0.0
    waited: float = 0.0

    @classmethod
    def now(cls) -> Self:
        """Up to this moment."""
        ran = waited = 0
        for path in Path("/proc/self/task").glob("*/schedstat"):
            try:
                first, second, _ = path.read_text().split()
            except (OSError, ValueError):  # a thread that has just ended
                continue
            ran, waited = ran + int(first), waited + int(second)
        return cls(ran * 1e-9, waited * 1e-9)

    def share_until(self, later: Waiting) -> float:
        """The share of its time that the process waited, from 0 to below 1."""
        ran, waited = max(later.ran - self.ran, 0), max(later.waited - self.waited, 0)
        return waited / (ran + waited) if waited else 0.0
