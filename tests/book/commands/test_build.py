"""What a build says at its end, and that it changes nothing where it may not."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

import pytest

from executed_book.book import Book, ExecutedPage
from executed_book.checking.elsewhere import Record
from executed_book.commands import build as module
from executed_book.commands.build import build
from executed_book.errors import BookError, PageError
from executed_book.programs.snippets import Snippets
from executed_book.running.progress import Progress
from executed_book.settings import Settings

from ..made import GPU, chapter, executed, gave

WRONG = PageError(Path("a.md"), 1, "odd")


@pytest.mark.parametrize(("count", "noun"), [(1, "problem"), (2, "problems")])
def test_all_problems_are_told_with_their_number(count, noun):
    assert module._report(Book([], errors=[WRONG] * count)) == "\n\n".join(
        ["a.md:1: odd"] * count + [f"{count} {noun}: nothing was published"]
    )


def with_records(*records: Record) -> Book:
    page = ExecutedPage(executed(chapter("x"), gave()), Snippets([None]))
    page.records.update({1: list(records)} if records else {})
    return Book([], pages={"one": page})


def test_whose_records_are_shown():
    tpu = dataclasses.replace(GPU, device_kind="TPU v5")
    book = with_records(Record(GPU, []), Record(tpu, []))
    assert module._records_note(book) == "1 cell shows a record of NVIDIA H200, TPU v5"


def test_records_that_are_not_shown_are_listed():
    book = with_records()
    book.stale = ["one, 1 cell on H200"]
    assert module._records_note(book) == (
        "records are stale and not shown where cells have changed;"
        " 'python -m executed_book record' makes them anew\n"
        "  one, 1 cell on H200"
    )


def building(root: Path, monkeypatch, *errors: PageError) -> tuple[Path, list[str]]:
    """Build a book of which this is wrong; its site, and what was done."""
    (root / "docs").mkdir()
    done = []
    monkeypatch.setattr(
        module, "execute", lambda *_, **__: Book([], errors=list(errors))
    )
    monkeypatch.setattr(
        module.Rendering,
        "render",
        lambda self, book: (self.work / "html").mkdir() or done.append("rendered"),
    )
    site = root / "_build" / "html"
    settings = Settings(root / "docs", root / "cache")
    log = io.StringIO()
    try:
        build(settings, root / "conf", site, Progress(log))
    except BookError as error:
        done.append(str(error))
    return site, [*done, *log.getvalue().splitlines()]


def test_a_book_with_an_error_is_not_rendered(tmp_path, monkeypatch):
    site, done = building(tmp_path, monkeypatch, WRONG)
    assert done == ["a.md:1: odd\n\n1 problem: nothing was published"]
    assert not site.exists()


def test_a_book_that_is_right_is_published(tmp_path, monkeypatch):
    site, done = building(tmp_path, monkeypatch)
    assert done[0] == "rendered"
    assert done[-1].startswith("The book stands at ")
    assert site.is_dir()


def test_a_place_that_is_taken_is_told_before_anything_runs(tmp_path, monkeypatch):
    (tmp_path / "_build" / "html").mkdir(parents=True)
    (tmp_path / "_build" / "html" / "mine.txt").touch()
    _, done = building(tmp_path, monkeypatch)
    assert "holds mine.txt, which no build made" in done[0]
    assert len(done) == 1
