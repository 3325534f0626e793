"""Values wait for the text of their page in the order in which cells gave them."""

from types import SimpleNamespace
from typing import Any

import pytest

from executed_book.model import Cell, Value, ValueResult
from executed_book.showing.values import line_up

from ..made import chapter, executed, gave


def test_each_value_comes_with_its_result():
    values = Value("value", "a", 1), Value("value", "b", 1), Value("value", "a", 2)
    made, results = chapter(Cell(1, "x", 1, values=values)), map(ValueResult, "123")
    env: Any = SimpleNamespace(temp_data={})
    line_up(env, executed(made, gave(values=(*results,))))
    [waiting] = env.temp_data.values()
    assert waiting == {("value", "a"): ["1", "3"], ("value", "b"): ["2"]}
    with pytest.raises(ValueError, match="zip"):
        line_up(env, executed(made, gave()))
