"""The book: its chapters, what executing them gave, and what is wrong with them.

Chapters whose kept run still holds are taken from the store. The others run in worker
processes, as many at once as the settings say, the longest first.
"""

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sphinx.util.matching import Matcher

from .checking.elsewhere import (
    Record,
    passed_elsewhere,
    recorded_elsewhere,
    records_of,
)
from .checking.pins import check_pins
from .checking.receipts import (
    check_failing,
    check_names,
    check_reached,
    count_claims,
    unbound,
)
from .checking.rules import check_run, failed, may_be_noise
from .errors import BookError, PageError, counted
from .files import digest
from .model import Chapter, Executed, Provenance, to_plain
from .programs.snippets import Snippets, needed_cells, snippets_of
from .programs.verdicts import Verdicts
from .programs.verify import Offer, offers_of, settled, unverified
from .reading.chapters import Reading
from .reading.pages import read_pages
from .running.chapters import ChapterTask, Finished, source_date
from .running.pool import Pool
from .running.progress import Progress
from .running.runs import KeptRuns
from .running.store import Store
from .running.workers import open_workers
from .settings import Settings

#: So often is a chapter run whose only failures are assertions on what it measured.
_MEASURED_AT_MOST = 3


@dataclass(frozen=True)
class ExecutedPage:
    """All that a chapter's page shows: its run, its programs, records of elsewhere.

    `passed` says by records where else checks passed: see `passed_elsewhere`.
    """

    executed: Executed
    snippets: Snippets
    records: dict[int, list[Record]] = field(default_factory=dict, hash=False)
    passed: dict[int, list[Provenance]] = field(default_factory=dict, hash=False)

    @property
    def seal(self) -> str:
        """A name for all that the page shows of its execution."""
        records = {n: [*map(to_plain, some)] for n, some in self.records.items()}
        passed = {n: [*map(to_plain, some)] for n, some in self.passed.items()}
        run, programs = self.executed.run.seal, to_plain(self.snippets)
        return digest([run, records, passed, programs])


@dataclass
class Book:
    """The chapters, what executing them gave, the pages to show, and what is wrong.

    `executed` also holds chapters that failed, as far as they ran. `offers` are what
    pages offer to be taken away, by chapter. `stale` are the records of other devices
    whose cells have changed, in words. `texts` are the sentences of all pages,
    `unbound` those that name no check and might.
    """

    chapters: list[Chapter]
    executed: dict[str, Executed] = field(default_factory=dict)
    pages: dict[str, ExecutedPage] = field(default_factory=dict)
    offers: dict[str, list[Offer]] = field(default_factory=dict)
    errors: list[PageError] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    texts: list[Reading] = field(default_factory=list)
    unbound: list[PageError] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def all_offers(self) -> list[Offer]:
        """What all pages offer."""
        return [offer for offers in self.offers.values() for offer in offers]

    def count_cells(self) -> str:
        """How many cells there are, in words."""
        return counted(sum(len(chapter.cells) for chapter in self.chapters), "cell")


def execute(
    settings: Settings,
    progress: Progress,
    choose: Callable[[Chapter], Chapter | None] = lambda chapter: chapter,
    ready: Callable[[Executed], None] = lambda executed: None,
    while_starting: Callable[[], None] = lambda: None,
) -> Book:
    """Bring every chapter below `settings.source` to a run that holds.

    A chapter that fails does not stop the others, and what has run is kept.

    Args:
        settings: how the book is read, executed and checked.
        progress: receives how far the chapters are.
        choose: gives each chapter as it is to be executed; None leaves it out.
        ready: is given each chapter that ran to its end, as soon as it did.
        while_starting: is called once the process is starting that workers are forked
            from, which takes a second or so, and before any chapter runs.

    Raises:
        BookError: there is no such folder, or JAX does not start at all.
        KeyboardInterrupt: as pressed; running chapters have been ended.
    """
    return _Building(settings, progress, choose, ready, while_starting).build()


