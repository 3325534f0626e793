"""Snapshots of a book on two versions, and the page of what differs."""

from __future__ import annotations

import json

import pytest

from executed_book.commands.drift import compare, releases_page
from executed_book.errors import BookError


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
    new, old = (
        json.loads((book.root / f).read_text()) for f in ("new.json", "old.json")
    )
    assert len(old["chapters"]["one"]["cells"]) == 4, "cells after the failure ran too"
    with pytest.raises(BookError, match="one: the snapshots were taken of different"):
        compare(new, old)
    for k, cell in enumerate(new["chapters"]["one"]["cells"]):
        old["chapters"]["one"]["cells"][k]["source"] = cell["source"]
    old["provenance"]["jax"] = "0.0.1"
    record = compare(new, old)
    assert [(c["number"], c["kind"]) for c in record["changes"]] == [
        (2, "changed"),
        (3, "broke"),
    ]
    assert record["cells"] == 4

    (book.root / "other.json").write_text(json.dumps(old))
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
    facts = {"jax": "2", "python": "3", "platform": "cpu"}
    new = {"provenance": facts, "chapters": {"a": {"title": "A", "cells": []}}}
    old = {
        "provenance": {**facts, "jax": "1"},
        "chapters": {"a": {"broken": "SIGSEGV"}},
    }
    record = compare(new, old)
    assert record["changes"] == [{"docname": "a", "broken": "SIGSEGV"}]
    assert "did not run to its end: SIGSEGV" in releases_page([record])
