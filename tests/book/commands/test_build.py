"""What a build says at its end, and that it changes nothing where it may not."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from executed_book.book import Book, ExecutedPage
from executed_book.checking.elsewhere import Record
from executed_book.commands import build as module
from executed_book.errors import PageError
from executed_book.programs.snippets import Snippets

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
