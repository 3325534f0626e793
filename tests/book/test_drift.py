"""Snapshots of a book on two versions, and the page of what differs."""

from __future__ import annotations

import dataclasses

import pytest

from executed_book.errors import BookError
from executed_book.releases.page import releases_page, substitutions
from executed_book.releases.snapshots import (
    Change,
    ChapterText,
    Drift,
    Snapshot,
    compare,
    from_plain,
    read_snapshot,
    to_plain,
    write_snapshot,
)

VERSIONS = {"jax": "2", "python": "3", "platform": "cpu"}


def test_a_snapshot_goes_on_after_a_failure_and_the_page_shows_it(book):
    book.chapter("one", "print('same')", "y = 2\nprint('changes')", "1 / 1", "'```'")
    book.run("snapshot", "new.json")
    # The same cells on a version that behaves otherwise.
    path = book.root / "docs" / "one.md"
    original = path.read_text()
    path.write_text(
        original.replace("print('changes')", "print('changed')").replace("1 / 1", "1/0")
    )
    status, output = book.run("snapshot", "old.json")
    assert status == 0, output
    new, old = (read_snapshot(book.root / f) for f in ("new.json", "old.json"))
    assert len(old.chapters["one"].cells) == 4, "cells after the failure ran too"
    with pytest.raises(BookError, match="one: the snapshots were taken of different"):
        compare(new, old)
    sources = [cell.source for cell in new.chapters["one"].cells]
    cells = tuple(
        dataclasses.replace(cell, source=source)
        for cell, source in zip(old.chapters["one"].cells, sources, strict=True)
    )
    old = Snapshot({**old.versions, "jax": "0.0.1"}, {"one": ChapterText("one", cells)})
    found = compare(new, old)
    assert [(c.number, c.kind) for c in found.changes] == [(2, "changed"), (3, "broke")]
    assert found.cells == 4
    assert from_plain(to_plain(found)) == found

    write_snapshot(old, book.root / "other.json")
    status, output = book.run(
        *("drift", "new.json", "other.json"), "--page", "docs/releases.md"
    )
    assert status == 0, output
    assert "one: cell 3 broke" in output
    path.write_text(original)
    conf = book.root / "conf" / "conf.py"
    conf.write_text(
        conf.read_text().replace('"myst_nb"', '"myst_nb", "sphinx_design"')
        + 'myst_enable_extensions = ["colon_fence"]\n'
    )
    book.index("one", "releases")
    book.built()
    page = book.html("releases")
    assert "changed" in page
    assert "ZeroDivisionError: division by zero" in page
    assert "Of 4 cells, 2 differ." in page


def test_a_chapter_that_cannot_run_is_listed():
    new = Snapshot(VERSIONS, {"a": ChapterText("A")})
    old = Snapshot({**VERSIONS, "jax": "1"}, {"a": ChapterText("A", broken="SIGSEGV")})
    found = compare(new, old)
    assert found.changes == (Change("a", "broke", new="SIGSEGV"),)
    assert "did not run to its end: SIGSEGV" in releases_page([found])


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"versions": {}, "chapters": []}'])
def test_a_file_that_is_no_snapshot_is_named(tmp_path, text):
    path = tmp_path / "file.json"
    path.write_text(text)
    with pytest.raises(BookError, match=r"file\.json: not a snapshot"):
        read_snapshot(path)


def changed(number: int, old: str, new: str) -> Change:
    return Change("a", "changed", number, "f()", new=new, old=old)


def test_what_differs_in_the_same_way_in_several_cells_stands_once():
    alike = [
        changed(
            i,
            f"E{i}: see https://x.dev/errors#{i}",
            f"E{i}: see https://x.dev/101/errors#{i}",
        )
        for i in range(1, 5)
    ]
    other = [changed(5, "a 1", "a 2"), changed(6, "a", "a\nb")]
    titles = {"a": "A"}
    page = releases_page(
        [Drift(VERSIONS, {**VERSIONS, "jax": "1"}, 9, titles, (*alike, *other))]
    )
    assert "Of 9 cells, 6 differ." in page
    assert "### The same difference in 4 cells" in page
    assert page.count("https://x.dev/101/errors") == 1
    assert "{doc}`A </a>`, cell 1, 2, 3, 4." in page
    assert "Cell 5 differs on 1:" in page
    assert "Cell 6 differs on 1:" in page


def test_lines_that_came_are_no_substitution():
    assert substitutions(changed(1, "a", "a\nb")) == frozenset()
