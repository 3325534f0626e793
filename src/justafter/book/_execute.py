"""Executing the book: which chapters must run, running them side by side.

Chapters whose kept run still holds are taken from the store. The others run in
worker processes forked from one that has already imported JAX, as many at once
as the settings say, the longest first.
"""

from __future__ import annotations

import contextlib
import datetime
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from . import _worker
from ._chapters import Cell, Chapter, find_chapters
from ._checks import check_run
from ._errors import BookError, PageError
from ._figures import light_style
from ._pins import check_pins
from ._progress import Progress
from ._records import Record, current, read_records
from ._settings import Settings
from ._snippets import Snippets, snippets_of
from ._store import (
    Store,
    chapter_key,
    dependencies,
    digest,
    environment_fingerprint,
)

#: Set for the processes that run chapters, unless the caller chose otherwise.
#: JAX prints some sets, so the order in which Python hashes text is fixed as well.
DEFAULTS = {"JAX_PLATFORMS": "cpu", "MPLBACKEND": "agg", "PYTHONHASHSEED": "0"}


@dataclass
class Book:
    """The chapters, each with its run, and what is wrong with them."""

    chapters: list[Chapter]
    keys: dict[str, str]
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    errors: list[PageError] = field(default_factory=list)
    pins: Path | None = None
    snippets: dict[str, Snippets] = field(default_factory=dict)
    records: dict[str, dict[int, list[Record]]] = field(default_factory=dict)
    stale: list[str] = field(default_factory=list)

    @property
    def missing(self) -> list[Chapter]:
        """The chapters that have no run that holds."""
        return [c for c in self.chapters if c.docname not in self.runs]

    def chapter(self, docname: str) -> Chapter | None:
        """The chapter of that name; None for a page that does not execute."""
        return next((c for c in self.chapters if c.docname == docname), None)

    def check(self, store: Store) -> None:
        """Make the snippets; add to `errors` what does not hold of pages and runs."""
        for chapter in self.chapters:
            if (run := self.runs.get(chapter.docname)) is not None:
                self.errors += check_run(chapter, run)
                snippets, errors = snippets_of(chapter, run, store)
                self.snippets[chapter.docname] = snippets
                self.errors += errors
                if self.pins is not None and run["provenance"]["platform"] == "cpu":
                    self.errors += check_pins(chapter, run, self.pins)
        self.errors.sort(key=lambda error: (str(error.path), error.line))

    def take_records(self, folder: Path | None) -> None:
        """Note which records of other platforms hold, and which are stale.

        Raises:
            BookError: a file in `folder` is not a record.
        """
        found = read_records(folder) if folder else {}
        stale = []
        for docname, records in found.items():
            chapter = self.chapter(docname)
            if chapter is None or docname not in self.snippets:
                stale += [(docname, record) for record in records]
                continue
            programs = self.snippets[docname].programs
            run = self.runs[docname]
            self.records[docname], old = current(chapter, run, programs, records)
            stale += [(docname, record) for record in old]
        self.stale = [
            f"{name}, cell {record.number}, {record.label}" for name, record in stale
        ]

    def seal(self, docname: str) -> str:
        """A name for all that a chapter's page shows of its execution."""
        shown = {
            number: [[record.provenance, record.outputs] for record in records]
            for number, records in self.records.get(docname, {}).items()
        }
        return digest([self.runs[docname]["seal"], shown])


def execute(settings: Settings, progress: Progress) -> Book:
    """Bring every chapter below `settings.source` to a run that holds.

    A chapter that fails does not stop the others, and what has run is kept.

    Raises:
        BookError: there is no such folder, or JAX does not start at all.
        KeyboardInterrupt: as pressed; running chapters have been killed.
    """
    if _are_newer(settings):
        _set_defaults()
        _start_server()  # it imports JAX while the chapters are read
    book, store = _open(settings)
    missing = book.missing

    def finished(chapter: Chapter, run: dict[str, Any]) -> None:
        key = book.keys[chapter.docname]
        book.runs[chapter.docname] = store.save(chapter.docname, key, run)

    with progress.chapters(book.chapters, {c.docname for c in missing}):
        if missing:
            missing.sort(key=lambda chapter: -_expected(store, chapter))
            book.errors += _Pool(settings, progress, finished).run(missing)
    book.check(_snippet_store(settings))
    if settings.only is None:
        book.take_records(settings.records)
    for each in (store, _snippet_store(settings)):
        each.prune()
    return book


def count_cells(book: Book) -> str:
    """How many cells there are, and how many of them may vary, in words."""
    cells = [cell for chapter in book.chapters for cell in chapter.cells]
    measured = sum("measured" in cell.tags for cell in cells)
    device = sum(
        "device" in cell.tags and "measured" not in cell.tags for cell in cells
    )
    return (
        f"{len(cells)} cells: {len(cells) - measured - device} give the same every"
        f" time, {measured} are marked as measured, {device} as depending on the device"
    )


def kept(settings: Settings) -> Book:
    """The book as far as it has been executed, without executing anything."""
    book, _ = _open(settings)
    book.check(_snippet_store(settings))
    if settings.only is None:
        book.take_records(settings.records)
    return book


