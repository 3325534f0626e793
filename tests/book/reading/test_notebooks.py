"""A Jupyter notebook is taken apart as a page is, and its old outputs left aside."""

from __future__ import annotations

import json
from typing import Any

import pytest

from executed_book.reading.notebooks import NotANotebook, notebook_stretches


def cell(kind: str, source: str | list[str], **more: Any) -> dict[str, Any]:
    return {"cell_type": kind, "metadata": {}, "source": source, **more}


def written(*cells: dict[str, Any], indent: int | None = 1, **more: Any) -> str:
    plain = {"cells": list(cells), "metadata": {}, "nbformat": 4, **more}
    return json.dumps(plain, indent=indent)


def test_cells_are_read_and_outputs_are_not():
    output = {"output_type": "stream", "name": "stdout", "text": "old\n"}
    text = written(
        cell("markdown", ["# A\n", "\n", "b"]),
        cell("code", "x", outputs=[output], metadata={"tags": ["check"]}),
        cell("raw", ["raw"]),
        metadata={"title": "T"},
    )
    metadata, found = notebook_stretches(text)
    assert metadata == {"title": "T"}
    assert [(s.kind, s.text) for s in found] == [
        ("markdown", "# A\n\nb"),
        ("code", "x"),
        ("raw", "raw"),
    ]
    assert found[1].options == {"tags": ["check"]}
    assert "old" not in repr(found)


def test_empty_cells_are_none():
    assert notebook_stretches(written(cell("code", []), cell("code", " \n")))[1] == []


def test_lines_are_those_of_the_file():
    text = written(cell("markdown", ["A\n", "\n", "b"]), cell("code", ["x\n", "y"]))
    _, (prose, code) = notebook_stretches(text)
    lines = text.split("\n")
    assert lines[code.line - 1].strip() == '"x\\n",'
    assert lines[prose.line - 1].strip() == '"A\\n",'
    assert prose.running == [(prose.line, "A"), (prose.line + 2, "b")]
    assert prose.first == prose.line


def test_what_an_output_calls_source_is_no_cell():
    output = {"output_type": "display_data", "data": {"source": ["not\n", "this"]}}
    text = written(cell("code", ["x"], outputs=[output]), cell("code", ["y"]))
    _, found = notebook_stretches(text)
    lines = text.split("\n")
    assert [lines[s.line - 1].strip() for s in found] == ['"x"', '"y"']


def test_where_lines_cannot_be_told_it_is_the_first():
    text = written(cell("code", "x"), cell("code", "y"), indent=None)
    assert [s.line for s in notebook_stretches(text)[1]] == [1, 1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "JSONDecodeError"),
        ("[]", "TypeError"),
        ("{}", "KeyError: 'nbformat'"),
        ('{"nbformat": 3}', "notebook format 3, not 4"),
        ('{"nbformat": 4}', "KeyError: 'cells'"),
        (written(cell("heading", "x")), "a cell of type 'heading'"),
        (written({"cell_type": "code"}), "KeyError: 'source'"),
        (written(cell("code", [1])), "TypeError"),
        (written(cell("code", "x"), metadata=3), "TypeError"),
    ],
)
def test_what_is_no_notebook(text, words):
    with pytest.raises(NotANotebook) as caught:
        notebook_stretches(text)
    assert words in str(caught.value)
