"""Numbers of things are said as one would."""

from __future__ import annotations

import pytest

from executed_book.plurals import counted


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 cells"), (1, "1 cell"), (2, "2 cells")]
)
def test_one_thing_is_said_as_one(number, said):
    assert counted(number, "cell") == said
