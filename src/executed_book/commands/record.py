"""`record`: storing what the cells give here, for the book that is built elsewhere.

Here is another device, or another version of JAX. A page's file is written as soon as
the page is done. A cell that fails here costs its own record and those of the cells
that need it; one that ends the whole process costs those of its chapter.
"""

import dataclasses
import re
import subprocess
from pathlib import Path

from ..book import execute
from ..checking.elsewhere import is_same, same_cells
from ..checking.rules import check_run, failed
from ..checking.stored import (
    accepted_path,
    is_accepted,
    read_outputs,
    recorded_page,
    stored_path,
    stored_source,
    write_page,
)
from ..errors import BookError, PageError, counted
from ..model import Chapter, Executed
from ..programs.snippets import needed_cells
from ..running.fingerprint import installed_version
from ..running.platform import platform_name
from ..running.progress import Progress
from ..settings import Settings

#: The length of a reason at most (characters).
_WIDEST = 200


def record(settings: Settings, progress: Progress) -> None:
    """Execute the book here, store what its cells give, and tell how it went.

    Chapters that say on which platform they run are recorded on a CPU only.

    Raises:
        BookError: on a device a cell failed; all others are recorded. Or what is here
            was accepted already, or `conf.py` names no folder.
    """
    folder = settings.outputs_folder
    is_on_cpu = platform_name().startswith("cpu")
    jax = installed_version("jax") or ""
    with_what = f"JAX {jax}" if jax else "this Python"
    here = stored_path(folder, jax, "").parent
    if is_on_cpu and any(map(is_accepted, here.rglob("*.txt"))):
        raise BookError(
            f"a CPU's outputs with {with_what} are pinned already\n"
            "    → pin those that have changed with 'python -m executed_book pin'"
        )
    recording = _Recording(settings, folder, is_on_cpu)
    try:
        recording.run(progress)
    finally:  # also where it is interrupted: what is written stays
        if recording.tallies:
            progress.note(recording.report())
    # What another release breaks is what is asked for.
    if recording.surprises and not is_on_cpu:
        raise BookError(
            f"{recording.surprises} cells or chapters failed; all others are recorded\n"
            "    → correct them; or if their page cannot run here, write into its front"
            " matter 'executed_book: {platform: cpu}'"
        )


class _Recording:
    """The records as they are made, and what came of each chapter."""

    def __init__(self, settings: Settings, folder: Path, is_on_cpu: bool) -> None:
        self.settings = dataclasses.replace(settings, compares=False)
        self.folder, self.is_on_cpu = folder, is_on_cpu
        self.tallies: dict[str, str] = {}
        self.surprises = 0
        self._driver = None if is_on_cpu else _driver()

    def run(self, progress: Progress) -> None:
        """Execute the book, and tell of each page that could not be recorded."""

        def choose(chapter: Chapter) -> Chapter | None:
            """Leave out a chapter that runs on a CPU wherever the book is built."""
            return chapter if self.is_on_cpu or chapter.platform is None else None

        book = execute(self.settings, progress, choose=choose, ready=self._store)
        chapters = {chapter.path: chapter.docname for chapter in book.chapters}
        for error in book.errors:
            name = chapters.get(error.path, error.path.name)
            if name not in self.tallies:
                reason = f"line {error.line}: {_first_line(error)}"
                self._tell(name, 0, 0, 0, [reason])

    def report(self) -> str:
        """What came of each chapter, and where its record is."""
        lines = [f"{name}: {self.tallies[name]}" for name in sorted(self.tallies)]
        return "\n".join([*lines, f"recorded below {self.folder}"])

    def _tell(
        self, name: str, cells: int, same: int, different: int, failed: list[str]
    ) -> None:
        """Note what came of a chapter: how many cells did what, and why some failed."""
        counts = (
            f"{counted(cells, 'cell')} recorded, {same} the same on a CPU,"
            f" {different} different, {len(failed)} failed"
        )
        self.tallies[name] = "\n    ".join([counts, *failed])
        self.surprises += len(failed)

    def _store(self, executed: Executed) -> None:
        """Write the file of a chapter that ran to its end, and tell of it."""
        here = _with_provenance(executed, self._driver)
        chapter, needs = here.chapter, needed_cells(here)
        failures, spoilt = failed(here, needs)
        errors = failures + check_run(here, self.settings.rules, spoilt)
        wrong = {  # by the last cell that begins above a line
            max((c.number for c in chapter.cells if c.line <= e.line), default=0): e
            for e in reversed(errors)
        }
        numbers = {cell.number for cell in chapter.cells}
        good = numbers - spoilt - wrong.keys()
        steady = {cell.number for cell in chapter.cells if not cell.varies} & good
        same = self._same(here) & steady
        # What is the same on a CPU needs no figures and HTML of its own.
        shown = set() if self.is_on_cpu else good - same
        page = recorded_page(here, needs, numbers - good, shown)
        where = page.provenance
        path = stored_path(self.folder, where.jax, chapter.docname, where.device_kind)
        write_page(page, path)
        reasons = [
            f"cell {number}, line {error.line}: {_first_line(error)}"
            for number, error in sorted(wrong.items())
        ]
        counts = len(good), len(same), len(steady - same)
        self._tell(chapter.docname, *counts, reasons)

    def _same(self, executed: Executed) -> set[int]:
        """The cells that give what a CPU gives: with this JAX, or as it is accepted."""
        docname, jax = executed.chapter.docname, executed.run.provenance.jax
        path = stored_path(self.folder, jax, docname)
        if self.is_on_cpu or not path.exists():
            path = accepted_path(self.folder, docname, jax) or path
        if not path.exists():
            return set()
        sources = [stored_source(cell) for cell in executed.chapter.cells]
        stored = same_cells(read_outputs(path).cells, sources, needed_cells(executed))
        return {c.number for c, r in executed if is_same(stored.get(c.number), r)}


def _first_line(error: PageError) -> str:
    """Why a cell failed, in a line: what its exception says, or what is wrong."""
    lines = [line for line in error.detail.splitlines() if line.strip()]
    telling = [s for s in lines if not s.startswith((" ", "Traceback"))][:1]
    if telling == ["AssertionError"]:
        telling += [lines[lines.index("AssertionError") - 1].strip()]
    what, _, others = error.message.partition("; not checked, ")
    what = re.sub(r"^cell \d+ ", "", what)
    if telling and what.startswith("raised "):
        what = "raised"  # and which class it was comes with its words
    line = ": ".join([what, *telling])[:_WIDEST]
    return f"{line}; not checked, {others}" if others else line


def _with_provenance(executed: Executed, driver: str | None) -> Executed:
    run = executed.run
    provenance = dataclasses.replace(
        run.provenance,
        date=f"{run.date:%Y-%m-%d}",
        driver=driver if run.provenance.platform == "gpu" else None,
    )
    run = dataclasses.replace(run, provenance=provenance)
    return dataclasses.replace(executed, run=run)


def _driver() -> str | None:
    """The version of the NVIDIA driver, if there is one."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    lines = asked.stdout.splitlines()
    return lines[0] if lines else None
