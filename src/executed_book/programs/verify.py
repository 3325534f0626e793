"""Running what readers take away, as they would, and lengthening what does not hold.

Programs of a chapter compile much the same functions, so they share what JAX compiles.
What fails is run once more, alone and compiling everything itself: a bound on a time
can be missed when something else takes the machine for a moment. What fails again is
given the nearest earlier statements with which it holds.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..checking.comparison import same_output
from ..checking.text import printed_text
from ..errors import PageError
from ..model import Executed
from ..running.pool import Pool
from ..running.processes import run_folder
from ..running.programs import ProgramTask, Ran
from ..running.progress import Progress
from ..running.workers import Worker, Workers, open_workers
from .slicing import NoFaithfulProgram
from .snippets import Snippets, programs_by_cell, raised
from .text import Program, Programs
from .values import UNKNOWN, tail, told
from .verdicts import (
    DIFFERS,
    HELD,
    NEEDS_FILES,
    RTOL,
    VARIES,
    Promise,
    Verdict,
    Verdicts,
)

#: A program that runs longer than this hangs (seconds).
LIMIT = 300.0

#: So often is a program lengthened by one statement before it gets all of them.
_MOST_REPAIRS = 4

#: What names hold, described as text.
Values = Mapping[str, str]


@dataclass(frozen=True)
class Offer:
    """Something that a page offers to its readers.

    Attributes:
        path, line: where it stands.
        what: what it is, for messages: "cell 3", "script".
        promise: the text, and what it has to do.
        verdicts: where what it did is kept.
        program: the program, for one of a cell; None for a script.
        programs: what makes programs of its page, for one of a cell.
        varies: whether its cell may show something else each time.
        seconds: how long it is expected to run, as its cells did on the page.
        values: what the names that its cell binds hold on the page.
    """

    path: Path
    line: int
    what: str
    promise: Promise
    verdicts: Verdicts
    program: Program | None = None
    programs: Callable[[], Programs] | None = None
    varies: bool = False
    seconds: float = 0.0
    values: Values = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict | None:
        """What was found; None if that has still to be run, or is stale."""
        verdict = self.verdicts.find(self.promise)
        if verdict is None or not verdict.added:
            return verdict
        program = self.with_added(verdict.added)
        fits = program is not None and self.key_of(program) == verdict.text
        return verdict if fits else None

    @property
    def waits(self) -> bool:
        """Whether it has still to be run."""
        return self.verdict is None

    @property
    def error(self) -> PageError | None:
        """What is wrong with it, if it was run and fails."""
        verdict = self.verdict
        if verdict is None or verdict.word != DIFFERS:
            return None
        return PageError(
            self.path,
            self.line,
            f"the program of {self.what} does not give what the page shows",
            "have the cell take what it needs from names that cells above define, or"
            ' say why it cannot be copied: :no-program: "..."',
            f"{verdict.note}\n--- as copied\n{self.promise.text}",
        )

    def key_of(self, program: Program) -> str:
        """The digest of another text that has to do the same."""
        return dataclasses.replace(self.promise, text=program.text).key

    def with_added(self, added: Sequence[tuple[int, int]]) -> Program | None:
        """The program with further statements; None where that cannot be."""
        if self.program is None or self.programs is None:
            return None
        try:
            return self.programs().of(self.program.cell, added)
        except NoFaithfulProgram:
            return None


def offers_of(
    executed: Executed, snippets: Snippets, verdicts: Verdicts
) -> list[Offer]:
    """The programs of a chapter's cells, and the chapter as a script."""
    chapter, offers = executed.chapter, []
    programs = functools.cache(lambda: programs_by_cell(executed))
    for (cell, result), program in zip(executed, snippets.programs, strict=True):
        if program is None:
            continue
        gives = None if cell.varies else printed_text(result.outputs)
        cells = {program.cell, *(k for k, _ in program.kept)}
        offers.append(
            Offer(
                *(chapter.path, cell.line, f"cell {cell.number}"),
                Promise(
                    program.text, gives, raised(cell, result), program.sets_environment
                ),
                verdicts,
                program,
                programs,
                cell.varies,
                sum(executed.run.results[k].seconds for k in cells),
            )
        )
    if snippets.script:
        fresh = any(p is not None and p.sets_environment for p in snippets.programs)
        promise = Promise(snippets.script, fresh=fresh)
        script = Offer(chapter.path, 1, "script", promise, verdicts)
        offers.append(dataclasses.replace(script, seconds=executed.run.seconds))
    return offers


