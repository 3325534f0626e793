"""Saying how far the chapters are: one line that is rewritten, or few in a log."""

import contextlib
import shutil
import sys
import time
from collections.abc import Iterator
from typing import TextIO

from ..errors import counted
from ..model import Chapter

#: When a log first says what runs (seconds); each pause is twice the one before.
SAY_AFTER = 15.0

#: Takes the cursor back to the start of a terminal's line, and empties the line.
_CLEAR = "\r\x1b[K"


class Progress:
    """Progress of the chapters, on `file` (standard output by default)."""

    def __init__(self, file: TextIO | None = None) -> None:
        self._file = file or sys.stdout
        self._is_terminal = self._file.isatty()
        self._totals: dict[str, int] = {}
        self._done: dict[str, int] = {}
        self._began: dict[str, float] = {}  # of those that run
        self._left: set[str] = set()
        self._width = 0
        self._restart()

    def _restart(self) -> None:
        self._said, self._pause = time.monotonic(), SAY_AFTER

    @contextlib.contextmanager
    def chapters(self, chapters: list[Chapter], waiting: set[str]) -> Iterator[None]:
        """Show progress while the chapters in `waiting` run."""
        unchanged = len(chapters) - len(waiting)
        cells = sum(len(c.cells) for c in chapters if c.docname in waiting)
        self._totals = {c.docname: len(c.cells) for c in chapters}
        self._width = max([len(c.docname) for c in chapters], default=0)
        self._left = set(waiting)
        self.note(
            f"{counted(len(chapters), 'chapter')}: {unchanged} unchanged,"
            f" {len(waiting)} to execute ({counted(cells, 'cell')})"
        )
        self._restart()
        try:
            yield
        finally:
            self._clear()

    def started(self, docname: str) -> None:
        self._began[docname] = time.monotonic()
        self._done[docname] = 0
        self._left.add(docname)  # also where it runs again

    def advanced(self, docname: str, done: int) -> None:
        self._done[docname] = done

    def tick(self) -> None:
        """Show which cells run, and for how long their chapters have."""
        now = time.monotonic()
        running = [
            f"{docname} cell {min(self._done[docname] + 1, self._totals[docname])}"
            f"/{self._totals[docname]} ({now - began:.0f} s)"
            for docname, began in self._began.items()
        ]
        if running:
            self.show(
                f"  {counted(len(self._left), 'chapter')} left: {', '.join(running)}"
            )

    def finished(self, docname: str, seconds: float) -> None:
        self._end(docname, f"{seconds:6.1f} s")

    def failed(self, docname: str) -> None:
        seconds = time.monotonic() - self._began[docname]
        self._end(docname, f"{seconds:6.1f} s  FAILED")

    def _end(self, docname: str, text: str) -> None:
        self._began.pop(docname, None)
        self._left.discard(docname)
        total = self._totals[docname]
        done = f"{self._done[docname]:3d}/{total} cells".ljust(13)
        self.note(f"  {docname.ljust(self._width)}  {done}{text}")

    def note(self, text: str) -> None:
        """Say one thing that stays."""
        self._clear()
        print(text, file=self._file, flush=True)

    def show(self, text: str) -> None:
        """Say what holds now: on a terminal in place of the last, in a log seldom."""
        now = time.monotonic()
        if self._is_terminal:
            columns = shutil.get_terminal_size().columns
            print(_CLEAR + text[: columns - 1], end="", file=self._file, flush=True)
        elif now - self._said > self._pause:
            self.note(text)
            self._said, self._pause = now, 2 * self._pause

    def _clear(self) -> None:
        if self._is_terminal:
            print(_CLEAR, end="", file=self._file, flush=True)
