"""`build`: execute the book, render it, and exchange the site for the new one.

Everything happens in a work folder beside the site. The site itself is only ever
replaced as a whole, by a build that finished; whatever goes wrong, the previous site
still stands.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..book import Book, execute
from ..checking.receipts import in_words
from ..errors import BookError, counted
from ..programs.verify import count
from ..running.progress import Progress
from ..settings import Settings
from .publish import Site
from .render import Rendering, import_sphinx


def build(
    settings: Settings,
    config: Path,
    output: Path,
    progress: Progress,
    overrides: Mapping[str, str] | None = None,
) -> None:
    """Execute the book and publish it at `output`.

    `overrides` are options of Sphinx's to use in place of those in `conf.py`.

    Raises:
        BookError: something is wrong; `output` is as it was before.
    """
    site = Site(output)
    site.check([settings.source, config], settings.exclude)
    with site.work_alone(
        lambda: progress.note("waiting for another build of this site to end")
    ):
        site.check([settings.source, config], settings.exclude)
        book = execute(settings, progress, while_starting=import_sphinx)
        if book.errors:
            end = f"{counted(len(book.errors), 'problem')}: nothing was published"
            raise BookError("\n\n".join([*map(str, book.errors), end]))
        progress.note(book.count_cells())
        if book.all_offers:
            progress.note(count(book.all_offers))
        for note in _notes(book):
            progress.note(note)
        rendering = Rendering(config, site.work, settings.source, overrides or {})
        rendering.render(book)
        site.publish(site.work / "html")
    progress.note(f"The book is at {os.path.relpath(output / 'index.html')}")


def _notes(book: Book) -> Iterator[str]:
    """What else there is to say of the book; nothing of what it does not use."""
    cells = [cell for page in book.pages.values() for cell in page.records.values()]
    if cells:
        kinds = {record.provenance.device_kind for some in cells for record in some}
        show = "shows" if len(cells) == 1 else "show"
        whose = ", ".join(sorted(kinds))
        yield f"{counted(len(cells), 'cell')} {show} a record of {whose}"
    if book.stale:
        what = "records are stale and not shown where cells have changed;"
        way = "'python -m executed_book record' makes them anew"
        yield "\n  ".join([f"{what} {way}", *book.stale])
    if any(page.checks for page in book.texts):
        yield f"{in_words(book.counts)}; 'claims' lists those that are not bound"