def settled(snippets: Snippets, offers: Iterable[Offer]) -> Snippets:
    """The snippets as they were verified: lengthened, or without those that fail."""
    programs, reasons = [*snippets.programs], dict(snippets.reasons)
    for offer in offers:
        verdict = offer.verdict
        if offer.program is None or verdict is None:
            continue
        if not verdict.is_good:
            programs[offer.program.cell] = None
            reasons[offer.program.cell] = _REASONS[verdict.word]
        elif verdict.added:
            programs[offer.program.cell] = offer.with_added(verdict.added)
    return dataclasses.replace(snippets, programs=programs, reasons=reasons)


_REASONS = {
    NEEDS_FILES: "run by itself, this cell lacks the files beside its page.",
    DIFFERS: "run by itself, this cell gives something else.",
}


def unverified(offers: Iterable[Offer]) -> Iterator[PageError]:
    """One error for a page that lacks verdicts."""
    waiting = [offer for offer in offers if offer.waits]
    if waiting:
        listed = ", ".join(offer.what for offer in waiting)
        yield PageError(
            waiting[0].path,
            waiting[0].line,
            f"not verified as they stand: {listed}",
            "run 'python -m executed_book verify', and commit what it writes",
        )


def count(offers: Sequence[Offer]) -> str:
    """How many of the offers gave what, in words."""
    verdicts = [offer.verdict for offer in offers]
    words = [verdict.word for verdict in verdicts if verdict is not None]
    lengthened = sum(
        verdict is not None and bool(verdict.added) for verdict in verdicts
    )
    counts = [
        f"{words.count(HELD)} held",
        f"{words.count(VARIES)} ran and vary",
        f"{lengthened} of these lengthened",
        f"{words.count(NEEDS_FILES)} need files",
        f"{words.count(DIFFERS)} failed",
    ]
    said = f"{len(offers)} programs and scripts: {', '.join(counts)}"
    waiting = len(offers) - len(words)
    if waiting:
        said += f"; {waiting} were not verified: run `python -m executed_book verify`"
    return said


class _Trial(ProgramTask):
    """One program, run as readers run it; tells when it has ended."""

    def __init__(self, offer: Offer, text: str, ended: Callable[[Ran], None]) -> None:
        names = offer.values if offer.promise.raises is None else ()
        text += tail(names) if names else ""
        super().__init__(text, fresh=offer.promise.fresh, limit=LIMIT)
        self._ended = ended

    def ended(self, worker: Worker, status: int | None, late: bool) -> bool:
        again = super().ended(worker, status, late)
        if self.ran is not None:
            self._ended(self.ran)
        return again


@dataclass(frozen=True)
class _Outcome:
    """What one run showed: a problem in words, and the names that hold other values."""

    problem: str | None
    other: frozenset[str] = frozenset()
    needs_files: bool = False
    shown: str = ""
    ended_well: bool = True

    @property
    def is_good(self) -> bool:
        return self.problem is None and not self.other


def _outcome(offer: Offer, ran: Ran) -> _Outcome:
    stdout, values = told(ran.stdout)
    problem = offer.promise.problem(dataclasses.replace(ran, stdout=stdout))
    other = {
        name
        for name, text in offer.values.items()
        if name in values and same_output(text, values[name], rtol=RTOL)
    }
    lacks = (ran.raised or "").startswith(("FileNotFoundError", "ModuleNotFoundError"))
    ended_well = ran.raised is None and not ran.status
    return _Outcome(problem, frozenset(other), lacks, stdout, ended_well)


