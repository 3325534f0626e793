"""What training in earnest needs: commands that show it, and tests that guard it."""

import importlib.util
import re

import pytest

from . import lm_rows, test_lm
from .figures import EXAMPLES
from .lm_rows import ROWS


@pytest.mark.parametrize("row", ROWS)
def test_each_is_shown_by_a_command_and_guarded_by_tests(
    row: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from lm.config import parser

    for module in re.findall(r"\blm\.\w+", ROWS[row].command):
        assert importlib.util.find_spec(module)
    known = parser("").format_help()
    for options in re.findall(r"lm\.train ([^>|&;]*)", ROWS[row].command):
        for option in re.findall(r"--\w+", options):
            assert option in known
    for start in ROWS[row].tests.split():
        assert any(name.startswith(f"test_{start}") for name in vars(test_lm)), start


def check(session: str) -> None:
    found = lm_rows.printed(session)
    assert [*found] == ["the options of all", *ROWS]
    for name, row in ROWS.items():
        command, text = found[name]
        assert command == row.command
        assert re.search(row.prints, text), f"{name}: {text}"
        assert "Traceback" not in text


def test_the_session_that_is_kept_shows_each():
    session = lm_rows.SESSION.read_text()
    check(session)
    with pytest.raises(AssertionError, match="tokens: nothing"):
        check(re.sub(r"(?m)^\['de.*$", "nothing", session))


@pytest.mark.weekly
def test_a_new_session_shows_each():
    check(lm_rows.run_all())
