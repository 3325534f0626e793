"""The pages of a book are the files that Sphinx would take."""

from __future__ import annotations

from pathlib import Path

import pytest

from executed_book.reading.pages import find_chapters, find_pages, read_pages

CHAPTER = "---\nfile_format: mystnb\n---\n# One\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for name in (
        *("b.md", "a/x.md", "a/y.ipynb", "notes.txt", "_build/z.md"),
        *(".ipynb_checkpoints/b.md", "a/.ipynb_checkpoints/x.md", "_pages/c.md"),
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CHAPTER)
    (tmp_path / "a" / "y.ipynb").write_text('{"nbformat": 4, "cells": []}')
    return tmp_path


def names(source: Path, paths: list[Path]) -> list[str]:
    return [path.relative_to(source).as_posix() for path in paths]


def test_pages_are_sorted_and_what_programs_leave_is_none(source):
    found = names(source, find_pages(source, exclude=["_build"]))
    assert found == ["_pages/c.md", "a/x.md", "a/y.ipynb", "b.md"]


def test_patterns_are_sphinxs(source):
    assert names(source, find_pages(source, include=["a/**"])) == [
        "a/x.md",
        "a/y.ipynb",
    ]
    left = find_pages(source, exclude=["a", "_*", "**/z.md"])
    assert names(source, left) == ["b.md"]


def test_two_files_of_one_name_are_told_and_the_first_is_read(source):
    (source / "b.ipynb").write_text('{"nbformat": 4, "cells": []}')
    chapters, [error] = find_chapters(source, exclude=["_*"])
    assert [c.path.name for c in chapters if c.docname == "b"] == ["b.ipynb"]
    assert (error.path.name, error.message) == (
        "b.md",
        "b.ipynb beside it gives the same page",
    )


def test_pages_that_are_not_executed_are_not_read(source):
    (source / "b.md").write_text(CHAPTER + "\n{eval}`x`\n")
    assert len(read_pages(source, exclude=["_*"])[1]) == 1
    readings, errors = read_pages(source, exclude=["_*"], not_executed=["b*"])
    assert [r.docname for r in readings] == ["a/x", "a/y"]
    assert errors == []


def test_only_pages_that_execute_are_chapters(source):
    (source / "b.md").write_text("# Text\n")
    chapters, _ = find_chapters(source, exclude=["_*"])
    assert [chapter.docname for chapter in chapters] == ["a/x", "a/y"]
