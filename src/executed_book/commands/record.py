"""`record`: writing what this platform gives, for the book built elsewhere.

A chapter's record is written as soon as the chapter is done. A cell that fails here
costs its own record and those of the cells that need it; where one ends the whole
process, its chapter is executed again without it.
"""

from __future__ import annotations

import dataclasses
import re
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from ..book import Book, Needs, execute
from ..checking.pins import pin_path, pinned_with
from ..checking.rules import check_run, failed
from ..errors import BookError, PageError
from ..files import file_name, write_whole
from ..model import CellResult, Chapter, Executed, Failure
from ..platforms.account import Account, Failed, table
from ..platforms.records import (
    pinned_texts,
    records_of,
    same_as,
    slug,
    write_records,
)
from ..programs.snippets import snippets_of
from ..releases.snapshots import Snapshot, read_snapshot, snapshot_of
from ..running.progress import Progress
from ..running.store import Store
from ..settings import Settings
from ..words import counted

#: How many cells of one chapter may end its process, or run for too long, before the
#: chapter is given up.
_ENDED_AT_MOST = 3

#: How much of a reason the table tells (characters).
_WIDEST = 200


def record(settings: Settings, progress: Progress, on_cpu: Path | None = None) -> None:
    """Execute the book here, write a record of what the CPU gives otherwise, and tell.

    Chapters that say that they run on another platform leave no record.

    Args:
        settings: how the book is read, executed and checked.
        progress: what is told how far the chapters are, and the table at the end.
        on_cpu: a snapshot of the book on a CPU with the JAX that is here. Without one,
            chapters that were pinned with another JAX are executed on the CPU first.

    Raises:
        BookError: a cell failed that is not known to; all others are recorded. Or
            `conf.py` does not say where records are.
    """
    if settings.records is None:
        raise BookError(
            "nowhere to keep records\n    → name a folder in conf.py:"
            ' executed_book_records = "../outputs/records"'
        )
    quiet = dataclasses.replace(settings, records=None, pins=None)
    if on_cpu is not None:
        snapshot = _fitting(read_snapshot(on_cpu), on_cpu)
    else:
        snapshot = _on_cpu(quiet, settings.pins, progress)
    recording = _Recording(settings, snapshot)
    try:
        recording.run(quiet, progress)
    finally:  # also where it is interrupted: what is written stays
        if recording.has_begun:
            progress.note(recording.report())
    if recording.surprises:
        raise BookError(
            f"{recording.surprises} cells or chapters failed; all others are recorded\n"
            "    → mend them; or where one cannot run here, say so in its cell:"
            ' :fails-on: "gpu: why"'
        )


# -- the CPU beside it


def _fitting(snapshot: Snapshot, path: Path) -> Snapshot:
    """A snapshot if it was taken with the JAX that is here.

    Raises:
        BookError: it was not.
    """
    taken = snapshot.versions
    if taken.get("jax") != version("jax") or taken.get("platform") != "cpu":
        raise BookError(
            f"{path}: taken on {taken.get('platform')} with JAX {taken.get('jax')}, and"
            f" here is JAX {version('jax')}\n    → take it anew on a CPU with that JAX:"
            f" JAX_PLATFORMS=cpu python -m executed_book snapshot {path}"
        )
    return snapshot


def _on_cpu(settings: Settings, pins: Path | None, progress: Progress) -> Snapshot:
    """What the CPU gives in the chapters that were pinned with another JAX."""
    here = version("jax")

    def choose(chapter: Chapter) -> Chapter | None:
        with_ = pinned_with(pin_path(pins, chapter.docname)) if pins else None
        if with_ in (None, here) or chapter.platform is not None:
            return None
        return dataclasses.replace(chapter, platform="cpu")

    if not pins or not any(
        pinned_with(path) not in (None, here) for path in pins.rglob("*.txt")
    ):
        return Snapshot({}, {})
    progress.note(
        f"The pins were made with another JAX than the {here} that is here:"
        " the CPU goes first, to be compared with"
    )
    book = execute(settings, progress, choose=choose)
    return snapshot_of(book) if book.executed else Snapshot({}, {})


# -- the platform itself


