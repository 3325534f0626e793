"""Running what readers take away, as they would, and acting on what it showed.

Programs of a chapter compile much the same functions, so they share what JAX compiles.
What fails is run once more, alone and compiling everything itself: a bound on a time
can be missed when something else takes the machine for a moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..checking.text import printed_text
from ..errors import PageError
from ..model import Executed
from ..running.pool import Pool
from ..running.processes import run_folder
from ..running.programs import ProgramTask, Ran
from ..running.progress import Progress
from ..running.workers import Worker, open_workers
from .assembly import Program
from .page import NoFaithfulProgram
from .snippets import Snippets, programs_by_cell, raised
from .verdicts import Promise, Verdicts

#: A program that runs longer than this hangs (seconds).
LIMIT = 300.0


@dataclass(frozen=True)
class Offer:
    """Something that a page offers to its readers.

    Attributes:
        path, line: where it stands.
        what: what it is, for messages: "the program of cell 3", "the script".
        promise: the text, and what it has to do.
        verdicts: where what it did is kept.
        cell: index of the cell that it is the program of; None for a script.
        seconds: how long it is expected to run, as its cells did on the page.
        instead: makes the text that is offered if this one does not hold, if any.
    """

    path: Path
    line: int
    what: str
    promise: Promise
    verdicts: Verdicts
    cell: int | None = None
    seconds: float = 0.0
    instead: Callable[[], str | None] = lambda: None

    @property
    def waits(self) -> bool:
        """Whether it has still to be run."""
        return not self.verdicts.has(self.promise)

    @property
    def stands_in(self) -> str | None:
        """The text that readers get in its place, if it had to be replaced."""
        return None if self.waits else self.verdicts.instead(self.promise)

    @property
    def error(self) -> PageError | None:
        """What is wrong with it, if it was run, fails, and nothing stands in for it."""
        if self.waits or self.stands_in is not None:
            return None
        problem = self.verdicts.problem(self.promise)
        if problem is None:
            return None
        return PageError(
            self.path,
            self.line,
            f"{self.what} does not give what the page shows",
            "have the cell take what it needs from names that cells above define, or"
            ' say why it cannot be copied: :no-program: "..."',
            f"{problem}\n--- as copied\n{self.promise.text}",
        )


def offers_of(
    executed: Executed, snippets: Snippets, verdicts: Verdicts
) -> list[Offer]:
    """The programs of a chapter's cells, and the chapter as a script."""
    chapter = executed.chapter
    offers = []
    for (cell, result), program in zip(executed, snippets.programs, strict=True):
        if program is not None:
            gives = None if cell.varies else printed_text(result.outputs)
            fails = raised(cell, result)
            promise = Promise(program.text, gives, fails, program.sets_environment)
            offer = Offer(
                chapter.path,
                cell.line,
                f"the program of cell {cell.number}",
                promise,
                verdicts,
                cell=program.cell,
                seconds=_seconds(executed, program),
                instead=_whole(executed, program.cell),
            )
            offers.append(offer)
    if snippets.script:
        fresh = any(p is not None and p.sets_environment for p in snippets.programs)
        promise = Promise(snippets.script, fresh=fresh)
        script = Offer(chapter.path, 1, "the script", promise, verdicts)
        offers.append(replace(script, seconds=executed.run.seconds))
    return offers


def _seconds(executed: Executed, program: Program) -> float:
    cells = {program.cell, *(cell for cell, _ in program.kept)}
    return sum(executed.run.results[cell].seconds for cell in cells)


def _whole(executed: Executed, cell: int) -> Callable[[], str | None]:
    def make() -> str | None:
        try:
            return programs_by_cell(executed).whole(cell).text
        except NoFaithfulProgram:
            return None

    return make


