"""Ticks after sentences, and what a check shows of the sentences that it holds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from docutils import nodes
from docutils.utils import new_document

from executed_book.model import Cell, Statement
from executed_book.showing.receipts import (
    CheckRole,
    NoCheckRole,
    Receipts,
    names_of_ticks,
    receipts_of,
)

from ..made import chapter, executed, gave

STATEMENTS = (
    Statement("One.", 1, ("a", "b")),
    Statement("Two.", 2),
    Statement("Three.", 3, ("a",)),
)


def test_a_receipt_says_when_and_where_a_check_passed_and_what_it_holds():
    run = executed(chapter("x"), gave()).run
    found = receipts_of(chapter(Cell(1, "x", 1, check="c"), statements=STATEMENTS), run)
    assert list(found) == ["a", "b"], "a check that nobody names has none"
    assert found["a"] == {
        "name": "a",
        "passed": ("1970-01-01 00:00 UTC", "cpu, JAX 0.12.0, Python 3.13.1"),
        "claims": [("claim-a", "One."), ("claim-a-2", "Three.")],
    }


class Reading:
    """A page that is being read: roles are asked in their order."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.document: dict[str, Any] = {}
        self.env = SimpleNamespace(current_document=self.document)

    def ask(self, role: Any, text: str) -> list[nodes.Node]:
        def error(message: str, line: int) -> str:
            self.said.append(f"{line}: {message}")
            return message

        inliner = SimpleNamespace(
            reporter=SimpleNamespace(error=error),
            problematic=lambda raw, text, message: nodes.problematic(raw, raw),
            document=SimpleNamespace(settings=SimpleNamespace(env=self.env)),
        )
        found, _ = role("role", f"{{role}}`{text}`", text, 7, inliner)
        return found


def test_no_two_ticks_of_a_page_have_one_name():
    ticks = Reading().ask(CheckRole(), "sum, shape, sum, last")
    one = {"claim-sum": "It is one.", "claim-shape": "It is one."}
    sentences = {**one, "claim-sum-2": "It is one.", "claim-last": "It is whole."}
    assert [*names_of_ticks(ticks, sentences)] == [
        "It is one. (sum)",
        "It is one. (shape)",
        "It is one. (sum), 2",
        "It is whole.",
    ]


def test_a_mark_without_a_check_shows_nothing():
    reading = Reading()
    assert reading.ask(NoCheckRole(), "definition") == []
    assert reading.said == []
    [problem] = reading.ask(NoCheckRole(), "obvious")
    assert isinstance(problem, nodes.problematic)
    assert reading.said == ["7: 'obvious' is not one of definition, instruction, title"]


def cell(receipt: dict[str, Any] | None, has_source: bool = True) -> nodes.container:
    made = nodes.container(nb_element="cell_code", cell_metadata={"receipt": receipt})
    if has_source:
        made += nodes.container(nb_element="cell_code_source")
    made += nodes.container(nb_element="cell_code_output")
    return made


RECEIPT = {
    "name": "a",
    "passed": ("now", "cpu <1>"),
    "claims": [("claim-a", "x < 1."), ("claim-a-2", "B.")],
}


def applied(*parts: nodes.Node) -> nodes.document:
    document = new_document("page.md")
    document.settings.env = SimpleNamespace(config=None)
    document += list(parts)
    Receipts(document).apply()
    return document


def test_a_check_whose_code_is_not_shown_has_its_place_itself():
    made = cell(RECEIPT, has_source=False)
    applied(made)
    assert made["ids"] == ["check-a"]
    assert made.children[0]["classes"][0] == "receipt-note"


def test_no_line_begins_with_a_tick():
    [tick] = Reading().ask(CheckRole(), "a")
    other = tick.deepcopy()
    paragraph = nodes.paragraph("", "", nodes.Text("It is.  "), tick)
    at_start = nodes.paragraph("", "", other, nodes.Text(" So. "))
    applied(paragraph, at_start)
    assert paragraph.children[0].astext() == "It is.\N{NO-BREAK SPACE}"
    assert at_start.children[1].astext() == " So. "
