"""What is wrong is said in one form: place, what, and the way out."""

from executed_book.errors import PageError, did_you_mean


def test_an_error_says_where_what_and_the_way_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    error = PageError(tmp_path / "docs/a.md", 7, "is odd", "make it even", "1\n\n3")
    assert str(error) == ("docs/a.md:7: is odd\n    1\n    \n    3\n    → make it even")


def test_nothing_is_meant_that_is_not_alike():
    assert did_you_mean("zebra", ["check", "solution"]) == ""
    assert did_you_mean("solutoin", []) == ""