def compiled_into(folder: Path) -> dict[str, str]:
    """Variables with which JAX keeps everything that it compiles."""
    return {
        "JAX_COMPILATION_CACHE_DIR": str(folder),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


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
        with run_folder() as folder:
            failed = _run(waiting, jobs, compiled_into(folder / "compiled"), step)
        failed = _run(failed, 1, {}, lambda: None)
    if not failed:
        return
    with open_workers({}) as workers:
        for offer in failed:
            progress.note(
                f"  {offer.path.stem}, {offer.what}: looking for what it needs"
            )
            _repair(offer, workers)


def _run(
    offers: Sequence[Offer],
    jobs: int,
    variables: dict[str, str],
    step: Callable[[], None],
) -> list[Offer]:
    """Run all; note those that hold, return the others."""
    failed: list[Offer] = []

    def ended(offer: Offer, ran: Ran) -> None:
        outcome = _outcome(offer, ran)
        if outcome.is_good:
            _note(offer)
        else:
            failed.append(offer)
        step()

    tasks = [
        _Trial(offer, offer.promise.text, lambda ran, offer=offer: ended(offer, ran))  # type: ignore[misc]
        for offer in offers
    ]
    if tasks:
        with open_workers(variables) as workers:
            Pool(workers, jobs).run(tasks)
    return failed


def _note(
    offer: Offer,
    added: tuple[tuple[int, int], ...] = (),
    text: str = "",
    unstable: Iterable[str] = (),
) -> None:
    unknown = {n for n, said in offer.values.items() if said.startswith(UNKNOWN)}
    listed = ", ".join(sorted(unknown | set(unstable)))
    note = f"not compared: {listed}" if listed else ""
    word = VARIES if offer.varies else HELD
    offer.verdicts.note(offer.promise, offer.what, Verdict(word, added, text, note))


# -- lengthening what does not hold


def _repair(offer: Offer, workers: Workers) -> None:
    """Find the fewest, nearest earlier statements with which an offer holds."""

    def attempt(text: str) -> _Outcome:
        found: list[_Outcome] = []
        trial = _Trial(offer, text, lambda ran: found.append(_outcome(offer, ran)))
        Pool(workers, 1).run([trial])
        return found[0]

    short = attempt(offer.promise.text)
    candidates = list(_candidates(offer))
    every = offer.with_added(candidates) if candidates else None
    text = offer.promise.text if every is None else every.text
    long = short if every is None else attempt(text)
    # What not even all that stands above makes equal is not the same twice.
    unstable = long.other
    both_end = long.ended_well and short.ended_well
    if long.problem is not None and both_end and attempt(text).shown != long.shown:
        offer.verdicts.note(offer.promise, offer.what, Verdict(VARIES))
        return
    if long.problem is not None:
        word = NEEDS_FILES if long.needs_files else DIFFERS
        note = short.problem or ", ".join(short.other)
        offer.verdicts.note(offer.promise, offer.what, Verdict(word, note=_short(note)))
        return

    def holds(added: Sequence[tuple[int, int]]) -> bool:
        program = offer.with_added(added)
        if program is None:
            return False
        outcome = attempt(program.text) if added else short
        return outcome.problem is None and outcome.other <= unstable

    added = nearest(holds, candidates)
    program = offer.with_added(added) if added else None
    key = offer.key_of(program) if program is not None else ""
    _note(offer, tuple(sorted(added)), key, unstable)


def _short(problem: str) -> str:
    """A problem on one line."""
    return " | ".join(line.strip() for line in problem.strip().split("\n"))[:300]


def _candidates(offer: Offer) -> Iterator[tuple[int, int]]:
    """The statements above that the program lacks, the nearest first."""
    if offer.program is None or offer.programs is None:
        return
    kept = {(cell + 1, line) for cell, line in offer.program.kept}
    for place in reversed(offer.programs().above(offer.program.cell)):
        if place not in kept:
            yield place


def nearest(
    holds: Callable[[Sequence[tuple[int, int]]], bool],
    candidates: Sequence[tuple[int, int]],
) -> list[tuple[int, int]]:
    """The few of `candidates`, the first rather than the last, that make `holds` true.

    All of them do. Each round finds the first of them up to which all are enough: that
    one is needed, and those before it are looked through for what is still missing.

    >>> nearest(lambda some: {3, 5} <= set(some), [1, 2, 3, 4, 5, 6, 7])
    [5, 3]
    """
    needed: list[tuple[int, int]] = []
    for _ in range(_MOST_REPAIRS):
        if holds(needed):
            return needed
        low, high = 0, len(candidates)  # up to `high` they are enough
        while high - low > 1:
            middle = (low + high) // 2
            if holds([*needed, *candidates[:middle]]):
                high = middle
            else:
                low = middle
        needed.append(candidates[high - 1])
        candidates = candidates[: high - 1]
    return needed if holds(needed) else [*needed, *candidates]
