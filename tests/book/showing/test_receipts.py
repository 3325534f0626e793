"""Roles that show nothing, or a count; `test_page` looks at ticks and checks."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

from docutils import nodes

from executed_book.checking.receipts import COUNTED
from executed_book.showing.receipts import CountRole, NoCheckRole


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
