"""Running what readers take away, as they would, and lengthening what does not hold.

Programs of a chapter compile much the same functions, so they share what JAX compiles.
What fails is run once more, alone and compiling everything itself: a bound on a time
can be missed when something else takes the machine for a moment. What fails again is
given the nearest earlier statements with which it holds.
"""

import ast
import dataclasses
import functools
import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..checking.comparison import same_output
from ..checking.descriptions import UNKNOWN, describing_code, split_descriptions
from ..checking.text import printed_text
from ..errors import PageError, counted
from ..model import Cell, Chapter, Executed
from ..names import parsed
from ..running.pool import Pool
from ..running.processes import run_folder
from ..running.programs import ProgramTask
from ..running.progress import Progress
from ..running.store import Store
from ..running.workers import Worker, Workers, open_workers
from .snippets import Snippets, lengthened, programs_by_cell, raised
from .text import sets_environment
from .verdicts import (
    BESIDE,
    DIFFERS,
    HELD,
    NEEDS_FILES,
    VARIES,
    Promise,
    Verdict,
    Verdicts,
)

#: A program that runs longer than this hangs (seconds).
LIMIT = 300.0

#: What names hold, described as text.
Descriptions = Mapping[str, str]

#: Statements as (cell, line in the cell), both from 1.
Places = Sequence[tuple[int, int]]

_REASONS = {
    NEEDS_FILES: "run by itself, this cell lacks the files beside its page.",
    DIFFERS: "run by itself, this cell gives something else.",
}


@dataclass(frozen=True)
class Offer:
    """A program that a page offers to its readers.

    Attributes:
        chapter, cell: what it is the program of.
        promise: the text as it was sliced, and what it has to do.
        verdicts: where what it did is kept.
        lengthen: gives its program with further statements, or None if there is none.
        above: gives the statements above that its program does not have.
        values: what the names that its cell binds hold on the page.
        began: when the run of its page began; what is younger may be made by it.
    """

    chapter: Chapter
    cell: Cell
    promise: Promise
    verdicts: Verdicts
    lengthen: Callable[[Places], str | None]
    above: Callable[[], Places]
    values: Descriptions = field(default_factory=dict)
    began: float = float("inf")

    @property
    def verdict(self) -> Verdict | None:
        """What was found; None if that has still to be run, or is stale."""
        verdict = self.verdicts.find(self.promise)
        if verdict is None or not verdict.added:
            return verdict
        text = self.lengthen(verdict.added)
        fits = text is not None and self.key_of(text) == verdict.text
        return verdict if fits else None

    @property
    def error(self) -> PageError | None:
        """What is wrong with it, if it was run and fails."""
        verdict = self.verdict
        if verdict is None or verdict.word != DIFFERS:
            return None
        return self.chapter.wrong(
            self.cell,
            "has a program that does not give what the page shows",
            "have the cell take what it needs from names that cells above define",
            f"{verdict.note}\n--- as copied\n{self.promise.text}",
        )

    def note(self, verdict: Verdict) -> None:
        """Keep what was found."""
        self.verdicts.note(self.promise, f"cell {self.cell.number}", verdict)

    def key_of(self, text: str) -> str:
        """The digest of another text that has to do the same."""
        return dataclasses.replace(self.promise, text=text).key


def offers_of(
    executed: Executed, snippets: Snippets, verdicts: Verdicts, store: Store
) -> list[Offer]:
    """The programs of a chapter's cells."""
    chapter, offers = executed.chapter, list[Offer]()
    began = executed.run.executed - executed.run.seconds
    for (cell, result), program in zip(executed, snippets.programs, strict=True):
        if program is not None:
            gives = None if cell.varies else printed_text(result.outputs)
            promise = Promise(program, gives, raised(cell, result))
            lengthen = functools.partial(lengthened, executed, store, cell.number)
            above = functools.partial(_others_above, executed, cell.number)
            makers = lengthen, above
            offers.append(Offer(chapter, cell, promise, verdicts, *makers, began=began))
    return offers


def _others_above(executed: Executed, number: int) -> Places:
    return programs_by_cell(executed).others_above(number - 1)