def settled(snippets: Snippets, offers: Iterable[Offer]) -> Snippets:
    """The snippets without the programs that were found not to hold.

    Where what stands above the cell holds as a whole, it takes their place.
    """
    programs, reasons = [*snippets.programs], dict(snippets.reasons)
    for offer in offers:
        if offer.cell is None:
            continue
        if (text := offer.stands_in) is not None:
            programs[offer.cell] = Program(text, offer.cell, is_whole=True)
        elif offer.error is not None:
            programs[offer.cell] = None
            reasons[offer.cell] = "run by itself, this cell gives something else."
    return replace(snippets, programs=programs, reasons=reasons)


def count(offers: Sequence[Offer]) -> str:
    """How many of the offers have been run, in words."""
    waiting = sum(offer.waits for offer in offers)
    whole = sum(offer.stands_in is not None for offer in offers)
    said = f"{len(offers)} programs and scripts: "
    said += f"{len(offers) - waiting} verified" if waiting else "all verified"
    if whole:
        said += f" ({whole} hold only with all that stands above their cell)"
    if waiting:
        said += f", {waiting} wait for 'python -m executed_book verify'"
    return said


class _Trial(ProgramTask):
    """One program, run as readers run it; tells when it has ended."""

    def __init__(self, promise: Promise, told: Callable[[Ran], None]) -> None:
        super().__init__(promise.text, fresh=promise.fresh, limit=LIMIT)
        self._told = told

    def ended(self, worker: Worker, status: int | None, late: bool) -> bool:
        again = super().ended(worker, status, late)
        if self.ran is not None:
            self._told(self.ran)
        return again


def verify(
    offers: Iterable[Offer],
    jobs: int,
    progress: Progress,
    longest: float = float("inf"),
) -> None:
    """Run the offers that wait; their verdicts are kept one by one.

    Those that are expected to run for more than `longest` seconds go on waiting.

    Raises:
        BookError: Python cannot import what programs need.
        KeyboardInterrupt: as pressed; what has been run is kept.
    """
    waiting = [o for o in offers if o.waits and o.seconds <= longest]
    if not waiting:
        return
    with progress.steps(len(waiting), "programs run alone") as step:
        failed = _shared(waiting, jobs, step)
        failed = _alone(failed)
        for offer, problem in failed:
            _note_instead(offer, problem)


def _shared(
    waiting: Sequence[Offer], jobs: int, step: Callable[[], None]
) -> list[tuple[Offer, str]]:
    """Run several at once; those that fail."""
    with run_folder() as folder:
        return _run(waiting, jobs, compiled_into(folder / "compiled"), step)


def compiled_into(folder: Path) -> dict[str, str]:
    """Variables with which JAX keeps everything that it compiles."""
    return {
        "JAX_COMPILATION_CACHE_DIR": str(folder),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def _alone(failed: Sequence[tuple[Offer, str]]) -> list[tuple[Offer, str]]:
    return _run([offer for offer, _ in failed], 1, {}, lambda: None)


def _run(
    offers: Sequence[Offer],
    jobs: int,
    variables: dict[str, str],
    step: Callable[[], None],
) -> list[tuple[Offer, str]]:
    """Run all; note those that hold, return the others with what is wrong."""
    failed: list[tuple[Offer, str]] = []

    def told(offer: Offer, ran: Ran) -> None:
        problem = offer.promise.problem(ran)
        if problem is None:
            offer.verdicts.note(offer.promise, None)
        else:
            failed.append((offer, problem))
        step()

    tasks = [
        _Trial(offer.promise, lambda ran, offer=offer: told(offer, ran))  # type: ignore[misc]
        for offer in offers
    ]
    if tasks:
        with open_workers(variables) as workers:
            Pool(workers, jobs).run(tasks)
    return failed


def _note_instead(offer: Offer, problem: str) -> None:
    """Keep what is wrong with an offer, and what readers get in its place."""
    text = offer.instead()
    if text is not None and text != offer.promise.text:
        whole = replace(offer, promise=replace(offer.promise, text=text))
        if not _run([whole], 1, {}, lambda: None):
            offer.verdicts.note(offer.promise, problem, instead=text)
            return
    offer.verdicts.note(offer.promise, problem)
