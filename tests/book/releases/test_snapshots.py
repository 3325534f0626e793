"""Snapshots of a book on two versions, and the page of what differs."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from executed_book.book import Book
from executed_book.errors import BookError, PageError
from executed_book.releases.snapshots import (
    CellText,
    Change,
    ChapterText,
    Snapshot,
    compare,
    from_plain,
    read_snapshot,
    snapshot_of,
    to_plain,
    write_snapshot,
)

from .. import made

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


def chapter(*cells: CellText, broken: str | None = None) -> dict[str, ChapterText]:
    return {"a": ChapterText("A", cells, broken)}


def cell(output: str, varies: bool = False, failed: bool = False) -> CellText:
    return CellText("f()", 1, varies, failed, output)


def test_a_chapter_that_cannot_run_is_listed():
    old = Snapshot(VERSIONS, chapter(broken="SIGSEGV"))
    found = compare(Snapshot(VERSIONS, chapter()), old)
    assert found.changes == (Change("a", "broke", new="SIGSEGV"),)
    assert found.titles == {"a": "A"}
    gone = compare(Snapshot(VERSIONS, chapter()), Snapshot(VERSIONS, {}))
    assert gone.changes == (Change("a", "broke", new="there is no such chapter"),)


@pytest.mark.parametrize(
    ("new", "old", "kind"),
    [
        (cell("1"), cell("1"), None),
        (cell("1.0000"), cell("1.00001"), None),
        (cell("1"), cell("2"), "changed"),
        (cell("1", varies=True), cell("2", varies=True), None),
        (cell("1", varies=True), cell("E", varies=True, failed=True), "broke"),
        (cell("1"), cell("E", failed=True), "broke"),
        (cell("E", failed=True), cell("1"), "did not raise"),
        (cell("E: a", failed=True), cell("E: b", failed=True), "changed"),
    ],
)
def test_how_a_cell_differs(new, old, kind):
    found = compare(Snapshot(VERSIONS, chapter(new)), Snapshot(VERSIONS, chapter(old)))
    assert [change.kind for change in found.changes] == [kind] * (kind is not None)
    assert found.cells == 1


def test_a_snapshot_of_a_book_where_nothing_ran():
    wrong = PageError(Path("docs/one.md"), 3, "cell 1 killed its process")
    book = Book([made.chapter("x")], errors=[wrong])
    with pytest.raises(BookError, match=r"(?s)no chapter runs here.*one\.md:3: cell 1"):
        snapshot_of(book)


def test_a_snapshot_has_what_ran_and_why_the_rest_did_not():
    one = made.chapter("x", made.Cell(2, "y", 20, tags=frozenset({"measured"})))
    two = made.chapter("z", docname="two", path=Path("docs/two.md"))
    ran = made.executed(one, made.gave(made.shown("3")), made.raised())
    wrong = PageError(Path("docs/two.md"), 3, "cell 1 killed its process")
    taken = snapshot_of(Book([one, two], {"one": ran}, errors=[wrong]))
    assert taken.versions == {
        "platform": "cpu",
        "device_kind": "cpu",
        "device_count": 1,
        "jax": "0.12.0",
        "jaxlib": "0.12.0",
        "python": "3.13.1",
    }
    assert taken.chapters["one"].cells == (
        CellText("x", 1, False, False, "3"),
        CellText("y", 2, True, True, ""),
    )
    assert taken.chapters["two"].broken == "cell 1 killed its process"


def test_a_snapshot_is_the_same_after_a_file(tmp_path):
    taken = Snapshot(VERSIONS, chapter(cell("é"), broken=None))
    write_snapshot(taken, tmp_path / "a.json")
    assert read_snapshot(tmp_path / "a.json") == taken


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"versions": {}, "chapters": []}'])
def test_a_file_that_is_no_snapshot_is_named(tmp_path, text):
    path = tmp_path / "file.json"
    path.write_text(text)
    with pytest.raises(BookError, match=r"file\.json: not a snapshot"):
        read_snapshot(path)