def settled(snippets: Snippets, offers: Iterable[Offer]) -> Snippets:
    """The snippets as they were verified: lengthened, or without those that fail."""
    programs, reasons = [*snippets.programs], dict(snippets.reasons)
    for offer in offers:
        verdict = offer.verdict
        if verdict is None:
            continue
        cell = offer.cell.number - 1
        if not verdict.is_good:
            programs[cell] = None
            reasons[cell] = _REASONS[verdict.word]
            continue
        if verdict.added:
            programs[cell] = offer.lengthen(verdict.added)
        if verdict.files and (text := programs[cell]):
            head, _, rest = text.partition("\n")
            files = (
                f"# Needs beside it, from the page's folder: {', '.join(verdict.files)}"
            )
            programs[cell] = f"{head}\n{files}\n{rest}"
    return dataclasses.replace(snippets, programs=programs, reasons=reasons)


def unverified(offers: Iterable[Offer]) -> Iterator[PageError]:
    """One error for a page that lacks verdicts."""
    waiting = [offer for offer in offers if offer.verdict is None]
    if waiting:
        cells = ", ".join(str(offer.cell.number) for offer in waiting)
        yield PageError(
            waiting[0].chapter.path,
            waiting[0].cell.line,
            f"not verified as they stand: cells {cells}",
            "run 'python -m executed_book verify', and commit what it writes",
        )


def count(offers: Sequence[Offer]) -> str:
    """How many of the offers gave what, in words."""
    verdicts = [v for v in (offer.verdict for offer in offers) if v is not None]
    words = [verdict.word for verdict in verdicts]
    way = "run `python -m executed_book verify`"
    if not verdicts and offers:
        return f"{counted(len(offers), 'program')}, not verified: {way}"
    summary = (
        f"{counted(len(offers), 'program')}: {words.count(HELD)} held,"
        f" {words.count(VARIES)} ran and vary,"
        f" {sum(bool(verdict.added) for verdict in verdicts)} of these lengthened,"
        f" {words.count(NEEDS_FILES)} need files"
        f" ({sum(bool(verdict.files) for verdict in verdicts)} hold beside them),"
        f" {words.count(DIFFERS)} failed"
    )
    waiting = len(offers) - len(verdicts)
    if waiting:
        summary += f"; {waiting} were not verified: {way}"
    return summary


class _Trial(ProgramTask):
    """One program, run as readers run it; `tell` is called when it has ended.

    Attributes:
        problem: what is wrong with what it did, in words; None if nothing is.
        other: the names that hold another value than on the page.
    """

    problem: str | None
    other: frozenset[str]

    def __init__(
        self,
        offer: Offer,
        text: str,
        memory: float,
        tell: Callable[["_Trial"], None] = lambda trial: None,
    ) -> None:
        names = offer.values if offer.promise.raises is None else ()
        text += describing_code(names) if names else ""
        super().__init__(text, fresh=sets_environment(text), limit=LIMIT, memory=memory)
        self.offer, self._tell = offer, tell

    def ended(self, worker: Worker, status: int | None, late: bool) -> bool:
        again = super().ended(worker, status, late)
        stdout, values = split_descriptions(self.ran.stdout)
        self.ran = dataclasses.replace(self.ran, stdout=stdout)
        self.problem = self.offer.promise.problem(self.ran)
        self.other = frozenset(
            name
            for name, text in self.offer.values.items()
            if name in values and same_output(text, values[name])
        )
        self._tell(self)
        return again

    def is_good_but(self, unstable: Container[str] = ()) -> bool:
        """Whether it gave what it has to, apart from these names."""
        return self.problem is None and all(name in unstable for name in self.other)

    @property
    def lacks_files(self) -> bool:
        raised = self.ran.raised or ""
        return raised.startswith(("FileNotFoundError", "ModuleNotFoundError"))

    @property
    def ended_well(self) -> bool:
        return self.ran.raised is None and not self.ran.status


def verify_offers(
    offers: Iterable[Offer], jobs: int, progress: Progress, memory: float = float("inf")
) -> None:
    """Run the offers that lack a verdict; what they gave is kept one by one.

    A program that holds more than `memory` bytes is ended.

    Raises:
        BookError: Python cannot import what programs need.
        KeyboardInterrupt: as pressed; what has been run is kept.
    """
    waiting = [offer for offer in offers if offer.verdict is None]
    if not waiting:
        return
    failed, done = list[Offer](), itertools.count(1)

    def tell(trial: _Trial) -> None:
        if trial.is_good_but():
            _note(trial.offer)
        else:
            failed.append(trial.offer)
        progress.show(f"  {next(done)}/{len(waiting)} programs run alone")

    trials = [_Trial(offer, offer.promise.text, memory, tell) for offer in waiting]
    with (
        run_folder() as folder,
        open_workers(compiled_into(folder / "compiled")) as workers,
    ):
        Pool(workers, jobs).run(trials)
    progress.note(f"  {counted(len(waiting), 'program')} run alone")
    if not failed:
        return
    files_below = functools.cache(
        lambda folder: [path for path in folder.rglob("*") if path.is_file()]
    )
    with open_workers({}) as workers:
        for number, offer in enumerate(failed, 1):
            name = f"{offer.chapter.docname}, cell {offer.cell.number}"
            progress.note(f"  {number}/{len(failed)} {name}: looking for what it needs")
            _repair(offer, workers, memory, files_below)


