"""One page becomes a chapter, or all that is wrong with it is told."""

import json
from pathlib import Path

from executed_book.reading.chapters import Reading, read_page
from executed_book.settings import Settings

FRONT = "---\nfile_format: mystnb\n---\n"  # three lines


def read(root: Path, text: str, *rules: str, name: str = "one.md") -> Reading:
    path = root / name
    path.write_text(text, "utf-8")
    return read_page(path, Settings(root, root, rules=frozenset(rules)))


def test_cells_and_text_stand_in_order_with_their_lines(tmp_path):
    text = FRONT + "# One\n\n```{code-cell}\n:tags: [check]\n\nx = 1\nx\n```\n\nTwo.\n"
    chapter = read(tmp_path, text, name="one.md").chapter
    parts = [(p.line, getattr(p, "source", None)) for p in chapter.parts]
    assert parts == [(4, None), (9, "x = 1\nx"), (13, None)]
    assert (chapter.docname, chapter.title, chapter.text) == ("one", "One", text)
    [cell] = chapter.cells
    assert (cell.number, cell.tags) == (1, {"check"})


def test_values_belong_to_the_cell_above_them(tmp_path):
    text = FRONT + (
        "{value}`a` first\n\n```{code-cell}\na = 1\n```\n\nIt is {value}`a +\n1`.\n\n"
        "- {measured}`b:.1f`\n\n```{code-cell}\n2\n```\n"
    )
    reading = read(tmp_path, text)
    chapter, [told] = reading.chapter, reading.errors
    said = "the value 'a' is above the first cell"
    assert (told.line, told.message) == (4, said)
    first, second = chapter.cells
    assert [(v.role, v.expression, v.line) for v in first.values] == [
        ("value", "a + 1", 10),
        ("measured", "b:.1f", 13),
    ]
    assert second.values == ()


def test_a_cell_may_stand_in_a_file_of_its_own(tmp_path):
    (tmp_path / "cell.py").write_text("x = 3\n\n")
    text = FRONT + "```{code-cell}\n:load: cell.py\n```\n"
    chapter = read(tmp_path, text).chapter
    assert chapter.cells[0].source == "x = 3"
    # What a program needs is at its head, for tools that run it, not for a cell.
    head = '# /// script\n# dependencies = ["jax"]\n# ///\n'
    (tmp_path / "cell.py").write_text(f"{head}x = 3\n")
    assert read(tmp_path, text).chapter.cells[0].source == "x = 3"
    [told] = read(tmp_path, text.replace("cell.py", "nowhere.py")).errors
    said = "the cell's file 'nowhere.py' cannot be read: No such file or directory"
    assert (told.line, told.message) == (4, said)
    assert told.hint == "name a file by its path from this page's folder"


def test_a_page_in_another_language_is_refused_with_a_way_to_show_it(tmp_path):
    metadata = {"kernelspec": {"name": "ir", "language": "R"}}
    text = json.dumps({"nbformat": 4, "metadata": metadata, "cells": []})
    page = "---\nfile_format: mystnb\nkernelspec: {name: ir, language: R}\n---\n"
    errors = read(tmp_path, text, name="one.ipynb").errors
    for error in [*errors, *read(tmp_path, page).errors]:
        assert error.message == "its cells are written in R"
        assert "nb_execution_excludepatterns" in error.hint
    assert len(errors) == 1


def test_a_page_that_is_gone_is_told(tmp_path):
    [error] = read_page(tmp_path / "gone.md", Settings(tmp_path, tmp_path)).errors
    assert error.message == "cannot be read: No such file or directory"
