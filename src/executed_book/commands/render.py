"""Running Sphinx in a work folder, on a book that has been executed already."""

import contextlib
import importlib
import logging
import os
import shutil
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..book import Book
from ..errors import BookError
from ..files import write_whole


def import_sphinx() -> None:
    """Import what rendering needs: a second's work, which can be done beforehand."""
    importlib.import_module("sphinx.application")
    importlib.import_module("executed_book.showing.extension")


@contextlib.contextmanager
def _unreached() -> Iterator[list[str]]:
    """What Sphinx says of sites that cannot be reached, into which no link is built.

    Its warning has no type, so no `suppress_warnings` can name it.
    """
    said: list[str] = []

    def hear(record: logging.LogRecord) -> bool:
        if record.levelno != logging.WARNING or getattr(record, "type", None):
            return True
        said.append(record.getMessage())
        print(f"no links into other sites: {said[-1]}", file=sys.stderr)
        return False

    log = logging.getLogger("sphinx.sphinx.ext.intersphinx")
    log.addFilter(hear)
    try:
        yield said
    finally:
        log.removeFilter(hear)


@dataclass(frozen=True)
class Rendering:
    """One run of Sphinx: `conf.py` is in `config`, what is made goes below `work`."""

    config: Path
    work: Path
    source: Path
    overrides: Mapping[str, str]

    def render(self, book: Book) -> None:
        """Render all pages that have changed; start afresh if the last was unfinished.

        Raises:
            BookError: there were warnings, or Sphinx failed.
        """
        unfinished = self.work / "unfinished"
        if unfinished.exists():
            shutil.rmtree(self.work / "doctrees", ignore_errors=True)
            shutil.rmtree(self.work / "html", ignore_errors=True)
        write_whole(unfinished, "a build started here and has not finished\n")
        try:
            warned = self._run(book)
        except SystemExit as ending:
            if ending.code != 2:  # else our extension has said why
                raise self._failed(ending) from None
            warned = True
        except OSError:
            raise
        except Exception as error:
            raise self._failed(error) from None
        if warned:
            raise BookError(
                "the pages could not be rendered without the warnings above:"
                " nothing was published"
            )
        for done_with in (unfinished, self._traceback):
            done_with.unlink(missing_ok=True)

    @property
    def _traceback(self) -> Path:
        return self.work / "traceback.txt"

    def _run(self, book: Book) -> bool:
        """Let Sphinx read and write; whether there were warnings."""
        from sphinx.application import Sphinx
        from sphinx.util.console import color_terminal, nocolor
        from sphinx.util.docutils import docutils_namespace, patch_docutils

        from ..showing.extension import Showing

        if not color_terminal():
            nocolor()
        with patch_docutils(self.config), docutils_namespace(), _unreached() as said:
            app = Sphinx(
                srcdir=self.source,
                confdir=self.config,
                outdir=self.work / "html",
                doctreedir=self.work / "doctrees",
                buildername="html",
                confoverrides=dict(self.overrides),
                status=None,
                warning=sys.stderr,
                warningiserror=True,
                keep_going=True,  # as of itself since Sphinx 8.1
            )
            Showing.of(app).book = book
            before = set(app.env.all_docs)
            app.build()
            for docname in before - set(app.env.all_docs):
                _remove_page(self.work / "html", docname)
        if said:  # the next build looks for them again
            shutil.rmtree(self.work / "doctrees")
        return bool(app.statuscode)

    def _failed(self, error: BaseException) -> BookError:
        self._traceback.write_text(traceback.format_exc(), "utf-8")
        kind = getattr(error, "category", type(error).__name__)
        what = ": ".join([kind, *str(error).strip().splitlines()[:1]])
        return BookError(
            f"the pages could not be rendered: {what}: nothing was published\n"
            f"    → the whole traceback is in {os.path.relpath(self._traceback)}"
        )


def _remove_page(site: Path, docname: str) -> None:
    """Remove the files of a page that the book has no more."""
    for folder in (site, site / "_sources", site / "_downloads"):
        for ending in ("html", "md", "ipynb", "md.txt", "ipynb.txt", "rst.txt"):
            (folder / f"{docname}.{ending}").unlink(missing_ok=True)
