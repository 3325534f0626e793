"""What `conf.py` says is known before Sphinx runs."""

from pathlib import Path

import pytest

from executed_book.commands.configuration import read_settings
from executed_book.errors import PageError
from executed_book.settings import Settings


def read(root: Path, text: str, *, more: dict[str, object] | None = None, **overrides):
    (root / "conf").mkdir()
    (root / "conf" / "conf.py").write_text(text)
    return read_settings(root / "conf", root / "docs", overrides, **(more or {}))


def test_the_command_line_wins(tmp_path):
    settings: Settings = read(
        tmp_path,
        "executed_book_folder = 'empty'\nexecuted_book_outputs = 'cells'\n"
        "executed_book_cache = 'kept'\n",
        more={"cache": tmp_path / "mine", "jobs": 7},
        executed_book_folder="page",
        executed_book_outputs="",
    )
    assert (settings.folder, settings.outputs) == ("page", None)
    assert (settings.cache, settings.jobs) == (tmp_path / "mine", 7)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("\nx = (", 2, "'(' was never closed"),
        ("\nx = y", 2, "NameError: name 'y' is not defined"),
        ("def f():\n    y\n\nf()", 2, "NameError: name 'y'"),
        ("\nimport no_such", 2, "ModuleNotFoundError: No module"),
        ("import sys\nsys.exit(3)", 2, "SystemExit: 3"),
        ("\n\nimport broken", 3, "SyntaxError: invalid syntax (broken.py, line 1)"),
    ],
)
def test_a_conf_that_cannot_be_read_is_told_at_its_line(
    tmp_path, monkeypatch, text, line, words
):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "broken.py").write_text("in = 3")
    with pytest.raises(PageError) as caught:
        read(tmp_path, text)
    error = caught.value
    assert (error.path.name, error.line) == ("conf.py", line)
    assert words in error.message
    assert "\n" not in error.message
    way_out = "brings no_such" if "no_such" in text else "correct that line"
    assert way_out in error.hint
