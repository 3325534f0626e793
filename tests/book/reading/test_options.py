"""What a page and its cells say of themselves."""

import math
from pathlib import Path
from typing import Any

import pytest

from executed_book.errors import PageError
from executed_book.reading.markdown import Stretch
from executed_book.reading.options import (
    cell_options,
    executes,
    front_matter,
    line_of,
    page_options,
)

PAGE = Path("page.md")


def test_front_matter_and_how_many_lines_it_takes():
    text = "---\nfile_format: mystnb\n---  \nText\n"
    assert front_matter(text, PAGE) == ({"file_format": "mystnb"}, 3)
    assert front_matter("---\na: 1\n...\n", PAGE) == ({"a": 1}, 3)
    assert front_matter("---\n---\n", PAGE) == ({}, 2)
    assert front_matter("Text\n---\n", PAGE) == ({}, 0)
    assert front_matter("", PAGE) == ({}, 0)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("---\na: 1\n", 1, "the front matter never ends"),
        ("---\na: 1\nb: [c\n---\n", 3, "broken front matter: expected"),
        ("---\n- a\n---\n", 2, "broken front matter"),
        ("---\na: 2001-99-99\n---\n", 2, "broken front matter: month must be in"),
    ],
)
def test_front_matter_that_cannot_be_read(text, line, message):
    with pytest.raises(PageError) as caught:
        front_matter(text, PAGE)
    assert caught.value.message.startswith(message)
    assert caught.value.line == line
    assert caught.value.hint


@pytest.mark.parametrize(
    ("front", "runs"),
    [
        ({}, False),
        ({"file_format": "mystnb"}, True),
        ({"file_format": "other"}, False),
        ({"jupytext": {"text_representation": {"format_name": "myst"}}}, True),
        ({"jupytext": {"text_representation": {"format_name": "md"}}}, False),
        ({"jupytext": "myst"}, False),
        ({"jupytext": {"text_representation": ["myst"]}}, False),
    ],
)
def test_which_pages_execute(front, runs):
    assert executes(front) is runs


def test_the_line_that_begins_with_a_word():
    text = "a\n  'kernelspec': b\nkernelspec: c\n"
    assert line_of(text, "kernelspec") == 2
    assert line_of(text, "kernel") == 1


LIMITED = {"execution_timeout": 7}


@pytest.mark.parametrize(
    ("metadata", "asked"),
    [
        ({}, {}),
        ({"executed_book": {"limit": 2.5}}, {"limit": 2.5}),
        ({"executed_book": {"platform": "cpu"}}, {"platform": "cpu"}),
        ({"executed_book": {"reads": []}}, {"reads": ()}),
        ({"executed_book": {"reads": ["."]}}, {"reads": (".",)}),
        ({"mystnb": LIMITED}, {"limit": 7}),
        ({"mystnb": {"execution_timeout": -1}}, {"limit": math.inf}),
        ({"executed_book": {"limit": 2}, "mystnb": LIMITED}, {"limit": 2}),
        ({"mystnb": "x"}, {}),
    ],
)
def test_how_a_page_asks_to_be_executed(metadata, asked):
    plain = dict.fromkeys(("limit", "platform", "reads"))
    assert page_options(metadata, "", PAGE) == (plain | asked, [])


LIMITS = [{"limit": limit} for limit in (0, True, "60", 10**400)]


READS = [{"reads": names} for names in ("docs", ["no such file"], [3], {"docs": 1})]


@pytest.mark.parametrize(
    "said", [5, [], *LIMITS, {"limits": 60}, {"platform": "gpu"}, *READS]
)
def test_what_a_page_may_not_ask(said):
    text = "---\nfile_format: mystnb\nexecuted_book: x\n---\n"
    found, [error] = page_options({"executed_book": said}, text, PAGE)
    assert found == {}
    assert error.line == 3
    assert error.hint.startswith("write 'executed_book: {limit: 60}' for the seconds")
    assert error.message == f"front matter 'executed_book: {said}' is not understood"


def test_what_is_asked_of_the_whole_book_says_where():
    text = "---\nmystnb: {execution_in_temp: true}\n---\n"
    found, [error] = page_options({"mystnb": {"execution_in_temp": True}}, text, PAGE)
    assert (found, error.line) == ({}, 2)
    assert error.hint == "write 'nb_execution_in_temp = True' in conf.py"


@pytest.mark.parametrize("mode", ["offf", True, None, 3, ["off"]])
def test_a_mode_that_myst_nb_does_not_have_is_refused(mode):
    text = "---\nfile_format: mystnb\nmystnb: x\n---\n"
    found, [error] = page_options({"mystnb": {"execution_mode": mode}}, text, PAGE)
    assert (found, error.line) == ({}, 3)
    assert error.message == f"'execution_mode' is {mode!r}"
    assert error.hint == "it is one of off, auto, force, cache, inline"


def options(is_strict: bool = True, **said: Any) -> tuple[dict[str, Any], list[str]]:
    stretch = Stretch("code", "x", 5, fence=4, options=said)
    fields, errors = cell_options(stretch, PAGE, is_strict)
    assert all(error.line == 4 for error in errors)
    return fields, [f"{error.message}\n{error.hint}" for error in errors]


def test_options_become_the_fields_of_a_cell():
    fields, errors = options(
        tags=["measured", "raises-exception", "skip-execution"],
        raises="ValueError: no",
        warns="UserWarning",
        alt="A line",
        check="carry-type",
        needs="x, first-step",
    )
    assert errors == []
    assert fields.pop("options")["alt"] == "A line"
    assert fields == {
        "tags": {"measured", "raises-exception", "skip-execution"},
        "raises": "ValueError: no",
        "warns": "UserWarning",
        "alt": "A line",
        "check": "carry-type",
        "needs": ("x", "first-step"),
        "may_raise": True,
        "is_skipped": True,
    }


@pytest.mark.parametrize(
    "tags", ["check, solution", "check solution", ["check", "solution"]]
)
def test_tags_are_a_list_or_words(tags):
    assert options(tags=tags)[0]["tags"] == {"check", "solution"}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"tags": [3]}, "'tags' is [3]"),
        ({"alt": 3}, "option 'alt' is not text\nput it in quotes: :alt: \"3\""),
        ({"raises": "Oh no"}, "option 'raises' is 'Oh no'\nwrite it as :raises: "),
        ({"raises": "KeyError: "}, "option 'raises' is 'KeyError: '"),
        ({"warns": "Oh no"}, "option 'warns' is 'Oh no'"),
        ({"check": "Carry"}, "option 'check' is 'Carry'\nname it in small letters"),
        ({"check": "a-"}, "option 'check' is 'a-'"),
    ],
)
def test_what_a_cell_may_not_say(said, words):
    _, [error] = options(**said)
    assert error.startswith(words)


def test_unknown_options_matter_only_where_the_rule_holds():
    fields, errors = options(is_strict=False, tags=["mine", "check"], mine=1)
    assert errors == []
    assert fields["tags"] == {"check"}
