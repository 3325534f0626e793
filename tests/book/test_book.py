"""What has run is taken as it was kept; what a page shows and needs."""

from pathlib import Path

import pytest

from executed_book.book import ExecutedPage, execute
from executed_book.checking.elsewhere import Record
from executed_book.errors import BookError
from executed_book.model import Provenance, Run
from executed_book.programs import snippets
from executed_book.programs.slicing import NoFaithfulProgram
from executed_book.programs.snippets import Snippets, needed_cells
from executed_book.reading.pages import read_pages
from executed_book.running.chapters import Finished
from executed_book.running.progress import Progress
from executed_book.running.runs import KeptRuns
from executed_book.settings import Settings

from .made import GPU, chapter, executed, gave, printed

CHAPTER = "---\nfile_format: mystnb\n---\n# One\n\n```{code-cell}\nx = 1\n```\n"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "one.md").write_text(CHAPTER)
    (tmp_path / "docs" / "text.md").write_text("# Text\n")
    return Settings(tmp_path / "docs", tmp_path / "cache")


def keep_run(settings: Settings, number_of_cells: int) -> None:
    results = (gave(printed("kept\n")),) * number_of_cells
    run = Run("one", 0, Provenance("cpu", "cpu", 1, "1", "1", "3"), results)
    [chapter] = [r.chapter for r in read_pages(settings) if r.chapter]
    KeptRuns(settings).save(chapter, Finished(run, {"files": {}}))


def test_what_has_run_is_taken_if_it_has_as_many_cells_as_the_page(settings):
    keep_run(settings, 1)
    book = execute(settings, Progress())
    assert book.pages["one"].executed.run.results[0].outputs == (printed("kept\n"),)
    assert book.pages["one"].seal
    keep_run(settings, 2)
    assert execute(settings, Progress()).pages["one"].executed.run.executed > 0


def test_a_chapter_that_is_not_there_is_told_with_those_that_are(settings):
    asked = Settings(settings.source, settings.cache, only=frozenset({"on", "one"}))
    with pytest.raises(BookError, match="no chapter is called on; there are one"):
        execute(asked, Progress())
    text = Settings(settings.source, settings.cache, only=frozenset({"text"}))
    assert execute(text, Progress()).chapters == []


SNIPPETS = Snippets([None])


def test_a_seal_names_all_that_a_page_shows():
    ran = executed(chapter("x"), gave(), seal="a")
    other_run = executed(chapter("x"), gave(), seal="b")
    record = Record(GPU, [printed("1\n")])
    later = Record(GPU, [printed("2\n")])
    pages = [
        ExecutedPage(ran, SNIPPETS),
        ExecutedPage(other_run, SNIPPETS),
        ExecutedPage(ran, Snippets([None], {0: "why"})),
        ExecutedPage(ran, SNIPPETS, {1: [record]}),
        ExecutedPage(ran, SNIPPETS, {1: [later]}),
    ]
    assert len({page.seal for page in pages}) == len(pages)
    again = ExecutedPage(executed(chapter("x"), gave(), seal="a"), SNIPPETS)
    assert again.seal == pages[0].seal


def test_where_it_cannot_be_told_a_cell_needs_all_before_it(monkeypatch):
    def refuse(cells: object) -> None:
        raise NoFaithfulProgram(1, 1, "a magic")

    monkeypatch.setattr(snippets, "Page", refuse)
    made = executed(chapter("x = 1", "y = 2", "x + 1"), gave(), gave(), gave())
    assert needed_cells(made)(3) == {1, 2}
