"""What a book's configuration comes to, and what it may not say."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import executed_book
from executed_book.errors import BookError
from executed_book.settings import OPTIONS, PREFIX, RULES, Settings, settings_of


def from_conf(root: Path, **options: Any) -> Settings:
    """The settings of a book whose `conf.py` says this and no more."""
    get: Callable[[str], Any] = options.get
    return settings_of(get, root / "docs", root / "conf", root / "cache")


def test_a_book_that_says_nothing_is_executed_with_limits_alone(tmp_path):
    made = from_conf(tmp_path)
    assert made == Settings(tmp_path / "docs", tmp_path / "cache", jobs=made.jobs)
    assert made.rules == frozenset()
    assert (made.outputs, made.only) == (None, None)
    assert made.project == tmp_path
    assert made.figure_style == {}


def test_folders_are_named_from_where_the_configuration_is(tmp_path):
    for name in ("outputs", "cache"):
        made = from_conf(tmp_path, **{f"executed_book_{name}": "../a/b"})
        assert getattr(made, name) == (tmp_path / "a" / "b").resolve()


def test_each_rule_is_asked_about_somewhere():
    """A rule that has a name, and that nobody looks up, would do nothing."""
    package = Path(executed_book.__file__).parent
    sources = "".join(path.read_text("utf-8") for path in package.rglob("*.py"))
    asked = re.findall(r'"(\w+)" in (?:\w+\.)*rules\b', sources)
    assert set(asked) == RULES.keys()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("outputs", Path("cells")),
        ("rules", ["noize"]),
        ("rules", {"noise": True}),
        ("claims", [("under", ["What to remember"])]),
        ("claims", {"below": ["What to remember"]}),
        ("claims", {"under": "What to remember"}),
        ("bound", [1]),
        ("cell_seconds", 0),
        ("cell_seconds", 10**400),
        ("cell_seconds", True),
        ("output_limit", 1000.5),
        ("figures", "jpg"),
    ],
)
def test_what_an_option_may_not_be_is_said_with_what_it_is(tmp_path, name, value):
    [option] = [option for option in OPTIONS if option.name == name]
    with pytest.raises(BookError) as caught:
        from_conf(tmp_path, **{PREFIX + name: value})
    assert str(caught.value) == (
        f"conf.py: executed_book_{name} is {value!r}\n    → it is {option.means}"
    )


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("rules", "noise,figures", {"noise", "figures"}),
        ("bound", "docs/*,index", ("docs/*", "index")),
        ("cell_seconds", "2.5", 2.5),
        ("memory", "0", 0),
        ("output_limit", "1000", 1000),
    ],
)
def test_an_option_may_be_text_as_a_command_line_gives_it(tmp_path, name, text, value):
    assert getattr(from_conf(tmp_path, **{PREFIX + name: text}), name) == value


def test_pages_of_another_format_are_refused_and_not_left_out(tmp_path):
    formats = {".Rmd": ["jupytext.reads", {"fmt": "Rmd"}], ".ipynb": "a.reader"}
    with pytest.raises(BookError, match=r"\.Rmd in nb_custom_formats .*; only"):
        from_conf(tmp_path, nb_custom_formats=formats)


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        ({"nb_execution_timeout": 20}, 20.0),
        ({"nb_execution_timeout": 0}, math.inf),
        ({"nb_execution_timeout": 20, "executed_book_cell_seconds": 7}, 7),
    ],
)
def test_a_limit_of_myst_nb_holds_unless_ours_is_set(tmp_path, options, seconds):
    assert from_conf(tmp_path, **options).cell_seconds == seconds


@pytest.mark.parametrize("mode", ["offf", "OFF", True, False])
def test_another_mode_than_those_of_myst_nb_is_refused(tmp_path, mode):
    with pytest.raises(BookError, match=r"nb_execution_mode is .*\n.*one of off, auto"):
        from_conf(tmp_path, nb_execution_mode=mode)


@pytest.mark.parametrize("patterns", [["[z-a]"], [3], 3])
@pytest.mark.parametrize(
    "name", ["include_patterns", "exclude_patterns", "nb_execution_excludepatterns"]
)
def test_a_pattern_that_is_none_is_refused(tmp_path, name, patterns):
    with pytest.raises(BookError, match=rf"conf.py: {name} is .*\n.*list of patterns"):
        from_conf(tmp_path, **{name: patterns})
