"""Bound sentences turned false: each stops the build and is named, at its line."""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from pathlib import Path

import pytest

from executed_book.book import Book, execute
from executed_book.commands.configuration import read_settings
from executed_book.reading.pages import read_pages
from executed_book.running.progress import Progress

from .conftest import DOCS

CONF = DOCS.parent / "conf"

#: What the README says of how many sentences have a check.
LEAST = 1600

#: A page, a check, and how what it expects is turned into something false.
MUTATIONS = [
    ("tracing/control-flow", "broken-branch", '== "traced"', '== "not traced"'),
    ("tracing/control-flow", "where-both-sides", "== x.shape", "== ()"),
    ("tracing/control-flow", "cond-slope", "(0.0) == 0", "(0.0) == 1"),
    ("tracing/control-flow", "clamped", "assert not parity", "assert parity"),
    ("tracing/control-flow", "all-branches", "== 24\ncompiled", "== 1\ncompiled"),
    ("tracing/control-flow", "while-limits", '"Reverse-mode"', '"Forward-mode"'),
    ("tracing/control-flow", "slowest-decides", "== 3 * 111", "== 1 + 7 + 111"),
    ("tracing/control-flow", "platform-choice", "== 2\n", "== 1\n"),
    ("numbers/random", "seed-bits", "low) == jax", "low) != jax"),
    ("numbers/random", "checker-off", "assert not jax", "assert jax"),
    ("numbers/random", "verdicts", "[True] * 3 +", "[True] * 4 +"),
    ("numbers/random", "family", "== len(nodes)", "== 1"),
    ("numbers/random", "fold-in", "== 1000", "== 999"),
    ("numbers/random", "unnoticed", "assert not is_reported", "assert is_reported"),
    ("numbers/random", "same-bits", "assert (first == bits", "assert (first != bits"),
    ("numbers/random", "old-layout", "(new != old)", "(new == old)"),
    ("errors/loops", "carry-type-fixed", "== 2.0", "== 2.5"),
    ("errors/loops", "carry-tree-fixed", "3, 5]", "3, 6]"),
    ("errors/loops", "same-messages", '"got None"', '"got a pair"'),
    ("errors/loops", "clamped", "10, 10, 20", "20, 10, 20"),
    ("errors/loops", "index-integer-fixed", "== 20", "== 10"),
]


def mutated(text: str, name: str, old: str, new: str) -> str:
    """The page with what a check expects turned into something false."""
    cell = re.search(rf"^:check: {name}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert cell, name
    assert cell[1].count(old) == 1, f"{name} has not one {old!r}"
    return text[: cell.start(1)] + cell[1].replace(old, new) + text[cell.end(1) :]


@pytest.fixture(scope="module")
def false_book(tmp_path_factory: pytest.TempPathFactory) -> Book:
    """A copy of the pages, with every mutation in it; none hides another."""
    project = tmp_path_factory.mktemp("false")
    pages: dict[str, str] = {}
    for docname, name, old, new in MUTATIONS:
        text = pages.get(docname) or (DOCS / f"{docname}.md").read_text("utf-8")
        pages[docname] = mutated(text, name, old, new)
    for docname, text in pages.items():
        path = project / "docs" / f"{docname}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    shutil.copytree(CONF, project / "conf")
    settings = read_settings(project / "conf", project / "docs", {}, pins=None)
    return execute(settings, Progress())


@pytest.mark.parametrize(("page", "name"), [m[:2] for m in MUTATIONS])
def test_a_bound_sentence_turned_false_stops_the_build(false_book, page, name):
    (chapter,) = (c for c in false_book.chapters if c.docname == page)
    (cell,) = (c for c in chapter.cells if c.check == name)
    lines = range(cell.line, cell.line + len(cell.source.splitlines()))
    path = Path(chapter.path)
    (error,) = (
        e for e in false_book.errors if Path(e.path) == path and e.line in lines
    )
    assert error.message.startswith(f"cell {cell.number} raised AssertionError")
    named = [s for s in chapter.statements if name in s.checks]
    assert named
    for statement in named:
        assert f"line {statement.line}, “{statement.text}”" in error.message


def test_nothing_else_is_wrong_with_the_false_book(false_book):
    by_page = defaultdict(int)
    for error in false_book.errors:
        by_page[str(error.path)] += 1
    assert len(false_book.errors) == len(MUTATIONS), dict(by_page)


def test_as_many_sentences_are_bound_as_the_readme_says():
    pages, _ = read_pages(DOCS)
    bound = sum(bool(s.checks) for page in pages for s in page.statements)
    assert bound > LEAST
    readme = (DOCS.parent / "README.md").read_text("utf-8")
    assert "more than sixteen hundred sentences" in readme
