"""Running chapters: from what stands on a page to what executing it gave."""

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ..errors import BookError, PageError
from ..model import CellResult, Chapter, Executed, Provenance, Run, result_from
from ..settings import Settings
from .channel import Message
from .fingerprint import Depends, dependencies, installed_version
from .pool import Task
from .processes import memory_of
from .progress import Progress
from .surroundings import Uses
from .workers import SAID_AT_MOST, Job, Worker


@dataclass(frozen=True)
class Finished:
    """A chapter that ran to its end, and what its run depends on."""

    run: Run
    depends: Depends


class ChapterTask(Task):
    """One chapter on its way through a worker."""

    def __init__(
        self,
        chapter: Chapter,
        settings: Settings,
        progress: Progress,
        finished: Callable[[Chapter, Finished], None],
        names_jax: bool = True,
    ) -> None:
        self.chapter, self.settings, self.progress = chapter, settings, progress
        self.finished, self._names_jax = finished, names_jax
        self.errors: list[PageError] = []
        self._limit = chapter.limit or settings.cell_seconds
        self._reset()

    def _reset(self) -> None:
        self._results: list[CellResult] = []
        self._number, self._phase = 0, "start"
        self._done: Message | None = None
        self._broken = ""
        self._too_much: tuple[str, ...] = ()
        self._pid = 0

    def job(self) -> Job:
        self.progress.started(self.chapter.docname)
        return self.chapter, self.settings

    def hear(self, message: Message) -> None:
        self._phase = message["at"]
        self.deadline = time.monotonic() + self._limit
        match message:
            case {"at": "begin", "pid": pid}:
                self._pid = pid
            case {"at": "cell", "number": number}:
                self._number = number
            case {"at": "result", "result": result}:
                self._results.append(result_from(result))
                self.progress.advanced(self.chapter.docname, len(self._results))
            case {"at": "afresh"}:
                self.fresh = True
            case {"at": "broken", "text": text}:
                self._broken = text
            case {"at": "done"}:
                self._done = message

    def may_go_on(self, worker: Worker) -> bool:
        # What is written below Python goes to a file, which must not fill the disk. A
        # character takes up to four bytes; what is over the limit by less than this is
        # found when the cell has ended.
        settings = self.settings
        if worker.wrote_below() > 8 * settings.output_limit:
            what = f"printed over {settings.output_limit:,} characters"
            self._too_much = (
                what,
                "print less, or raise executed_book_output_limit in conf.py",
            )
        elif memory_of(self._pid) > settings.memory_bytes:
            limit = f"{settings.memory_bytes / 1e9:.3g} GB of memory"
            way = "keep less in memory, or raise executed_book_memory in conf.py"
            self._too_much = f"held over {limit}", way
        return not self._too_much

    def ended(self, worker: Worker, status: int | None, late: bool) -> bool:
        docname = self.chapter.docname
        if self._phase == "afresh":
            self._reset()
            return True
        if self._done is not None:
            self.finished(self.chapter, self._finish(self._done))
            self.progress.finished(docname, sum(r.seconds for r in self._results))
            return False
        self.errors.append(self._error(worker, status, late))
        self.progress.failed(docname)
        return False

    def so_far(self) -> Executed | None:
        """The cells that ran before the process ended, to be looked at as well."""
        if not self._results:
            return None
        nowhere = {"platform": "", "device_kind": "", "device_count": 0}
        return Executed(self.chapter, self._run({**nowhere, "modules": ()}))

    def _finish(self, done: Message) -> Finished:
        used = done["uses"]
        uses = Uses({*used["files"]}, {*used["folders"]}, used["variables"])
        for name in self.chapter.reads or ():
            place = self.chapter.path.parent / name
            for path in (place, *place.rglob("*")):
                (uses.folders if path.is_dir() else uses.files).add(str(path))
        depends = dependencies(done["modules"], uses, self.settings.project)
        return Finished(self._run(done), depends)

    def _run(self, facts: Mapping[str, Any]) -> Run:
        epoch = source_date()
        return Run(
            docname=self.chapter.docname,
            executed=int(time.time()) if epoch is None else epoch,
            provenance=Provenance(
                platform=facts["platform"],
                device_kind=facts["device_kind"],
                device_count=facts["device_count"],
                **_versions(self._names_jax or "jax" in facts["modules"]),
            ),
            results=tuple(self._results),
        )

    # -- what ended a chapter before its end

    def _error(self, worker: Worker, status: int | None, late: bool) -> PageError:
        stderr = worker.text_below(2)[-SAID_AT_MOST:].strip()
        if self._broken:
            return self._at_cell("broke the process that runs it", detail=self._broken)
        if self._too_much:
            return self._at_cell(*self._too_much)
        if late:
            return self._at_cell(
                f"was still running after {self._limit:g} seconds",
                "make it shorter, or write 'executed_book: {limit: SECONDS}' into the"
                " front matter",
            )
        return self._at_cell(
            f"killed its process ({_cause(status)})",
            "its last words are above"
            if stderr
            else "run the cell in a plain Python process to see why",
            stderr,
        )

    def _at_cell(self, what: str, hint: str = "", detail: str = "") -> PageError:
        """An error at the cell that runs, or ran last."""
        line, who = 1, "the chapter"
        if self._number:
            cell = self.chapter.cells[self._number - 1]
            line, who = cell.line, f"cell {cell.number}"
            if self._phase == "values" and cell.values:
                line, who = cell.values[0].line, "a value in the text"
            elif self._phase == "end":
                who = "the end of the chapter"
        return PageError(self.chapter.path, line, f"{who} {what}", hint, detail)


def source_date() -> int | None:
    """The time at which everything is said to have been made (seconds since 1970).

    Raises:
        BookError: `SOURCE_DATE_EPOCH` is set to something else.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if not epoch:
        return None
    try:
        if not epoch.isdecimal() or not datetime.fromtimestamp(int(epoch), UTC):
            raise ValueError
    except (ValueError, OverflowError, OSError):  # each for other numbers
        raise BookError(
            f"SOURCE_DATE_EPOCH is {epoch!r}\n"
            "    → it is a number of seconds since 1970"
        ) from None
    return int(epoch)


def _cause(status: int | None) -> str:
    if status is None:
        return "and its supervisor"
    if status < 0:
        try:
            return signal.Signals(-status).name
        except ValueError:
            return f"signal {-status}"
    return f"exit code {status}"


def _versions(with_jax: bool) -> dict[str, str]:
    """What ran: Python, and JAX where the book or the chapter uses it, or else ""."""
    python = ".".join(map(str, sys.version_info[:3]))
    libraries = ("jax", "jaxlib")
    jax = {n: (with_jax and installed_version(n)) or "" for n in libraries}
    return {"python": python, **jax}
