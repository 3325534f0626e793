"""`verify`: run the programs of the pages by themselves, and keep what they gave."""

import dataclasses
import json
from collections.abc import Collection

from ..book import Book, execute, verdict_path
from ..checking.descriptions import describing_expression
from ..errors import raise_all
from ..model import Chapter, Value
from ..names import bound_names
from ..programs import verify as programs
from ..programs.cells import SourceCell, parse
from ..programs.verdicts import are_verdicts
from ..programs.verify import Descriptions
from ..running.progress import Progress
from ..settings import Settings


def verify(settings: Settings, progress: Progress) -> None:
    """Run the programs whose verdicts are missing or stale, and keep what they gave.

    Raises:
        BookError: a chapter fails, or a program does not give what its page shows.
    """
    rules = settings.rules - {"programs"}
    book = execute(dataclasses.replace(settings, rules=rules), progress)
    raise_all(book.errors)
    waiting = [offer for offer in book.all_offers if offer.verdict is None]
    if waiting:
        docnames = {offer.chapter.docname for offer in waiting}
        values = page_values(settings, progress, docnames)
        for k, offer in enumerate(waiting):
            of_cell = values.get((offer.chapter.docname, offer.cell.number), {})
            waiting[k] = dataclasses.replace(offer, values=of_cell)
        programs.verify_offers(waiting, settings.jobs, progress, settings.memory_bytes)
    _forget(settings, book)
    progress.note(programs.count(book.all_offers))
    raise_all([offer.error for offer in book.all_offers if offer.error is not None])


def _forget(settings: Settings, book: Book) -> None:
    """Leave out what no page offers any more."""
    for offers in book.offers.values():
        if offers:
            offers[0].verdicts.keep_only([offer.promise for offer in offers])
    if settings.only is None and settings.programs is not None:
        offered = {verdict_path(settings, docname) for docname in book.offers}
        for path in set(settings.programs.rglob("*.txt")) - offered:
            if are_verdicts(path):
                path.unlink()


def page_values(
    settings: Settings, progress: Progress, docnames: Collection[str]
) -> dict[tuple[str, int], Descriptions]:
    """What the names that each cell binds hold on its page, described as text.

    The chapters are executed once more, and asked after each cell; what they said is
    kept as runs are. The keys are the names of chapters and the numbers of cells.
    """
    asking = dataclasses.replace(
        settings,
        cache=settings.cache / "values",
        outputs=None,
        programs=None,
        rules=frozenset(),
        only=frozenset(docnames),
    )
    book = execute(asking, progress, choose=_asked)
    return {
        (docname, cell.number): json.loads(result.values[-1].text)
        for docname, executed in book.executed.items()
        for cell, result in executed
        if result.values and result.values[-1].text.startswith("{")
    }


def _asked(chapter: Chapter) -> Chapter:
    """A chapter that describes what each of its cells binds."""
    for cell in chapter.cells:
        code = "" if cell.is_skipped else cell.source
        bound = bound_names(parse(SourceCell(code, raises="")).nodes)
        names = {name for name in bound if not name.startswith("_")}
        asked = Value("eval", describing_expression(names), cell.line)
        values = (asked,) if names else ()
        chapter = chapter.with_cells([cell.number], values=values)
    return chapter
