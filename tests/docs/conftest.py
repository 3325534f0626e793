"""The real book, executed once for all tests of its pages."""

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from executed_book.book import Book, execute
from executed_book.commands.configuration import read_settings
from executed_book.model import Chapter, Executed
from executed_book.programs.verdicts import Verdicts
from executed_book.reading.cache import read_once
from executed_book.reading.chapters import docname_of
from executed_book.reading.options import executes, front_matter
from executed_book.reading.pages import find_pages
from executed_book.running.progress import Progress
from executed_book.settings import Settings

#: Notebooks and attempts at exercises that are expected to run longer are left out: no
#: session runs them (seconds).
LONG = 4.0

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@functools.cache
def chapters(folder: str = "") -> list[Chapter]:
    """The chapters of the book or a folder, as written, or as the build has read them.

    Each process that runs tests reads those of which there is one test each.
    """
    settings = read_settings(ROOT / "conf", DOCS, {})
    pages = [p for p in find_pages(settings) if docname_of(p, DOCS).startswith(folder)]
    readings = [read_once(path, settings) for path in pages]
    return [reading.chapter for reading in readings if reading.chapter]


@functools.cache
def docnames() -> list[str]:
    """The names of the chapters, whose cells each process would take long to read."""
    return [
        docname_of(path, DOCS)
        for path in find_pages(Settings(DOCS, DOCS))
        if executes(front_matter(path.read_text("utf-8"), path)[0])
    ]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs the book executed is tested each week: the session `docs` executes it.

    There outputs are compared with the pins, and checks with their sentences.
    """
    for item in items:
        if "made" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.weekly)


@pytest.fixture(scope="session")
def made() -> Book:
    """The book, executed or taken from the build's own cache."""
    return execute(read_settings(ROOT / "conf", DOCS, {}), Progress())


@pytest.fixture
def book(made: Book) -> Book:
    """The book, if nothing is wrong with it."""
    assert not made.errors, "\n\n".join(map(str, made.errors))
    return made


@pytest.fixture(scope="session")
def kept() -> Callable[[str, Executed], Verdicts]:
    """Verdicts on what is no program of a page, kept in the cache between sessions."""
    cache = read_settings(ROOT / "conf", DOCS, {}).cache

    def open_verdicts(what: str, executed: Executed) -> Verdicts:
        path = cache / what / f"{executed.chapter.docname}.txt"
        return Verdicts(path, executed.run.provenance.jax)

    return open_verdicts
