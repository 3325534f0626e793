"""Saying how far the chapters are: a live table on a terminal, lines in a log."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import Progress as Bars

from ..plurals import counted

if TYPE_CHECKING:
    from ..model import Chapter

#: In a log, a chapter that takes long says so this often (seconds).
SAY_EVERY = 15.0


class Progress:
    """Progress of the chapters, on `console` (standard output by default)."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(file=sys.stdout, highlight=False)
        self._bars: Bars | None = None
        self._tasks: dict[str, TaskID] = {}
        self._totals: dict[str, int] = {}
        self._done: dict[str, int] = {}
        self._began: dict[str, float] = {}
        self._said: dict[str, float] = {}

    @contextlib.contextmanager
    def chapters(self, chapters: list[Chapter], waiting: set[str]) -> Iterator[None]:
        """Show progress while the chapters in `waiting` run."""
        kept = len(chapters) - len(waiting)
        cells = sum(len(c.cells) for c in chapters if c.docname in waiting)
        self._totals = {c.docname: len(c.cells) for c in chapters}
        self._width = max([len(c.docname) for c in chapters], default=0)
        self._say(
            f"{counted(len(chapters), 'chapter')}: {kept} unchanged,"
            f" {len(waiting)} to execute ({counted(cells, 'cell')})"
        )
        if not (self.console.is_terminal and waiting):
            yield
            return
        with self._bar("cells") as self._bars:
            yield
        self._bars = None

    def _bar(self, *units: str) -> Bars:
        return Bars(
            TextColumn("  {task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            *map(TextColumn, units),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
        )

    @contextlib.contextmanager
    def steps(self, total: int, what: str) -> Iterator[Callable[[], None]]:
        """Show how many of `total` things are done; call what this gives after each."""
        if self.console.is_terminal:
            with self._bar() as bars:
                bar = bars.add_task(what, total=total)
                yield lambda: bars.advance(bar)
            return
        done, said = 0, time.monotonic()

        def step() -> None:
            nonlocal done, said
            done += 1
            if time.monotonic() - said > SAY_EVERY or done == total:
                said = time.monotonic()
                self._say(f"  {done}/{total} {what}")

        yield step

    def started(self, docname: str) -> None:
        self._began[docname] = self._said[docname] = time.monotonic()
        self._done[docname] = 0
        if self._bars is not None:
            self._tasks[docname] = self._bars.add_task(
                docname.ljust(self._width), total=self._totals[docname]
            )

    def advanced(self, docname: str, done: int) -> None:
        self._done[docname] = done
        if self._bars is not None:
            self._bars.update(self._tasks[docname], completed=done)

    def tick(self) -> None:
        """In a log, let long chapters give a sign of life."""
        if self._bars is not None:
            return
        now = time.monotonic()
        for docname, said in self._said.items():
            if now - said > SAY_EVERY:
                self._said[docname] = now
                self._line(docname, f"{now - self._began[docname]:6.1f} s  running")

    def finished(self, docname: str, seconds: float) -> None:
        self._end(docname, f"{seconds:6.1f} s")

    def failed(self, docname: str) -> None:
        seconds = time.monotonic() - self._began[docname]
        self._end(docname, f"{seconds:6.1f} s  FAILED")

    def _end(self, docname: str, text: str) -> None:
        self._said.pop(docname, None)
        if self._bars is not None:
            self._bars.remove_task(self._tasks.pop(docname))
        self._line(docname, text)

    def _line(self, docname: str, text: str) -> None:
        total = self._totals[docname]
        done = f"{self._done[docname]:3d}/{total} cells".ljust(13)
        self._say(f"  {docname.ljust(self._width)}  {done}{text}")

    def note(self, text: str) -> None:
        """Say one thing that is not about a chapter."""
        self._say(text)

    def _say(self, text: str) -> None:
        self.console.print(text, markup=False, soft_wrap=True)
        self.console.file.flush()
