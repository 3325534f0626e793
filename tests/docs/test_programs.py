"""Every program of every page runs alone and gives what its page shows."""

from __future__ import annotations

from executed_book.book import Book

from .conftest import LONGEST


def test_programs_of(docname: str, book: Book):
    offers = book.offers[docname]
    assert not [o.what for o in offers if o.waits and o.seconds <= LONGEST]
    problems = [str(offer.error) for offer in offers if offer.error]
    assert not problems, "\n\n".join(problems)


def test_every_cell_has_a_program_or_says_why_not(docname: str, book: Book):
    page = book.pages[docname]
    silent = [
        f"docs/{docname}.md:{cell.line}: cell {cell.number}"
        for (cell, _), program in zip(
            page.executed, page.snippets.programs, strict=True
        )
        if program is None and not (cell.no_program or cell.is_skipped)
    ]
    assert not silent


def test_few_cells_say_why_they_have_none(book: Book, record_property):
    cells = [cell for chapter in book.chapters for cell in chapter.cells]
    without = [cell for cell in cells if cell.no_program]
    record_property("cells", len(cells))
    record_property("programs", len(cells) - len(without))
    assert len(without) <= 0.02 * len(cells)


def test_few_programs_hold_only_with_all_that_stands_above(book: Book):
    offers = [offer for some in book.offers.values() for offer in some]
    whole = [f"{o.path}:{o.line}: {o.what}" for o in offers if o.stands_in is not None]
    assert len(whole) <= 0.01 * len(offers), "\n".join(whole)