def _open(settings: Settings) -> tuple[Book, Store]:
    """Read the chapters, and find the runs that still hold."""
    if not settings.source.is_dir():
        raise BookError(f"{settings.source}: no such folder of chapters")
    _set_defaults()
    chapters, errors = find_chapters(settings.source)
    if settings.only is not None:
        unknown = sorted(settings.only - {chapter.docname for chapter in chapters})
        if unknown and not errors:
            raise BookError(f"no chapter is called {', '.join(unknown)}")
        chapters = [c for c in chapters if c.docname in settings.only]
        errors = [e for e in errors if _docname(e.path, settings) in settings.only]
    environment = environment_fingerprint(platform_name())
    keys = {c.docname: chapter_key(c, environment) for c in chapters}
    book = Book(chapters, keys, errors=errors, pins=settings.pins)
    store = Store(settings.cache, settings.project)
    for docname, key in keys.items():
        if (run := store.load(docname, key)) is not None:
            book.runs[docname] = run
    return book, store


def _set_defaults() -> None:
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)


def _snippet_store(settings: Settings) -> Store:
    return Store(settings.cache / "snippets", settings.project)


def _docname(path: Path, settings: Settings) -> str:
    return path.relative_to(settings.source).with_suffix("").as_posix()


def platform_name() -> str:
    """The devices that chapters will see, as text for the cache's key.

    On the CPU the environment says it all; elsewhere JAX is asked.
    """
    chosen = os.environ.get("JAX_PLATFORMS", "")
    if chosen == "cpu":
        return chosen
    code = (
        "import jax; d = jax.devices();"
        "print(jax.default_backend(), d[0].device_kind, len(d))"
    )
    asked = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    if asked.returncode:
        reason = asked.stderr.strip().splitlines() or ["no reason given"]
        raise BookError(
            f"JAX does not start on {chosen or 'any'} platform: {reason[-1]}"
        )
    return asked.stdout.strip()


def _expected(store: Store, chapter: Chapter) -> float:
    """A guess of how long a chapter takes: its newest kept run, or its length.

    Measured cells repeat what they measure, and keep all other cells waiting.
    """
    pattern = store.path(chapter.docname, "*").name
    kept = sorted(store.folder.glob(pattern), key=lambda path: path.stat().st_mtime)
    for path in reversed(kept):
        run = store.read(path)
        if run is not None:
            return float(run["seconds"])
    measured = sum("measured" in cell.tags for cell in chapter.cells)
    return 1.0 * len(chapter.cells) + 4.0 * measured


@dataclass
class _Running:
    """A chapter in a worker: the process, what it sent, and its deadline."""

    chapter: Chapter
    process: multiprocessing.process.BaseProcess
    events: Connection
    limit: float
    began: float = field(default_factory=time.monotonic)
    leading: list[dict] = field(default_factory=list)
    records: list[dict] = field(default_factory=list)
    current: int = 0
    deadline: float | None = None
    facts: dict[str, Any] | None = None
    crash: str = ""

    def take(self, event: tuple) -> None:
        """Note what the worker says."""
        match event:
            case ("started", number):
                self.current = number
                self.deadline = time.monotonic() + self.limit
            case ("leading", values):
                self.leading = values
            case ("cell", _, record):
                self.records.append(record)
                self.deadline = None
            case ("done", facts):
                self.facts = facts
            case ("crashed", text):
                self.crash = text

    @property
    def cell(self) -> Cell:
        """The cell that runs, or ran last."""
        return self.chapter.cells[max(self.current, 1) - 1]


# Forking is safe before any backend starts, and only known to be on Linux.
_METHOD = "forkserver" if sys.platform == "linux" else "spawn"


def _start_server() -> None:
    """Start the process that workers are forked from, unless it runs already."""
    if _METHOD == "forkserver":
        forkserver.set_forkserver_preload(list(_worker.PRELOAD))
        forkserver.ensure_running()


def _are_newer(settings: Settings) -> bool:
    """Whether some chapter's file is newer than all runs that are kept."""
    runs = settings.cache.glob("*.json")
    newest = max((path.stat().st_mtime for path in runs), default=0.0)
    return any(p.stat().st_mtime > newest for p in settings.source.rglob("*.md"))


