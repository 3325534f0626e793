"""What is wrong is said in one form: place, what, and the way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from executed_book.errors import BookError, PageError, did_you_mean, raise_all


def test_an_error_says_where_what_and_the_way_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    error = PageError(tmp_path / "docs/a.md", 7, "is odd", "make it even", "1\n\n3")
    assert str(error) == ("docs/a.md:7: is odd\n    1\n    \n    3\n    → make it even")


def test_without_a_hint_there_is_no_arrow():
    assert str(PageError(Path("a.md"), 1, "is odd")) == "a.md:1: is odd"


def test_nothing_is_meant_that_is_not_alike():
    assert did_you_mean("zebra", ["check", "solution"]) == ""
    assert did_you_mean("solutoin", []) == ""


def test_everything_that_is_wrong_is_raised_together():
    raise_all([])
    errors = [PageError(Path("a.md"), 1, "one"), BookError("two")]
    with pytest.raises(BookError) as caught:
        raise_all(errors)
    assert str(caught.value) == "a.md:1: one\n\ntwo"