class _Recording:
    """The records as they are made, and the account of them."""

    def __init__(self, settings: Settings, on_cpu: Snapshot) -> None:
        assert settings.records is not None
        self.settings, self.folder = settings, settings.records
        self._on_cpu = on_cpu
        self._programs = Store(settings.cache / "snippets", settings.project)
        self._driver = _driver()
        self._logs = settings.cache / "logs"
        self._logged = 0
        self._accounts: dict[str, Account] = {}
        # Cells that ended their chapter's process, by chapter, with what was said.
        self._ended: dict[str, dict[int, PageError]] = {}
        self._originals: dict[str, Chapter] = {}

    @property
    def has_begun(self) -> bool:
        """Whether anything is to be told."""
        return bool(self._accounts)

    @property
    def surprises(self) -> int:
        """How much failed that nobody knew of."""
        return sum(account.surprises for account in self._accounts.values())

    def run(self, settings: Settings, progress: Progress) -> None:
        """Execute the book, again without what ends the process of its chapter."""
        book = execute(settings, progress, choose=self._choose, ready=self._take)
        self._note_unread(book)
        for _ in range(_ENDED_AT_MOST):
            again = self._note_ended(book)
            if not again:
                break
            listed = ", ".join(sorted(again))
            progress.note(f"once more, without the cells that ended it: {listed}")
            narrowed = dataclasses.replace(settings, only=frozenset(again))
            book = execute(narrowed, progress, choose=self._choose, ready=self._take)
        else:
            for docname in self._note_ended(book):
                self._give_up(docname, *self._ended[docname].values())

    def _give_up(self, docname: str, *errors: PageError) -> None:
        """Account for a chapter that cannot be recorded at all."""
        failed = [Failed(0, e.line, f"given up: {_first_line(e)}") for e in errors]
        self._accounts[docname] = Account(docname, failed=failed)

    def report(self) -> str:
        """The table, and where the log is."""
        text = table([self._accounts[name] for name in sorted(self._accounts)])
        if self._logged:
            text += (
                f"\n{self._logged} lines that the runtime logged are kept in"
                f" {self._logs}"
            )
        count = sum(account.recorded for account in self._accounts.values())
        return f"{text}\n{counted(count, 'cell')} recorded below {self.folder}"

    # -- what is executed

    def _choose(self, chapter: Chapter) -> Chapter | None:
        """A chapter without the cells that ended its process before."""
        if chapter.platform is not None:
            return None
        self._originals[chapter.docname] = chapter
        ended = self._ended.get(chapter.docname, {})
        return chapter.with_cells(ended, is_skipped=True) if ended else chapter

    def _note_unread(self, book: Book) -> None:
        """Account for pages that cannot even be read."""
        read = {chapter.path for chapter in book.chapters}
        for error in book.errors:
            if error.path not in read:
                name = error.path.name
                account = self._accounts.setdefault(name, Account(name))
                account.failed.append(Failed(0, error.line, error.message))

    def _note_ended(self, book: Book) -> set[str]:
        """Note which cells ended their chapters' processes; those chapters."""
        found = set()
        for chapter in book.chapters:
            run = book.executed.get(chapter.docname)
            done = len(run.run.results) if run is not None else 0
            if run is not None and run.run.provenance.platform:
                continue
            errors = [e for e in book.errors if e.path == chapter.path]
            if done == len(chapter.cells):  # it was the end of the chapter, or no cell
                self._give_up(chapter.docname, *errors[-1:])
                continue
            # The one that ended it is the first that is told at the cell or below.
            line = chapter.cells[done].line
            at = [e for e in errors if e.line >= line] or errors
            self._ended.setdefault(chapter.docname, {})[done + 1] = at[0]
            found.add(chapter.docname)
        return found

    # -- what came of it

    def _take(self, executed: Executed) -> None:
        """Write the record of a chapter that ran to its end, and account for it."""
        docname = executed.chapter.docname
        here = self._with_ended(_with_provenance(executed, self._driver))
        chapter, platform = here.chapter, here.run.provenance.platform
        known = {c.number for c in chapter.cells if c.is_to_fail_on(platform)}
        failures, spoilt = failed(here, Needs(here))
        errors = failures + check_run(here, self.settings.rules, spoilt)
        snippets, program_errors = snippets_of(here, self._programs)
        if "programs" in self.settings.rules:
            errors += program_errors
        wrong = {_cell_at(chapter, error.line): error for error in reversed(errors)}
        without = spoilt | wrong.keys()
        on_cpu = self._texts(chapter)
        records = records_of(here, snippets.programs, on_cpu, without)
        device = slug(here.run.provenance.device_kind)
        write_records(records, docname, self.folder / device)
        self._accounts[docname] = Account(
            docname,
            recorded=len(records),
            same=len(same_as(here, on_cpu) - without - _varying(chapter)),
            different=len({r.number for r in records} - _varying(chapter)),
            failed=[
                Failed(number, error.line, _first_line(error))
                for number, error in sorted(wrong.items())
            ],
            expected=[
                Failed(c.number, c.line, (c.fails_on or "").partition(": ")[2])
                for c in chapter.cells
                if c.number in known & spoilt
            ],
            held=sorted(known - spoilt),
            needing=sorted(spoilt - wrong.keys() - known),
        )
        self._keep_log(here)

    def _with_ended(self, executed: Executed) -> Executed:
        """The chapter as it stands, where a cell that ended it counts as failed."""
        docname = executed.chapter.docname
        ended = self._ended.get(docname)
        if not ended:
            return executed
        original = self._originals[docname]
        chapter = original.with_cells(ended, raises=None, may_raise=False)
        results = list(executed.run.results)
        for number, error in ended.items():
            failure = Failure("Ended", (), error.message, 1, error.message)
            results[number - 1] = CellResult(failure=failure)
        run = dataclasses.replace(executed.run, results=tuple(results))
        return Executed(chapter, run)

    def _texts(self, chapter: Chapter) -> Mapping[int, str]:
        """What the CPU gives of each cell, with our own JAX, as far as it is known."""
        taken = self._on_cpu.chapters.get(chapter.docname)
        if taken is None:
            return pinned_texts(chapter, self.settings.pins)
        sources = {cell.number: cell.source for cell in chapter.cells}
        return {
            cell.number: cell.output
            for cell in taken.cells
            if sources.get(cell.number) == cell.source
        }

    def _keep_log(self, executed: Executed) -> None:
        """Keep what the runtime logged during a chapter, by cell."""
        said = {cell.number: result.log for cell, result in executed if result.log}
        self._logged += sum(len(log.splitlines()) for log in said.values())
        path = self._logs / f"{file_name(executed.chapter.docname)}.log"
        if said:
            write_whole(path, "".join(f"cell {n}\n{log}\n" for n, log in said.items()))
        else:
            path.unlink(missing_ok=True)