class _Pool:
    """Runs chapters in forked workers, a few at a time."""

    def __init__(
        self,
        settings: Settings,
        progress: Progress,
        finished: Callable[[Chapter, dict[str, Any]], None],
    ) -> None:
        self.settings, self.progress, self.finished = settings, progress, finished
        self.context = multiprocessing.get_context(_METHOD)
        _start_server()
        self.running: list[_Running] = []
        self.errors: list[PageError] = []

    def run(self, chapters: Iterable[Chapter]) -> list[PageError]:
        """Run all; what went wrong, chapter by chapter."""
        waiting = list(chapters)
        with tempfile.TemporaryDirectory(prefix="justafter-locks-") as locks:
            try:
                while waiting or self.running:
                    while waiting and len(self.running) < max(1, self.settings.jobs):
                        self._start(waiting.pop(0), Path(locks))
                    self._listen()
            finally:
                for running in self.running:
                    _kill(running)
        return self.errors

    def _start(self, chapter: Chapter, locks: Path) -> None:
        job = _worker.Job(
            docname=chapter.docname,
            cells=tuple(
                (
                    cell.source,
                    "measured" in cell.tags,
                    cell.raises is not None or self.settings.keep_going,
                    tuple(value.expression for value in cell.values),
                )
                for cell in chapter.cells
            ),
            leading=tuple(value.expression for value in chapter.leading),
            output_limit=self.settings.output_limit,
            project=str(self.settings.project),
            turnstile=str(locks / "turnstile"),
            room=str(locks / "room"),
            style=light_style(),
            platform=chapter.platform,
        )
        receiver, sender = self.context.Pipe(duplex=False)
        process = self.context.Process(
            target=_worker.run_chapter, args=(job, sender), daemon=False
        )
        process.start()
        sender.close()
        limit = chapter.limit or self.settings.cell_seconds
        self.running.append(_Running(chapter, process, receiver, limit))
        self.progress.started(chapter.docname)

    def _listen(self) -> None:
        """Wait for the next event, death or deadline, and act on it."""
        now = time.monotonic()
        deadlines = [r.deadline - now for r in self.running if r.deadline is not None]
        timeout = max(0.0, min([1.0, *deadlines]))
        ready = wait([running.events for running in self.running], timeout)
        for running in list(self.running):
            if running.events in ready:
                self._receive(running)
            elif running.deadline is not None and time.monotonic() > running.deadline:
                _kill(running)
                self._fail(
                    running,
                    f"cell {running.current} was still running"
                    f" after {running.limit:g} seconds",
                    "make it shorter, or raise 'justafter: {limit: seconds}'"
                    " in the front matter",
                )
        self.progress.tick()

    def _receive(self, running: _Running) -> None:
        try:
            running.take(running.events.recv())
        except EOFError:
            self._ended(running)
        else:
            done = len(running.records)
            self.progress.advanced(running.chapter.docname, done)

    def _ended(self, running: _Running) -> None:
        """The worker closed its end: the chapter is done, or it failed."""
        running.process.join(timeout=10)
        _kill(running)
        chapter = running.chapter
        if running.crash:
            self._fail(running, "the chapter broke its worker", detail=running.crash)
        elif running.facts is not None:
            self.running.remove(running)
            run = _as_run(running, self.settings.project)
            self.finished(chapter, run)
            self.progress.finished(chapter.docname, run["seconds"])
        elif running.records and running.records[-1]["failure"]:
            self._fail(running, *_unannounced(running, self.settings))
        else:
            self._fail(
                running,
                f"cell {running.current} killed its process"
                f" ({_cause(running.process.exitcode)})",
                "run the cell in a plain Python process to see why",
            )

    def _fail(
        self, running: _Running, message: str, hint: str = "", detail: str = ""
    ) -> None:
        if running in self.running:
            self.running.remove(running)
        line = running.cell.line
        if running.records and (failure := running.records[-1]["failure"]):
            line += failure["line"] - 1
        self.errors.append(PageError(running.chapter.path, line, message, hint, detail))
        self.progress.failed(running.chapter.docname)


def _unannounced(running: _Running, settings: Settings) -> tuple[str, str, str]:
    """The message, way out and traceback of a cell that stopped its chapter."""
    failure = running.records[-1]["failure"]
    if failure["kind"] == "output":
        return (
            f"cell {running.current} printed over {settings.output_limit:,} characters",
            "print less: no reader will read it",
            "",
        )
    first = (failure["message"].splitlines() or [""])[0]
    announcement = f"{failure['name']}: {first[:40]}"
    return (
        f"cell {running.current} raised {failure['name']}",
        f'mend the cell; if it is to fail, say :raises: "{announcement}"',
        failure["traceback"],
    )


def _cause(exitcode: int | None) -> str:
    if exitcode is not None and exitcode < 0:
        with contextlib.suppress(ValueError):
            return signal.Signals(-exitcode).name
    return f"exit code {exitcode}"


def _kill(running: _Running) -> None:
    """End a worker and every process that it started."""
    pid = running.process.pid
    if pid is not None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
    running.process.join(timeout=10)
    running.events.close()


def _as_run(running: _Running, project: Path) -> dict[str, Any]:
    """What is kept of an executed chapter."""
    facts = dict(running.facts or {})
    modules, files = facts.pop("modules"), facts.pop("files")
    executed = os.environ.get("SOURCE_DATE_EPOCH")
    return {
        "docname": running.chapter.docname,
        "executed": int(executed) if executed else int(time.time()),
        "seconds": sum(record["seconds"] for record in running.records),
        "provenance": {**facts, **_versions()},
        "leading": running.leading,
        "cells": running.records,
        "depends": dependencies(modules, files, project),
    }


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "jax": version("jax"),
        "jaxlib": version("jaxlib"),
    }


def date_of(run: dict[str, Any]) -> datetime.datetime:
    """When a chapter was executed, in UTC."""
    return datetime.datetime.fromtimestamp(run["executed"], datetime.UTC)
