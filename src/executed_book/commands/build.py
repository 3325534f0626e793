"""`build`: execute the book, render it, and exchange the site for the new one.

Everything happens in a work folder beside the site. The site itself is only ever
replaced as a whole, by a build that finished; whatever goes wrong, the previous site
still stands.
"""

from __future__ import annotations

import os
import shutil
import sys
import traceback
from pathlib import Path

from ..book import Book, execute
from ..errors import BookError
from ..running.progress import Progress
from ..running.store import write_whole
from ..settings import Settings
from .publish import Site


def build(settings: Settings, config: Path, output: Path, progress: Progress) -> None:
    """Execute the book and publish it at `output`.

    Raises:
        BookError: something is wrong; `output` is as it was before.
    """
    site = Site(output)
    site.check([settings.source, config], settings.exclude)
    if site.is_busy:
        progress.note("another build is at work here: waiting for it")
    with site.work_alone():
        site.check([settings.source, config], settings.exclude)
        book = execute(settings, progress)
        if book.errors:
            raise BookError(_report(book))
        progress.note(book.count_cells())
        progress.note(_records_note(book))
        _render(settings, config, site.work, book)
        site.publish(site.work / "html")
    progress.note(f"The book stands at {os.path.relpath(output / 'index.html')}")


def _report(book: Book) -> str:
    count = len(book.errors)
    noun = "problem" if count == 1 else "problems"
    return "\n\n".join(
        [*map(str, book.errors), f"{count} {noun}: nothing was published"]
    )


def _records_note(book: Book) -> str:
    """Which platforms' records the pages show, and which records are stale."""
    cells = [found for page in book.pages.values() for found in page.records.values()]
    labels = sorted({record.label for found in cells for record in found})
    lines = []
    if cells or not book.stale:
        whose = ", ".join(labels) or "another platform"
        lines.append(f"{len(cells)} cells show a record of {whose}")
    if book.stale:
        lines.append(
            f"{len(book.stale)} records are stale and not shown: their cells have"
            " changed; 'nox -s docs_gpu' makes them anew"
        )
        lines += [f"  {name}" for name in book.stale]
    return "\n".join(lines)


def _render(settings: Settings, config: Path, work: Path, book: Book) -> None:
    """Run Sphinx in the work folder; start afresh if it was left unfinished."""
    unfinished = work / "unfinished"
    if unfinished.exists():
        shutil.rmtree(work / "doctrees", ignore_errors=True)
        shutil.rmtree(work / "html", ignore_errors=True)
    write_whole(unfinished, "a build started here and has not finished\n")
    log = work / "traceback.txt"
    try:
        warned = _run_sphinx(settings, config, work, book)
    except OSError:
        raise
    except Exception as error:
        log.write_text(traceback.format_exc(), "utf-8")
        raise BookError(
            f"the pages could not be rendered: {_said(error)}: nothing was published\n"
            f"    → the whole of it stands in {os.path.relpath(log)}"
        ) from None
    if warned:
        raise BookError(
            "the pages could not be rendered without the warnings above:"
            " nothing was published"
        )
    unfinished.unlink()


def _run_sphinx(settings: Settings, config: Path, work: Path, book: Book) -> bool:
    """Render all pages that have changed; whether there were warnings."""
    from sphinx.application import Sphinx
    from sphinx.util.console import color_terminal, nocolor
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    from ..showing.extension import Showing

    if not color_terminal():
        nocolor()
    with patch_docutils(config), docutils_namespace():
        app = Sphinx(
            srcdir=settings.source,
            confdir=config,
            outdir=work / "html",
            doctreedir=work / "doctrees",
            buildername="html",
            confoverrides={
                "nitpicky": True,
                "executed_book_cache": str(settings.cache),
            },
            status=None,
            warning=sys.stderr,
            warningiserror=True,
        )
        Showing.of(app).book = book
        app.build()
    return bool(app.statuscode)


def _said(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    kind = getattr(error, "category", type(error).__name__)
    return f"{kind}: {lines[0]}" if lines else str(kind)
