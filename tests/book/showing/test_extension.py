"""What the extension gives to Sphinx: pages as notebooks, and files to take away."""

import json
import os
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from executed_book.book import Book, ExecutedPage
from executed_book.errors import BookError
from executed_book.programs.snippets import Snippets
from executed_book.reading.chapters import read_page
from executed_book.settings import Settings
from executed_book.showing.extension import Showing

from ..made import executed, gave, printed

CELL = "```{code-cell}\nfrom os import sep as x\n```\n{value}`x`\n"
TEXT = f"---\nfile_format: mystnb\n---\n# One\n\n{CELL}"


@pytest.fixture
def showing(tmp_path: Path) -> Showing:
    """A build of a book of one chapter, which has been executed."""
    source = tmp_path / "docs"
    source.mkdir()
    (source / "one.md").write_text(TEXT)
    chapter = read_page(source / "one.md", Settings(source, source)).chapter
    assert chapter is not None
    ran = executed(chapter, gave(printed("a\n")), seal="s")
    page = ExecutedPage(ran, Snippets([None]))
    app: Any = SimpleNamespace(srcdir=source, outdir=tmp_path / "html")
    app.config = SimpleNamespace(
        html_baseurl="",
        executed_book_colab="",
        executed_book_install_also={"os": "a"},
        executed_book_offer_also={},
        executed_book_install_line=None,
    )
    app.builder = SimpleNamespace(name="html", format="html")
    app.env = SimpleNamespace(found_docs={"one", "text"})
    made = Showing(app)
    made.book = Book(
        [chapter], {"one": ran}, {"one": page}, counts=Counter(sentences=3)
    )
    return made


def test_what_is_not_executed_is_shown_as_it_stands(showing, tmp_path):
    page = tmp_path / "docs" / "left.md"
    made = showing.unexecuted(page, TEXT)
    assert made is not None
    assert made["cells"][1]["outputs"] == []
    assert showing.unexecuted(page, "# Text\n") is None
    notebook = page.with_suffix(".ipynb")
    assert showing.unexecuted(notebook, '{"cells": []}')["cells"] == []
    with pytest.raises(BookError, match=r"left\.ipynb: not a notebook"):
        showing.unexecuted(notebook, "[]")


def outdated(showing: Showing, env: Any) -> list[str]:
    return showing.outdated(showing.app, env, set(), set(), set())


def reading(showing: Showing) -> Any:
    source = Path(showing.app.srcdir)
    return SimpleNamespace(
        found_docs={"one"},
        srcdir=source,
        dependencies={},
        doc2path=lambda name: source / f"{name}.md",
    )


def test_pages_are_read_anew_with_another_run_or_another_file(showing):
    env = reading(showing)
    assert outdated(showing, env) == ["one"]
    assert outdated(showing, env) == []
    page = showing.book.pages["one"]
    other = executed(page.executed.chapter, gave(), seal="other")
    showing.book.pages["one"] = ExecutedPage(other, page.snippets)
    assert outdated(showing, env) == ["one"]
    os.utime(env.doc2path("one"), (1e9, 1e9))  # an older one
    assert outdated(showing, env) == ["one"]
    assert outdated(showing, env) == []


def offered(showing: Showing, docname: str, body: str | None) -> dict[str, Any]:
    pdf = {"label": "download-pdf-button", "text": ".pdf"}
    group = {"label": "download-buttons", "buttons": [pdf]}
    root = "../" if docname == "one" else "#"
    context = {"body": body, "pathto": lambda name, resource: root}
    context["header_buttons"] = [{"label": "other"}, group]
    showing.offer_downloads(showing.app, docname, "page.html", context, None)
    return context


def test_a_chapter_can_be_taken_in_two_forms(showing, tmp_path):
    context = offered(showing, "one", "<h1>One</h1>")
    assert context["downloads"] == {
        "Notebook (.ipynb)": "_downloads/one.ipynb",
        "Markdown (.md)": "_downloads/one.md",
    }
    folder = tmp_path / "html" / "_downloads"
    assert (folder / "one.md").read_text() == "# One\n"
    [_, cell] = json.loads((folder / "one.ipynb").read_text())["cells"]
    assert cell["outputs"] == [printed("a\n")]
    first, *_, last = context["header_buttons"][1]["buttons"]
    assert first["url"] == "../_downloads/one.ipynb"
    assert last["text"] == "Print, or save as PDF"
    assert context["header_buttons"][0] == {"label": "other"}


def test_another_page_is_text_alone_and_what_is_no_page_is_nothing(showing, tmp_path):
    context = offered(showing, "text", "<p>a</p>")
    assert list(context["downloads"]) == ["Markdown (.md)"]
    button, _ = context["header_buttons"][1]["buttons"]
    assert button["url"] == "./_downloads/text.md", "the root itself, in `dirhtml`"
    assert offered(showing, "genindex", "<p>a</p>")["downloads"] == {}
    assert offered(showing, "text", None)["downloads"] == {}