@dataclass
class _Building:
    """One way from the chapters' files to the book; the fields are as in `execute`."""

    settings: Settings
    progress: Progress
    choose: Callable[[Chapter], Chapter | None]
    ready: Callable[[Executed], None]
    while_starting: Callable[[], None]

    def __post_init__(self) -> None:
        settings = self.settings
        if not settings.source.is_dir():
            raise BookError(
                f"{settings.source}: there is no such folder;"
                " name the folder of the chapters with --source"
            )
        self.programs = Store(settings.cache / "snippets", settings.project)
        self.assertions = Store(settings.cache / "assertions", settings.project)
        self.executed: dict[str, Executed] = {}

    def build(self) -> Book:
        self._read()
        self.runs = KeptRuns(self.settings)
        source_date()
        missing = self._load_runs()
        names = {chapter.docname for chapter in missing}
        with self.progress.chapters(self.chapters, names):
            if missing:
                self._run(missing)
        if not self.settings.source.is_dir():
            raise BookError(
                f"{os.path.relpath(self.settings.source)}: this folder was removed"
                " during the build\n"
                "    → put it back and build again; finished chapters are kept"
            )
        book = Book(self.chapters, self.executed, errors=self.errors, texts=self.texts)
        for executed in self.executed.values():
            self._check(executed, book)
        for reading in self.texts:
            self._check_sentences(reading, book)
        self._add_records(book)
        if "receipts" in self.settings.rules:
            for page in book.pages.values():
                if page.executed.run.provenance.platform == "cpu":
                    book.errors += check_reached(page.executed, page.passed)
        book.errors.sort(key=lambda error: (str(error.path), error.line))
        for store in (self.runs.store, self.programs, self.assertions):
            store.prune()
        return book

    # -- what there is

    def _read(self) -> None:
        settings = self.settings
        readings = read_pages(settings)
        chapters = [r.chapter for r in readings if r.chapter is not None]
        self.names_jax = any("jax" in c.source for ch in chapters for c in ch.cells)
        if settings.only is not None:
            names = {chapter.docname for chapter in chapters}
            pages = {reading.docname for reading in readings}
            if unknown := sorted(settings.only - pages):
                raise BookError(
                    f"no chapter is called {', '.join(unknown)}; there are"
                    f" {', '.join(sorted(names)) or 'none'}"
                )
            chapters = [c for c in chapters if c.docname in settings.only]
            readings = [r for r in readings if r.docname in settings.only]
        self.errors = [error for reading in readings for error in reading.errors]
        self.texts = readings
        if settings.may_fail:
            chapters = [
                chapter.with_cells(range(1, len(chapter.cells) + 1), may_raise=True)
                for chapter in chapters
            ]
        chapters = [c for c in map(self.choose, chapters) if c is not None]
        self.chapters = chapters

    def _load_runs(self) -> list[Chapter]:
        """Take the runs that are kept; the chapters that have none."""
        missing = []
        for chapter in self.chapters:
            executed = self.runs.load(chapter)
            if executed is None:
                missing.append(chapter)
            else:
                self.executed[chapter.docname] = executed
                self.ready(executed)
        if unseen := ", ".join(self.runs.unseen):
            self.progress.note(
                "executed again, because their child processes may have read files that"
                f" have changed: {unseen}\n    → name these files in the front matter,"
                " 'executed_book: {reads: [data]}'"
            )
        return missing

    # -- running what is missing

    def _run(self, chapters: list[Chapter]) -> None:
        """Run the chapters; again where noise alone may have made an assertion fail."""
        self._run_once(chapters)
        for time in range(2, _MEASURED_AT_MOST + 1):
            chapters = [chapter for chapter in chapters if self._may_be_noise(chapter)]
            if not chapters:
                return
            listed = ", ".join(chapter.docname for chapter in chapters)
            self.progress.note(
                "measured again, because an assertion about a measurement failed"
                f" ({time} of {_MEASURED_AT_MOST}): {listed}"
            )
            self._run_once(chapters)

    def _may_be_noise(self, chapter: Chapter) -> bool:
        executed = self.executed.get(chapter.docname)
        return (
            executed is not None
            and len(executed.run.results) == len(chapter.cells)
            and may_be_noise(executed, needed_cells(executed))
        )

    def _run_once(self, chapters: list[Chapter]) -> None:
        order = sorted(chapters, key=self.runs.expected_seconds, reverse=True)
        about = self.settings, self.progress, self._finished, self.names_jax
        tasks = [ChapterTask(chapter, *about) for chapter in order]
        # A book whose pages never name JAX does not depend on its version.
        with open_workers(without=() if self.names_jax else ("jax",)) as workers:
            self.while_starting()
            Pool(workers, self.settings.jobs, self.progress.tick).run(tasks)
        for task in tasks:
            self.errors += task.errors
            if task.errors and (partial := task.so_far()):
                self.executed[task.chapter.docname] = partial

    def _finished(self, chapter: Chapter, finished: Finished) -> None:
        executed = Executed(chapter, finished.run)
        failures, _ = failed(executed, needed_cells(executed))
        if not failures:
            executed = self.runs.save(chapter, finished)
        self.executed[chapter.docname] = executed
        self.ready(executed)

    # -- what is wrong, and what is shown

    def _check(self, executed: Executed, book: Book) -> None:
        """Note what does not hold of a run; make the page if it is whole."""
        failures, spoilt = failed(executed, needed_cells(executed))
        book.errors += failures
        book.errors += check_run(executed, self.settings.rules, spoilt)
        chapter, run = executed.chapter, executed.run
        outputs = self.settings.outputs if self.settings.compares else None
        if outputs is not None and run.provenance.platform == "cpu":
            book.errors += check_pins(executed, outputs, spoilt)
        if len(run.results) == len(chapter.cells) and not failures:
            self._offer_programs(executed, book)

    def _offer_programs(self, executed: Executed, book: Book) -> None:
        """Make a chapter's page, without the programs that were found not to hold."""
        settings, docname = self.settings, executed.chapter.docname
        snippets, errors = snippets_of(executed, self.programs)
        path = verdict_path(settings, docname)
        verdicts = Verdicts(path, executed.run.provenance.jax)
        offers = offers_of(executed, snippets, verdicts, self.programs)
        book.offers[docname] = offers
        book.pages[docname] = ExecutedPage(executed, settled(snippets, offers))
        if "programs" in settings.rules:
            book.errors += errors
            book.errors += filter(None, (offer.error for offer in offers))
            if settings.programs is not None and os.environ.get("CI") == "true":
                book.errors += unverified(offers)

    def _check_sentences(self, page: Reading, book: Book) -> None:
        """Note the sentences that are not bound, and the checks that hold nothing."""
        settings, unbound_here = self.settings, list(unbound(page))
        book.unbound += unbound_here
        book.counts += count_claims(page)
        book.errors += check_names(page)
        if Matcher(list(settings.bound))(page.docname):
            book.errors += unbound_here
        if "receipts" in settings.rules:
            book.errors += check_failing(page, self.assertions)

    def _add_records(self, book: Book) -> None:
        """Note which records of other devices hold, and which are stale."""
        folder = self.settings.outputs
        if folder is None:
            return
        for docname, paths in recorded_elsewhere(folder).items():
            page = book.pages.get(docname)
            if page is None:
                if self.settings.only is None:
                    book.stale.append(f"{docname}, of which no page was executed")
                continue
            needs = page.snippets.needed
            try:
                records, stale = records_of(page.executed, paths, needs)
                page.passed.update(passed_elsewhere(page.executed, paths, needs))
            except PageError as error:
                if self.settings.compares:  # else it may be about to be written anew
                    book.errors.append(error)
                continue
            page.records.update(records)
            book.stale += [
                f"{docname}, {counted(count, 'cell')} on {device}"
                for device, count in stale.items()
            ]


def verdict_path(settings: Settings, docname: str) -> Path:
    """The file with the verdicts on a page's programs."""
    folder = settings.programs or settings.cache / "programs"
    return folder / f"{docname}.txt"
