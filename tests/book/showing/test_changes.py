"""Pages are read anew when their content is another, whatever their times say."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from executed_book.showing.changes import changed_pages, note_contents


@pytest.fixture
def env(tmp_path: Path) -> Any:
    """What Sphinx knows of two pages, one of which shows a file."""
    for name in ("one.md", "two.md", "data.txt"):
        (tmp_path / name).write_text(name)

    def doc2path(docname: str, base: bool = True) -> Path | str:
        return tmp_path / f"{docname}.md" if base else f"{docname}.md"

    made = SimpleNamespace(
        srcdir=tmp_path,
        found_docs={"one", "two"},
        dependencies={"two": {"data.txt", ""}},
        doc2path=doc2path,
    )
    note_contents(made)
    return made


def test_nothing_changed(env, tmp_path):
    os.utime(tmp_path / "one.md", (1, 1))
    assert changed_pages(env) == set()


def test_a_page_that_is_older_and_another(env, tmp_path):
    (tmp_path / "one.md").write_text("other")
    os.utime(tmp_path / "one.md", (1, 1))
    assert changed_pages(env) == {"one"}


@pytest.mark.parametrize("content", ["other", None])
def test_a_file_that_a_page_shows(env, tmp_path, content):
    path = tmp_path / "data.txt"
    path.unlink() if content is None else path.write_text(content)
    assert changed_pages(env) == {"two"}


def test_a_page_is_compared_with_the_files_it_had(env):
    """Sphinx forgets the files of a page before it is read anew."""
    env.dependencies = {}
    assert changed_pages(env) == set()


def test_new_and_removed_pages_are_sphinxs_own_to_see(env):
    env.found_docs = {"two", "three"}
    assert changed_pages(env) == set()


def test_in_a_first_build_nothing_is_known():
    assert changed_pages(SimpleNamespace(found_docs={"one"})) == set()
