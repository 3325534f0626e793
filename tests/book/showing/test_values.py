"""A page shows a value in place of its expression."""

from types import SimpleNamespace
from typing import Any

import pytest
from docutils import nodes

from executed_book.model import Value, ValueResult
from executed_book.showing.values import ValueRole, line_up


class Page:
    """A page that is being read, and asks for values."""

    def __init__(self, *values: tuple[str, str, str]) -> None:
        self.env: Any = SimpleNamespace(temp_data={})
        line_up(
            self.env,
            [(Value(role, e, 1), ValueResult(text)) for role, e, text in values],
        )
        self.said: list[tuple[str, int]] = []

    def ask(self, role: str, text: str) -> tuple[list[Any], list[Any]]:
        def error(message: str, line: int) -> str:
            self.said.append((message, line))
            return message

        inliner = SimpleNamespace(
            reporter=SimpleNamespace(error=error),
            problematic=lambda raw, text, message: nodes.problematic(raw, raw),
            document=SimpleNamespace(settings=SimpleNamespace(env=self.env)),
        )
        made = ValueRole()
        return made(role, f"{{{role}}}`{text}`", text, 7, inliner)  # type: ignore[arg-type]


def test_values_come_in_the_order_of_their_occurrences():
    page = Page(("value", "x", "1"), ("measured", "x", "9"), ("value", "x", "2"))
    found = [page.ask("value", "x")[0][0] for _ in range(2)]
    assert [node.astext() for node in found] == ["1", "2"]
    [measured], _ = page.ask("measured", "x")
    assert measured.astext() == "9"
    assert (found[0]["classes"], measured["classes"]) == (
        ["value"],
        ["measured", "no-search"],
    )


@pytest.mark.parametrize("again", [0, 1])
def test_a_value_that_was_not_computed_is_told_at_its_line(again):
    page = Page(*[("value", "x", "1")] * again)
    for _ in range(again):
        page.ask("value", "x")
    found, messages = page.ask("value", "x")
    assert isinstance(found[0], nodes.problematic)
    [(message, line)] = page.said
    assert (messages, line) == ([message], 7)
    assert message.startswith("'x' was not computed: values stand in the")
