"""The page of what other releases change: from stored files."""

import dataclasses

import pytest

from executed_book.checking.stored import (
    Part,
    StoredCell,
    StoredPage,
    stored_path,
    write_page,
)
from executed_book.commands.releases import Change, Release, compare, releases_page

from ..made import CPU, chapter

OTHER = dataclasses.replace(CPU, jax="0.11.2", date="2001-02-03")


def changed(number, old, new):
    return Change("a", number, "f()", new=new, old=old)


def release(jax, *changes):
    return Release("2", dataclasses.replace(OTHER, jax=jax), 9, {"a": "A"}, [*changes])


def test_fences_inside_outputs_stay_inside():
    page = releases_page([release("1", changed(1, "````\nx", "no output at all"))])
    assert "`````{code-block} text\n````\nx\n`````" in page

    # Lines of a long output that are its own are marked.
    page = releases_page([release("1", changed(1, "a\nb\nc", "a\nB\nc\nd"))])
    assert "text\n:emphasize-lines: 2\na\nb" in page
    assert "text\n:emphasize-lines: 2,4\na\nB" in page
    page = releases_page([release("1", changed(1, "a", "b"))])
    assert "emphasize" not in page, "nothing is shared"


def stored(text, source="f()", **fields):
    return StoredCell(source, (Part(text),) if text else (), **fields)


def store(folder, provenance, *cells):
    path = stored_path(folder, provenance.jax, "one")
    write_page(StoredPage(provenance, cells), path)
    return path.parent


@pytest.mark.parametrize(
    ("new", "old", "kind"),
    [
        (stored("1.0000"), stored("1.00001"), None),
        (stored("1"), stored("2"), "differs"),
        (stored("see https://a.dev/b."), stored("see https://a.dev/c."), None),
        (stored("# JAX 0.12.0.1, cpu"), stored("# JAX 0.11, cpu"), None),
        (stored("1\n{value} x = 1"), stored("1"), None),
        (stored("", varies=True), stored("", varies=True), None),
        (stored("", varies=True), stored("E", varies=True, failed=True), "breaks"),
        (stored("1"), stored("E", failed=True), "breaks"),
    ],
)
def test_how_a_cell_differs(tmp_path, new, old, kind):
    store(tmp_path, CPU, new)
    found = compare(tmp_path, store(tmp_path, OTHER, old), [chapter("f()")])
    assert found.cells == 1
    kinds = ["breaks" if change.broke else "differs" for change in found.changes]
    assert kinds == ([kind] if kind else [])


def test_cells_that_have_changed_since_are_not_compared(tmp_path):
    store(tmp_path, CPU, stored("1", "a"), stored("2", "X"), stored("3", "c"))
    place = store(tmp_path, OTHER, stored("9", "a"), stored("8", "b"), stored("7", "c"))
    found = compare(tmp_path, place, [chapter("a", "X", "c")])
    assert (found.cells, [change.number for change in found.changes]) == (1, [1])


def test_the_accepted_outputs_are_no_other_release(tmp_path):
    assert compare(tmp_path, store(tmp_path, CPU, stored("1")), [chapter("x")]) is None


def test_the_page_shows_every_release_that_was_recorded_the_newest_first(book):
    (book.root / "outputs" / "cells").mkdir(parents=True)
    book.chapter("one", "print('same')", "y = 2\nprint('changes')", "1 / 1", "'```'")
    book.index("one", "releases")
    book.done("pin")
    accepted = book.stored("one").read_text()
    for jax in ("0.9.2", "0.10.0"):
        path = stored_path(book.root / "outputs" / "cells", jax, "one")
        path.parent.mkdir()
        _, _, cells = accepted.partition("\n\n")
        facts = "# platform cpu\n# device_count 1\n# jaxlib 1\n# python 3\n# date 2001"
        text = cells.replace("| changes", "| changed").replace(
            "| 1.0", "!\n| ZeroDivisionError: division by zero"
        )
        path.write_text(f"# JAX {jax}, cpu\n{facts}\n\n{text}")
    output = book.done("releases")
    assert "one: cell 3 broke" in output
    design = "extensions.append('sphinx_design')"
    book.configure(design, 'myst_enable_extensions = ["colon_fence"]')
    book.built()
    page = book.html("releases")
    assert page.index("JAX 0.10.0 beside") < page.index("JAX 0.9.2 beside")
    assert "changed" in page
    assert "ZeroDivisionError: division by zero" in page
    assert page.count("Of 4 cells that are as they were then, 2 differ.") == 2