def _varying(chapter: Chapter) -> set[int]:
    return {cell.number for cell in chapter.cells if cell.varies}


def _cell_at(chapter: Chapter, line: int) -> int:
    """The cell that a line of the page belongs to: the last that begins above it."""
    return max((c.number for c in chapter.cells if c.line <= line), default=0)


def _first_line(error: PageError) -> str:
    """Why a cell failed, in a line: what its exception says, or what is wrong."""
    said = [line for line in error.detail.splitlines() if line.strip()]
    telling = [s for s in said if not s.startswith((" ", "Traceback"))][:1]
    what = re.sub(r"^cell \d+ ", "", error.message.partition("; not looked at")[0])
    if telling and what.startswith("raised "):
        what = "raised"  # and which class it was comes with its words
    return ": ".join([what, *telling])[:_WIDEST]


def _with_provenance(executed: Executed, driver: str | None) -> Executed:
    run = executed.run
    is_gpu = run.provenance.platform == "gpu"
    provenance = dataclasses.replace(
        run.provenance,
        date=f"{run.date:%Y-%m-%d}",
        driver=driver if is_gpu else None,
    )
    return dataclasses.replace(
        executed, run=dataclasses.replace(run, provenance=provenance)
    )


def _driver() -> str | None:
    """The version of the NVIDIA driver, if there is one."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    lines = asked.stdout.splitlines()
    return lines[0] if lines else None