def compiled_into(folder: Path) -> dict[str, str]:
    """Variables with which JAX keeps everything that it compiles."""
    return {
        "JAX_COMPILATION_CACHE_DIR": str(folder),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def _note(
    offer: Offer,
    added: Places = (),
    unstable: Iterable[str] = (),
    files: Sequence[str] = (),
) -> None:
    """Keep that an offer holds, with these statements added and these files beside."""
    program = offer.lengthen(added) if added else None
    digest = "" if program is None else offer.key_of(program)
    unknown = {n for n, text in offer.values.items() if text.startswith(UNKNOWN)}
    listed = ", ".join(sorted(unknown | set(unstable)))
    notes = [f"not compared: {listed}"] if listed else []
    notes += [f"{BESIDE}{', '.join(files)}"] if files else []
    word = NEEDS_FILES if files else VARIES if offer.cell.varies else HELD
    offer.note(Verdict(word, tuple(added), digest, "; ".join(notes)))


# -- lengthening what does not hold


def _repair(
    offer: Offer,
    workers: Workers,
    memory: float,
    files_below: Callable[[Path], list[Path]],
) -> None:
    """Find the nearest earlier statements, and the files, with which an offer holds."""
    files: Sequence[str] = ()

    def attempt(added: Places, fresh: bool = False) -> _Trial:
        text = (offer.lengthen(added) if added else None) or offer.promise.text
        trial = _Trial(offer, _copying(files, offer.chapter.path.parent) + text, memory)
        trial.fresh = trial.fresh or fresh
        Pool(workers, 1).run([trial])
        return trial

    # The nearest first.
    above = offer.above()[::-1]
    short = attempt(())
    if short.lacks_files and (files := _files_named(offer, files_below)):
        short = attempt(())
    if short.is_good_but():  # alone, where nothing else has the machine
        _note(offer, files=files)
        return
    long = attempt(above)
    # An output that differs even after all statements above varies from run to run.
    unstable = long.other
    if (long.ended_well or long.problem is None) and short.is_good_but(unstable):
        _note(offer, unstable=unstable, files=files)
        return
    if long.problem is None:
        size = 1
        while size < len(above) and not attempt(above[:size]).is_good_but(unstable):
            size *= 2
        _note(offer, sorted(above[:size]), unstable, files)
        return
    word = NEEDS_FILES if long.lacks_files else DIFFERS
    if long.ended_well and short.ended_well:
        # What is not the same twice is not held against a program. Two processes that
        # are forked from one have the same addresses, which `id` gives.
        again = attempt(above, fresh=True)
        word = word if again.ran.stdout == long.ran.stdout else VARIES
    problem = short.problem or ", ".join(short.other)
    note = " | ".join(line.strip() for line in problem.strip().split("\n"))[:300]
    offer.note(Verdict(word, note="" if word == VARIES else note))


def _files_named(offer: Offer, files_below: Callable[[Path], list[Path]]) -> list[str]:
    """The files below the page's folder that a program names and its page found."""
    folder, nodes = offer.chapter.path.parent, ast.walk(parsed(offer.promise.text))
    texts = (node.value for node in nodes if isinstance(node, ast.Constant))
    names = {Path(text).name for text in texts if isinstance(text, str)}
    named = (path for path in files_below(folder) if path.name in names)
    old = (p for p in named if p.stat().st_mtime < offer.began)
    return sorted(p.relative_to(folder).as_posix() for p in old)


def _copying(files: Iterable[str], folder: Path) -> str:
    """Code that puts files of a folder where a program runs, for it to change."""
    return "".join(
        f"__import__('os').makedirs({str(Path(name).parent)!r}, exist_ok=True);"
        f" __import__('shutil').copy({str(folder / name)!r}, {name!r})\n"
        for name in files
    )
