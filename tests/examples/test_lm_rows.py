"""What training in earnest needs: commands that show it."""

import re

import pytest

from . import lm_rows
from .lm_rows import ROWS


def check(session: str) -> None:
    found = lm_rows.printed(session)
    assert [*found] == ["the options of all", *ROWS]
    for name, row in ROWS.items():
        command, text = found[name]
        assert command == row.command
        assert re.search(row.prints, text), f"{name}: {text}"
        assert "Traceback" not in text


def test_the_session_that_is_kept_shows_each():
    check(lm_rows.SESSION.read_text())


@pytest.mark.weekly
def test_a_new_session_shows_each():
    check(lm_rows.run_all())
