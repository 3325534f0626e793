"""Outputs are compared with what is pinned, and accepted by a step of its own."""

import dataclasses

import pytest

from executed_book.checking import stored
from executed_book.checking.pins import check_pins
from executed_book.checking.stored import StoredPage, accepted_page, stored_path
from executed_book.model import Cell, Value, ValueResult

from ..conftest import copy_of, new_book
from ..made import CPU, chapter, executed, gave, printed, shown


@pytest.fixture(scope="module")
def pinned_once(tmp_path_factory):
    book = new_book(tmp_path_factory.mktemp("pinned"))
    (book.root / "outputs" / "cells").mkdir(parents=True)
    book.index("one")
    book.page(
        "one",
        "---\nfile_format: mystnb\n---\n\n# One\n\n"
        "```{code-cell}\nx = 3\nprint('x is', x)\nx / 7\n```\n\n"
        "Twice that is {value}`2 * x`.\n\n"
        '```{code-cell}\n:raises: "ZeroDivisionError: division"\nx / 0\n```\n\n'
        "```{code-cell}\n:tags: [measured]\nimport time\n\nt = time.time()\n"
        "assert t > 0\nprint(t)\n```\n",
    )
    output = book.done("pin")
    assert "+| x is 3" in output, "what is accepted is shown"
    assert "3 cells; " in output
    return book


@pytest.fixture
def pinned(pinned_once, tmp_path):
    return copy_of(pinned_once, tmp_path)


def pins(book):
    return book.stored("one")


def test_pins_read_as_a_session(pinned):
    assert pins(pinned).read_text().partition("\n\n")[2] == (
        ">>> x = 3\n... print('x is', x)\n... x / 7\n"
        "| x is 3\n| 0.42857142857142855\n| {value} 2 * x = 6\n\n"
        ">>> x / 0\n| ZeroDivisionError: division by zero\n\n"
        ">>> import time\n...\n... t = time.time()\n... assert t > 0\n... print(t)\n"
        "~\n\n# end\n"
    )


def test_what_differs_fails_at_its_line(pinned):
    text = pins(pinned).read_text()
    for old, new in (
        *(("x is 3", "x is 4"), ("0.428571", "0.438571"), ("x = 6", "x = 7")),
        *(("by zero", "by nothing"), ("print(t)\n~", "print(t)\n| 4")),
    ):
        assert old in text
        text = text.replace(old, new)
    pins(pinned).write_text(text)
    pinned.chapter("two", "1")
    output = pinned.refused("execute")
    assert "docs/two.md:1: the chapter's outputs are not pinned" in output
    for line, words in (
        (8, "expected | x is 4 & got      | x is 3 & | 0.43857 & | {value} 2 * x = 7"),
        (17, "expected | ZeroDivisionError: division by nothing"),
        (22, "marked as varying & executed_book pin"),
    ):
        said = output.partition(f"docs/one.md:{line}: ")[2].partition("docs/")[0]
        assert [word for word in words.split(" & ") if word not in said] == []


def pin(source: str, text: str = "", varies: bool = False) -> stored.StoredCell:
    return stored.StoredCell(source, (stored.Part(text),) if text else (), varies)


def told(folder, made, *results, pinned=(), spoilt=()):
    page = pinned if isinstance(pinned, StoredPage) else StoredPage(CPU, tuple(pinned))
    stored.write_page(page, stored_path(folder, CPU.jax, "one"))
    errors = check_pins(executed(made, *results), folder, spoilt)
    return [f"{error.line}: {error.message}" for error in errors]


@pytest.mark.parametrize(
    "source",
    ["", "x = 1  \ny", "if x:\n    \n    y", "x\x0c\ny", "\n\nx\n", "'''a\n\nb'''"],
)
def test_any_source_can_be_pinned(tmp_path, source):
    made = chapter(source)
    page = accepted_page(executed(made, gave(shown("1"))))
    assert told(tmp_path, made, gave(shown("1")), pinned=page) == []


