"""The pages of a book are the files that Sphinx would take."""

import pytest

from executed_book.errors import PageError
from executed_book.reading.pages import find_pages, read_pages
from executed_book.settings import Settings

CHAPTER = "---\nfile_format: mystnb\n---\n# One\n"


@pytest.fixture
def source(tmp_path):
    for name in (
        *("b.md", "a/x.md", "a/y.ipynb", "notes.txt", "_build/z.md"),
        *(".ipynb_checkpoints/b.md", "a/.ipynb_checkpoints/x.md", "_pages/c.md"),
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CHAPTER)
    (tmp_path / "a" / "y.ipynb").write_text('{"nbformat": 4, "cells": []}')
    return tmp_path


def names(source, paths):
    return [path.relative_to(source).as_posix() for path in paths]


def book(source, *exclude, **options):
    return Settings(source, source / "_cache", exclude=exclude, **options)


def test_pages_are_sorted_by_sphinxs_patterns_and_what_programs_leave_is_none(source):
    found = names(source, find_pages(book(source, "_build")))
    assert found == ["_pages/c.md", "a/x.md", "a/y.ipynb", "b.md"]
    below = find_pages(book(source, include=("a/**",)))
    assert names(source, below) == ["a/x.md", "a/y.ipynb"]
    assert names(source, find_pages(book(source, "a", "_*", "**/z.md"))) == ["b.md"]


def test_only_pages_that_execute_are_chapters(source):
    (source / "b.md").write_text("# Text\n")
    readings = read_pages(book(source, "_build"))
    chapters = [reading.chapter and reading.chapter.docname for reading in readings]
    assert chapters == ["_pages/c", "a/x", "a/y", None]


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        ("x.md", ["a/y.ipynb", "b.md"]),
        ("*.md", ["a/y.ipynb"]),
        ("a/*", ["b.md"]),
        ("a/**", ["b.md"]),
        ("b", ["a/x.md", "a/y.ipynb", "b.md"]),
        ("", ["a/x.md", "a/y.ipynb", "b.md"]),
    ],
)
def test_a_page_is_not_run_if_its_path_ends_as_a_pattern_says(source, pattern, left):
    """So it is in MyST-NB; patterns in Sphinx's manner count as well."""
    readings = read_pages(book(source, "_*", not_executed=(pattern,)))
    assert names(source, [reading.path for reading in readings]) == left


def test_a_link_to_a_folder_that_it_lies_in_is_refused_and_not_followed(source):
    """Two of them make as many folders as there are paths of forty steps."""
    (source / "a" / "up").symlink_to("..")
    (source / "b").symlink_to("a")
    (source / "c").symlink_to("a")
    with pytest.raises(PageError) as caught:
        find_pages(book(source))
    assert caught.value.path == source / "a" / "up"
    assert "lies in" in caught.value.message
    found = names(source, find_pages(book(source, "**/up", "c", "_*", "b.md")))
    assert found == ["a/x.md", "a/y.ipynb", "b/x.md", "b/y.ipynb"]
