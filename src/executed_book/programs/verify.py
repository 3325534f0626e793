"""Running what readers take away, as they would, and keeping what it showed.

Programs of a chapter compile much the same functions, so they share what JAX compiles.
What fails is run once more, alone and compiling everything itself: a bound on a time
can be missed when something else takes the machine for a moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..running.processes import run_folder
from ..running.pool import Pool
from ..running.programs import ProgramTask, Ran
from ..running.progress import Progress
from ..running.workers import Worker, open_workers
from .verdicts import Promise, Verdicts

#: A program that runs longer than this hangs (seconds).
LIMIT = 300.0


@dataclass(frozen=True)
class Offer:
    """Something that a page offers to its readers.

    Attributes:
        place: the page's file and line, for messages.
        what: what it is, for messages: "cell 3", "the script".
        promise: the text, and what it has to do.
        verdicts: where what it did is kept.
        instead: makes the text that is offered if this one does not hold, if any.
    """

    place: str
    what: str
    promise: Promise
    verdicts: Verdicts
    instead: Callable[[], Promise | None] = lambda: None

    @property
    def waits(self) -> bool:
        """Whether it has still to be run."""
        return not self.verdicts.has(self.promise)

    def __str__(self) -> str:
        problem = self.verdicts.problem(self.promise)
        return (
            f"{self.place}: {self.what} does not give what its page shows\n{problem}"
            f"\n--- as copied\n{self.promise.text}"
        )


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


def verify(offers: Iterable[Offer], jobs: int, progress: Progress) -> None:
    """Run the offers that wait; their verdicts are kept one by one.

    Raises:
        BookError: Python cannot import what programs need.
        KeyboardInterrupt: as pressed; what has been run is kept.
    """
    waiting = [offer for offer in offers if offer.waits]
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
        return _run(waiting, jobs, _compiled_into(folder / "compiled"), step)


def _compiled_into(folder: Path) -> dict[str, str]:
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
    other = offer.instead()
    if other is not None and other.text != offer.promise.text:
        stand_in = Offer(offer.place, offer.what, other, offer.verdicts)
        if not _run([stand_in], 1, {}, lambda: None):
            offer.verdicts.note(offer.promise, problem, instead=other.text)
            return
    offer.verdicts.note(offer.promise, problem)
