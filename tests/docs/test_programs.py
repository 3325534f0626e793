"""Every program of every page was run alone and gave what its page shows."""

from executed_book.book import Book


def test_programs_of(docname: str, book: Book):
    offers = book.offers[docname]
    assert not [offer.cell.number for offer in offers if offer.verdict is None]
    problems = [str(offer.error) for offer in offers if offer.error]
    assert not problems, "\n\n".join(problems)


def test_every_cell_has_a_program(docname: str, book: Book):
    page = book.pages[docname]
    silent = [
        f"docs/{docname}.md:{cell.line}: cell {cell.number}"
        for (cell, _), program in zip(
            page.executed, page.snippets.programs, strict=True
        )
        if program is None and not cell.is_skipped
    ]
    assert not silent


def test_programs_are_short(book: Book, record_property):
    """Nobody reads a long one, and few need what their author has to say."""
    pages = [page.snippets.programs for page in book.pages.values()]
    texts = [text for some in pages for text in some if text]
    lines = sorted(text.rstrip("\n").count("\n") + 1 for text in texts)
    median, mean = lines[len(lines) // 2], sum(lines) / len(lines)
    record_property("lines", (median, mean, lines[-1]))
    assert (median <= 20, mean <= 38, lines[-1] <= 350) == (True, True, True)
    cells = [cell for chapter in book.chapters for cell in chapter.cells]
    assert sum(bool(cell.needs) for cell in cells) <= 60
