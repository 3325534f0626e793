"""What `conf.py` says is known before Sphinx runs."""

from pathlib import Path

import pytest

from executed_book.commands.configuration import read_settings
from executed_book.errors import BookError
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
    ("text", "words"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("x = (", "'(' was never closed"),
        ("raise SystemExit(3)", "sys.exit()"),
    ],
)
def test_a_conf_that_cannot_be_read_is_told_in_one_line(tmp_path, text, words):
    with pytest.raises(BookError) as caught:
        read(tmp_path, text)
    said = str(caught.value)
    assert said.startswith(f"{tmp_path / 'conf' / 'conf.py'}: ")
    assert words in said
    assert "\n" not in said
