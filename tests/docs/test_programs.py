"""Programs are short. That each was verified, the build sees to in CI."""

from executed_book.book import Book


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
