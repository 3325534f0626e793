"""A statement that is too much to follow makes programs longer, not wrong."""

from __future__ import annotations

import pytest

from executed_book.programs import Page, Programs
from executed_book.programs.run import Run
from tests.book.programs import harness

MANY_CALLS = """\
# %%
kept = [0]
def one(x):
    return {gives}
def many():
    return [one(1), one(2), one(3), one(4), one(5)]
# %%
found = many()[0]
# %%
unrelated = 1
# %%
found.append(9)
# %%
found, kept
"""
PAGES = {
    "a list of its own": harness.read_cells(MANY_CALLS.format(gives="[x]")),
    "a list of the page": harness.read_cells(MANY_CALLS.format(gives="kept")),
}


def test_what_follows_is_kept_as_well(monkeypatch: pytest.MonkeyPatch):
    executed = harness.execute(PAGES)
    monkeypatch.setattr(Run, "LIMIT", 3)
    verdicts = harness.judge(PAGES, executed)
    assert [v for v in verdicts if v.is_bad] == []


def test_only_what_follows_is_longer(monkeypatch: pytest.MonkeyPatch):
    cells = PAGES["a list of the page"]
    followed = Programs(Page(cells), "# here")
    assert "unrelated" not in followed.of(4).text
    monkeypatch.setattr(Run, "LIMIT", 3)
    given_up = Programs(Page(cells), "# here")
    assert "unrelated" in given_up.of(4).text
    assert given_up.of(1).text == followed.of(1).text