@pytest.mark.parametrize(
    "output", ["a\rb", "a\n\n\nb", "  a", "| a", "~", "\x0c", "\n>>> x\n# end"]
)
def test_any_output_can_be_pinned(tmp_path, output):
    made, result = chapter("x"), gave(printed(output))
    page = accepted_page(executed(made, result))
    assert told(tmp_path, made, result, pinned=page) == []
    other = gave(printed(output + "other"))
    assert len(told(tmp_path, made, other, pinned=page)) == 1


def test_what_varies_is_pinned_without_its_output(tmp_path):
    varies = Cell(1, "x", 5, tags=frozenset({"measured"}))
    page = accepted_page(executed(chapter(varies), gave(shown("1"))))
    assert page.cells == (pin("x", varies=True),)
    quoted = Cell(1, "x", 5, tags=varies.tags, values=(Value("value", "n", 9),))
    result = gave(shown("1"), values=(ValueResult("3"),))
    page = accepted_page(executed(chapter(quoted), result))
    assert page.cells == (pin("x", "{value} n = 3"),)


def test_cells_that_are_gone_are_told_once_nothing_else_is(tmp_path):
    pins = [pin("x", "1"), pin("gone", "2")]
    run = chapter("x"), gave(shown("1"))
    said = "1: 1 pinned cells are no longer on the page"
    assert told(tmp_path, *run, pinned=pins) == [said]
    changed = chapter("y"), gave(shown("1"))
    said = "10: cell 1 is new or has changed since its output was pinned"
    assert told(tmp_path, *changed, pinned=pins) == [said]


def test_cells_that_failed_or_did_not_run_are_not_compared(tmp_path):
    run = chapter("x", "y"), gave(shown("7")), gave(shown("2"))
    pins = [pin("x", "1"), pin("y", "2")]
    assert len(told(tmp_path, *run, pinned=pins)) == 1
    assert told(tmp_path, *run, pinned=pins, spoilt={1}) == []
    assert told(tmp_path, chapter("x", "y"), gave(shown("1")), pinned=pins) == []


@pytest.mark.parametrize(
    ("accepted", "compared"),
    [
        ({"0.9.2": "9"}, "9"),
        ({"0.9.2": "9", "0.10.0": "10"}, "10"),
        ({CPU.jax: "own", "0.99": "99"}, "own"),
    ],
    ids=["the only one", "the newest", "of the same JAX"],
)
def test_which_accepted_outputs_are_compared(tmp_path, accepted, compared):
    for jax, text in accepted.items():
        page = StoredPage(dataclasses.replace(CPU, jax=jax), (pin("x", text),))
        stored.write_page(page, stored_path(tmp_path, jax, "one"))
    newer = dataclasses.replace(CPU, jax="0.999", date="2001-02-03")
    recorded = StoredPage(newer, (pin("x", "other"),))
    stored.write_page(recorded, stored_path(tmp_path, "0.999", "one"))
    for text, count in ((compared, 0), ("1", 1)):
        ran = executed(chapter("x"), gave(shown(text)))
        assert len(list(check_pins(ran, tmp_path))) == count


def test_a_file_that_was_cut_is_named(tmp_path):
    path = stored_path(tmp_path, CPU.jax, "one")
    path.parent.mkdir()
    text = stored.outputs_text(StoredPage(CPU, (pin("x", "1"), pin("y", "2"))))
    older = stored_path(tmp_path, "0.0.1", "one")
    older.parent.mkdir()
    older.write_text(text)
    cut = text[: text.index(">>> y")]
    words = {cut: "its last line is not '# end': it has been cut", "": "", "\0\xff": ""}
    for damaged in words:
        path.write_text(damaged, "latin-1")
        [error] = check_pins(executed(chapter("x", "y"), gave(), gave()), tmp_path)
        assert error.path == path
        assert error.message.endswith(words[damaged])
