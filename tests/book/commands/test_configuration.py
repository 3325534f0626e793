"""What `conf.py` says is known before Sphinx runs."""

from pathlib import Path

import pytest

from executed_book.commands.configuration import read_settings
from executed_book.errors import BookError, PageError
from executed_book.settings import Settings


def read(root: Path, text: str, *, more: dict[str, object] | None = None, **overrides):
    (root / "conf").mkdir()
    (root / "conf" / "conf.py").write_text(text)
    return read_settings(root / "conf", root / "docs", overrides, **(more or {}))


def test_the_command_line_wins(tmp_path):
    settings: Settings = read(
        tmp_path,
        "nb_execution_in_temp = True\nexecuted_book_outputs = 'cells'\n"
        "executed_book_cache = 'kept'\n",
        more={"cache": tmp_path / "mine", "jobs": 7},
        nb_execution_in_temp="0",
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
    way_out = (
        "install the package with no_such" if "no_such" in text else "correct that line"
    )
    assert way_out in error.hint


@pytest.mark.parametrize(
    "line",
    [
        *("nb_execution_timeout = 'ten'", "nb_custom_formats = 3"),
        *("nb_execution_mode = 'offf'", "nb_execution_mode = True"),
    ],
)
def test_what_myst_nb_would_refuse_is_refused_before_anything_runs(tmp_path, line):
    with pytest.raises(BookError, match=r"conf.py, in an option of MyST-NB: .*must be"):
        read(tmp_path, line)


@pytest.mark.parametrize("source", [".", "docs"])
def test_runs_are_kept_in_the_folder_of_the_project(tmp_path, monkeypatch, source):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conf.py").touch()
    settings = read_settings(tmp_path, Path(source).resolve(), {})
    assert settings.cache == tmp_path / "_build" / "cache"


@pytest.mark.parametrize("overrides", [{}, {"executed_book_memroy": "3"}])
def test_an_option_that_there_is_not_is_refused_before_anything_runs(
    tmp_path, overrides
):
    text = "" if overrides else "executed_book_memroy = 3"
    with pytest.raises(BookError, match=r"no option executed_book_memroy\n.*_memory'"):
        read(tmp_path, text, **overrides)
