"""An executed chapter becomes the notebook that MyST-NB renders."""

import json
from typing import Any

import nbformat
import pytest

from executed_book.book import ExecutedPage
from executed_book.model import Cell, Prose
from executed_book.programs.snippets import Snippets
from executed_book.showing.notebook import notebook_of, stored_notebook

from ..made import chapter, executed, gave, printed, shown

PARTS = (
    Prose("# One", 4),
    Cell(1, "x = 1\nx", 8),
    Prose("raw", 12, kind="raw", options={"format": "html"}),
    Cell(2, "!ls", 20),
)
ASKED = {"execution_mode": "force", "remove_code_source": True}
METADATA = {"title": "T", "kernelspec": {"name": "other"}, "mystnb": ASKED}
VALUE = {**shown("1"), "execution_count": 1}


def page() -> ExecutedPage:
    made = chapter(parts=PARTS, metadata=METADATA)
    ran = executed(made, gave(VALUE), gave(printed("a\n")))
    return ExecutedPage(ran, Snippets([None, None]))


def cells(made: dict[str, Any]) -> list[tuple[str, str]]:
    return [(cell["cell_type"], cell["source"]) for cell in made["cells"]]


def test_a_notebook_is_valid_and_has_all_parts_in_their_order():
    made = notebook_of(page())
    nbformat.validate(json.loads(json.dumps(made)))
    kinds, sources = zip(*cells(made), strict=True)
    assert kinds == ("markdown", "code", "raw", "code")
    assert sources == ("# One", "x = 1\nx", "raw", "!ls")
    assert made["cells"][2]["metadata"] == {"format": "html"}
    assert made["cells"][1]["outputs"] == [VALUE]
    assert made["cells"][3]["execution_count"] == 2


def test_the_metadata_are_the_pages_and_the_kernel_ours():
    metadata = notebook_of(page())["metadata"]
    assert (metadata["title"], metadata["kernelspec"]["name"]) == ("T", "python3")
    assert metadata["language_info"]["version"] == "3.13.1"
    # A page that asks MyST-NB to execute it has been executed already.
    assert metadata["mystnb"] == ASKED | {"execution_mode": "off"}


@pytest.mark.parametrize(
    ("text", "is_folded"),
    [
        ("Words.\n\n**Guess** it:", True),
        ("**Guess:** which?\n\n```{index} guessing\n```\n% ahead: it", True),
        ("**Guessing** is hard.", False),
        ("Guess it.", False),
    ],
)
def test_the_output_after_a_question_is_folded(text, is_folded):
    check = Cell(1, "assert 1", 8, tags=frozenset({"check"}))
    made = chapter(parts=(Prose(text, 4), check, Cell(2, "2", 12), Cell(3, "3", 16)))
    ran = executed(made, gave(), gave(shown("2")), gave(shown("3")))
    asked = ExecutedPage(ran, Snippets([None] * 3))
    folded = [
        "hide-output" in cell["metadata"]["tags"]
        for cell in notebook_of(asked, "Guess")["cells"][1:]
    ]
    assert folded == [False, is_folded, False]
    plain = notebook_of(asked)["cells"][2]["metadata"]["tags"]
    assert "hide-output" not in plain


SOLUTION = {
    f"code_prompt_{way.lower()}": f"{way} the solution" for way in ("Show", "Hide")
}


@pytest.mark.parametrize(
    ("fields", "metadata"),
    [
        ({}, {"tags": []}),
        ({"tags": frozenset({"measured"})}, {"tags": ["measured"]}),
        ({"raises": "E: a"}, {"tags": ["raises-exception"]}),
        ({"alt": "A"}, {"tags": [], "mystnb": {"image": {"alt": "A"}}}),
        (
            {"tags": frozenset({"solution"})},
            {"tags": ["solution", "hide-cell"], "mystnb": SOLUTION},
        ),
        (
            {"alt": "A", "options": {"mystnb": {"image": {"width": 3}}, "a": 1}},
            {"tags": [], "a": 1, "mystnb": {"image": {"width": 3, "alt": "A"}}},
        ),
    ],
)
def test_options_have_their_looks_in_myst_nbs_terms(fields, metadata):
    ran = executed(chapter(Cell(1, "x", 5, **fields)), gave())
    made = notebook_of(ExecutedPage(ran, Snippets([None])))
    assert made["cells"][0]["metadata"] == {**metadata, "program": None}


def test_options_of_the_page_itself_do_not_change():
    options = {"mystnb": {"image": {"width": 3}}}
    made = chapter(Cell(1, "x", 5, alt="A", options=options))
    notebook_of(ExecutedPage(executed(made, gave()), Snippets([None])))
    assert options == {"mystnb": {"image": {"width": 3}}}


def test_a_stored_notebook_keeps_what_it_holds_and_has_a_language():
    text = json.dumps({"cells": [], "metadata": {"title": "T"}, "nbformat": 4})
    made = stored_notebook(text)
    assert made["metadata"]["title"] == "T"
    assert made["metadata"]["language_info"]["name"] == "python"
    own = json.dumps({"metadata": {"language_info": {"name": "julia"}}})
    assert stored_notebook(own)["metadata"]["language_info"] == {"name": "julia"}


@pytest.mark.parametrize("text", ["", "[]", "3"])
def test_what_is_no_notebook(text):
    with pytest.raises(ValueError, match=r"object|Expecting value"):
        stored_notebook(text)
