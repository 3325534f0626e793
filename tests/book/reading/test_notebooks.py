"""A Jupyter notebook is taken apart as a page is, and its old outputs left aside."""

import json
from typing import Any

import pytest

from executed_book.reading.notebooks import NOT_A_NOTEBOOK, notebook_stretches


def cell(kind: str, source: str | list[str], **more: Any) -> dict[str, Any]:
    return {"cell_type": kind, "metadata": {}, "source": source, **more}


def written(*cells: dict[str, Any], **more: Any) -> str:
    plain = {"cells": list(cells), "metadata": {}, "nbformat": 4, **more}
    return json.dumps(plain)


DEEP = json.loads("[" * 99 + "]" * 99)


def test_cells_are_read_and_outputs_are_not():
    output = {"output_type": "stream", "name": "stdout", "text": "old\n"}
    text = written(
        cell("markdown", ["# A\n", "\n", "b"]),
        cell("code", ["x"], outputs=[output], metadata={"tags": [], "source": 1}),
        cell("raw", ["raw"]),
        metadata={"title": "T"},
    )
    metadata, found = notebook_stretches(text)
    assert metadata == {"title": "T"}
    parts = [("markdown", "# A\n\nb"), ("code", "x"), ("raw", "raw")]
    assert [(s.kind, s.text) for s in found] == parts
    assert found[1].options == {"tags": [], "source": 1}
    assert "old" not in repr(found)
    lines = json.dumps(json.loads(text), indent=1).split("\n")
    _, spread = notebook_stretches("\n".join(lines))
    assert [lines[s.line - 1].strip() for s in spread] == [r'"# A\n",', '"x"', '"raw"']
    assert spread[0].first == spread[0].line


def test_metadata_may_be_deeper_than_any_is_and_empty_cells_are_left_out():
    text = written(cell("code", []), cell("code", " \n"), metadata={"a": DEEP[0]})
    assert notebook_stretches(text) == ({"a": DEEP[0]}, [])


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
        (written(cell("code", "'\ud800'")), "UnicodeEncodeError"),
        (written(cell("code", "x"), metadata=3), "TypeError"),
        ("[" * 100_000 + "]" * 100_000, "RecursionError"),
        (written(metadata={"a": [DEEP]}), "deeper than 100 levels"),
        (written(cell("code", "x", metadata={"a": DEEP})), "deeper than 100 levels"),
    ],
)
def test_what_is_no_notebook(text, words):
    with pytest.raises(NOT_A_NOTEBOOK) as caught:
        notebook_stretches(text)
    assert words in f"{type(caught.value).__name__}: {caught.value}"
