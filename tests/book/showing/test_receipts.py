"""Ticks after sentences, and what a check shows of the sentences that it holds."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

from docutils import nodes
from docutils.utils import new_document

from executed_book.checking.receipts import COUNTED
from executed_book.model import Cell, Sentence
from executed_book.showing.receipts import (
    CheckRole,
    CountRole,
    NoCheckRole,
    Receipts,
    claim_anchor,
    claims_of,
    names_of_ticks,
    receipts_of,
)

from ..made import chapter, executed, gave

STATEMENTS = (
    Sentence("One.", 1, ("a", "b")),
    Sentence("Two.", 2),
    Sentence("Three.", 3, ("a",)),
    Sentence("Four.", 4, vouched=("c",)),
    Sentence("Five.", 5, ("b",), vouched=("c",)),
    Sentence("Six.", 6, ("c",), vouched=("c",)),
)


def test_each_sentence_has_a_place_of_its_own():
    made = chapter(sentences=STATEMENTS)
    assert list(claims_of(made)) == [
        ("a", "claim-a", "One."),
        ("b", "claim-b", "One."),
        ("a", "claim-a-2", "Three."),
        ("b", "claim-b-2", "Five."),
        ("c", "claim-c", "Four. Six."),
    ]
    assert claim_anchor("a", 3) == "claim-a-3"


def test_a_receipt_says_when_and_where_a_check_passed_and_what_it_holds():
    run = executed(chapter("x"), gave()).run
    found = receipts_of(chapter(Cell(1, "x", 1, check="c"), sentences=STATEMENTS), run)
    assert list(found) == ["a", "b", "c"], "a check that nobody names has none"
    assert found["a"] == {
        "name": "a",
        "passed": ("1970-01-01 00:00 UTC", "cpu, JAX 0.12.0, Python 3.13.1"),
        "claims": [("claim-a", "One."), ("claim-a-2", "Three.")],
    }


class Reading:
    def __init__(self) -> None:
        self.said: list[str] = []
        self.document: dict[str, Any] = {}
        self.env = SimpleNamespace(temp_data=self.document)

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


def test_ticks_lead_to_their_checks_and_agree_with_the_receipts():
    reading = Reading()
    [both], [one] = (reading.ask(CheckRole(), text) for text in ("a, carry-type", "a"))
    assert both.astext() == (
        '<a class="receipt" id="claim-a" href="#check-a" data-also="check-carry-type">'
        '✓</a><span id="claim-carry-type"></span>'
    )
    assert one.astext() == '<a class="receipt" id="claim-a-2" href="#check-a">✓</a>'
    assert reading.ask(CheckRole(), " ") == []


def test_no_two_ticks_of_a_page_have_one_name():
    reading = Reading()
    marks = ("sum, shape", "sum, shape", "last", "long")
    ticks = [tick for mark in marks for tick in reading.ask(CheckRole(), mark)]
    one = {"claim-sum": "It is one.", "claim-sum-2": "It is one."}
    sentences = {**one, "claim-last": "It is whole.", "claim-long": "So long. " * 30}
    *names, long = names_of_ticks(ticks, sentences)
    twice = "It is one. (2 checks)"
    assert names == [twice, f"{twice}, 2", "It is whole."]
    assert len(long) <= 150
    assert long.endswith("So long. So …")


def test_a_mark_without_a_check_shows_nothing():
    reading = Reading()
    assert reading.ask(NoCheckRole(), "definition") == []
    assert reading.said == []
    [problem] = reading.ask(NoCheckRole(), "obvious")
    assert isinstance(problem, nodes.problematic)
    assert reading.said == ["7: 'obvious' is not one of definition, instruction, title"]


def test_counts_are_those_of_the_book_when_they_are_asked_for():
    counts = [Counter({"sentences": 1234, "universal-bound": 5})]
    role = CountRole(lambda: counts[0])
    reading = Reading()
    assert [n.astext() for n in reading.ask(role, "sentences")] == ["1,234"]
    assert [n.astext() for n in reading.ask(role, "universal-bound")] == ["5"]
    counts[0] = Counter(sentences=7)
    assert [n.astext() for n in reading.ask(role, "sentences")] == ["7"]
    reading.ask(role, "sentence")
    assert reading.said == [
        f"7: 'sentence' is no count: there are {', '.join(COUNTED)}"
    ]


def test_a_check_whose_code_is_not_shown_has_its_place_itself():
    receipt = {"name": "a", "passed": ("now", "cpu"), "claims": [("claim-a", "A.")]}
    made = nodes.container(nb_element="cell_code", cell_metadata={"receipt": receipt})
    made += nodes.container(nb_element="cell_code_output")
    document = new_document("page.md")
    document.settings.env = SimpleNamespace(config=None)
    document += made
    Receipts(document).apply()
    assert made["ids"] == ["check-a"]
    assert made.children[0]["classes"][0] == "receipt-note"
