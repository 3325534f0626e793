"""Sentences that name their checks: what is refused, what is counted, what is shown."""

import json
import re
from pathlib import Path

import pytest

from executed_book.checking.receipts import (
    check_failing,
    count_claims,
    in_words,
    unbound,
)
from executed_book.model import Cell, Sentence
from executed_book.reading.chapters import Reading, read_page
from executed_book.running.store import Store
from executed_book.settings import Settings

from ..conftest import FRONT
from ..made import chapter

PAGE = """
```{code-cell}
import numpy as np
squares = np.arange(5) ** 2
```

Every square is a sum of odd numbers. {check}`odd`

```{code-cell}
:tags: [check]
:check: odd
assert (squares[1:] == np.arange(1, 9, 2).cumsum()).all()
```

## What to remember

- Squares grow. {check}`odd`
"""


def write(book, text):
    book.page("squares", f"{FRONT}# Squares\n{text}")
    book.index("squares")


def refusal(book, text):
    write(book, text)
    return book.refused("execute")


def line_of(book, words):
    text = (book.root / "docs" / "squares.md").read_text()
    return text[: text.index(words)].count("\n") + 1


def test_each_mark_that_is_wrong_is_told_at_its_line(book):
    text = PAGE.replace("numbers. {check}`odd`", "numbers. {check}`od`")
    text += "\nA set is all of it. {no-check}`obvious`\n"
    for check, code in (
        ("odd", "assert squares[0] == 0"),
        ("Odd ones", "assert squares[0] == 0"),
        ("nothing", "print(squares)"),
        ("label", "label = 'odd'\nassert label == 'odd'"),
        ('raises\n:raises: "KeyError: 7"', "squares[7]"),
    ):
        text += f"\n```{{code-cell}}\n:check: {check}\n{code}\n```\n"
    text += "\nIt raises. {check}`raises`\n"
    book.page("plain", "# Tiny\n\nAll is well. {check}`odd`\n")
    output = refusal(book, text)
    for words, said in (
        ("Every square", "no check of this page is called 'od': “Every square is a"),
        ("A set is", "{no-check}`obvious` is not understood"),
        ("assert squares[0]", "a second check is called 'odd'"),
        ("```{code-cell}\n:check: Odd", "option 'check' is 'Odd ones'"),
        ("print(", "cell 5 is a check, and nothing in it can fail"),
        ("assert label", "this assertion holds whatever the libraries do: assert"),
        ("squares[7]", "cell 7 announces 'KeyError: 7' and raises another"),
    ):
        assert f"squares.md:{line_of(book, words)}: {said}" in output
    assert "did you mean 'odd'?" in output
    assert "the first is cell 2" in output
    assert "“It raises.”" in output
    assert "plain.md:3: no check of this page is called 'odd'" in output


def test_a_check_may_announce_a_failure_and_rules_may_be_left_out(book):
    text = PAGE.replace("assert (", "label = 'odd'\nassert label == 'odd'\nassert (")
    raises = ':check: seven\n:raises: "IndexError: out of bounds"\nsquares[7]'
    write(book, f"{text}\n```{{code-cell}}\n{raises}\n```\n")
    book.configure('executed_book_rules = ["noise"]')
    book.executed()


def test_a_check_that_fails_names_its_sentences(book):
    output = refusal(book, PAGE.replace("cumsum()", "cumsum() + 1"))
    for words, line, said in (
        ("assert (", "squares.md:{}: ", "cell 2 raised AssertionError"),
        ("Every square", "line {}, ", "“Every square is a sum of odd numbers.”"),
        ("- Squares grow", "line {}, ", "“Squares grow.”"),
    ):
        assert line.format(line_of(book, words)) + said in output


LOOSE = """
A number has only one square.
A ring is a set with two operations, all of it. {no-check}`definition`
Is every one of them odd? `all(x)` and {term}`every` are code.

## What to remember

- Squares of halves are quarters.
"""

CLAIMS = 'executed_book_claims = {"under": ["What to remember"]}'


def test_unbound_claims_are_listed_and_counted(book):
    write(book, PAGE + LOOSE)
    book.configure(CLAIMS)
    terms = "```{glossary}\nevery\n  All of it.\n```\n"
    book.page("terms", f":orphan:\n\n# Terms\n\n{terms}")
    output = book.done("claims")
    one, half = line_of(book, "A number has"), line_of(book, "- Squares of halves")
    sentence = f"docs/squares.md:{one}: no check holds this sentence:"
    line = f"docs/squares.md:{half}: no check holds this line:"
    assert re.findall("^docs.*", output, re.M) == [
        f"{sentence} “A number has only one square.”",
        f"{line} “Squares of halves are quarters.”",
    ]
    assert "2 sentences with 1 check; 1 of 2 universal ones have one" in output
    # Pages that are the same are not read again, and say the same.
    assert book.run("claims")[1].splitlines()[-1] == output.splitlines()[-1]


def test_unbound_claims_are_errors_on_pages_that_are_bound(book):
    write(book, PAGE + LOOSE)
    book.configure(CLAIMS, 'executed_book_bound = ["squ*"]')
    output = book.refused("execute")
    line = line_of(book, "A number has")
    assert f"squares.md:{line}: no check holds this sentence" in output
    assert "{no-check}`definition`" in output


def test_marks_in_a_notebook_are_read(tmp_path):
    cell = {"cell_type": "markdown", "source": "One.\n\nAll. {check}`a`"}
    plain = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}
    page = tmp_path / "page.ipynb"
    page.write_text(json.dumps(plain, indent=1))
    reading = read_page(page, Settings(tmp_path, tmp_path))
    assert [s.checks for s in reading.sentences] == [(), ("a",)]
    assert reading.sentences[1].line == reading.sentences[0].line + 2


def test_pages_quote_the_counts_and_follow_them(book):
    text = "# Tiny\n\n{receipts}`sentences` sentences.\n\n```{toctree}\nsquares\n```\n"
    write(book, PAGE)
    book.page("index", text)
    book.built()
    assert '<span class="value">2</span> sentences' in book.html("index")
    more = "The first is zero. {check}`odd`\n" * 998
    book.page("squares", f"{FRONT}# S\n{PAGE}\n{more}")
    book.built()
    assert '<span class="value">1,000</span> sentences' in book.html("index")
    book.page("index", text.replace("`sentences`", "`words`") + "\nIt is {value}`x`.\n")
    book.page("unread", ":orphan:\n\n# U\n\nIt is. {no-check}`obvious`\n")
    output = book.refused("build", "-Dnb_execution_excludepatterns=unread.md")
    assert "'obvious' is not one of definition, instruction, title" in output
    assert "'words' is no count: there are sentences, checks" in output
    assert "index.md:9: " in output
    assert "'x' was not computed: values belong in the" in output


def page(*sentences, cells=(), text="one"):
    made = chapter(*cells, sentences=sentences)
    settings = Settings(Path("docs"), Path("kept"))
    return Reading(Path(f"docs/{text}.md"), settings, made, sentences)


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"check": "a"}, 1),
        ({"tags": frozenset({"check"})}, 1),
        ({"check": "a", "raises": "E: a"}, 0),
        ({"check": "a", "warns": "W"}, 0),
        ({"check": "a", "is_skipped": True}, 0),
        ({}, 0),
    ],
)
def test_a_check_holds_something(tmp_path, fields, count):
    made, store = (
        page(cells=(Cell(1, "x = 1", 5, **fields),)),
        Store(tmp_path, tmp_path),
    )
    nothing = [(5, "cell 1 is a check, and nothing in it can fail")] * count
    for _ in range(2):  # what is kept is what was found
        assert [(e.line, e.message) for e in check_failing(made, store)] == nothing


def test_what_was_found_is_kept_until_a_cell_changes(tmp_path, monkeypatch):
    store = Store(tmp_path, tmp_path)
    first = page(cells=(Cell(1, "assert True", 5, check="a"),))
    assert len(list(check_failing(first, store))) == 1
    asked = []

    def noting(sources):
        asked.append(sources)
        return [[] for _ in sources]

    monkeypatch.setattr("executed_book.checking.failing.assertions", noting)
    assert len(list(check_failing(first, store))) == 1
    assert asked == []
    list(check_failing(page(cells=(Cell(1, "assert x", 5, check="a"),)), store))
    assert asked == [["assert x"]]


def test_sentences_and_lines_that_name_no_check():
    made = page(
        Sentence("All of it.", 1, is_universal=True),
        Sentence("All of that.", 2, ("a",), is_universal=True),
        Sentence("All is x.", 3, exempt="definition", is_universal=True),
        Sentence("A line.", 5, claim=5),
        Sentence("Its end.", 6, claim=5),
        Sentence("Another.", 7, claim=7),
        Sentence("And its check.", 8, ("a",), claim=7),
        Sentence("All in a line.", 9, is_universal=True, claim=9),
        Sentence("One.", 10, vouched=("a",), claim=10),
        Sentence("The last of a list.", 11, ("a",), vouched=("a",), claim=10),
        Sentence("Checked by itself.", 12, ("a",), claim=12),
        Sentence("Left out.", 13, claim=12),
    )
    assert [(e.line, e.message) for e in unbound(made)] == [
        (1, "no check holds this sentence: “All of it.”"),
        (9, "no check holds this sentence: “All in a line.”"),
        (5, "no check holds this line: “A line.”"),
        (7, "no check holds this line: “Another.”"),
        (13, "no check holds this line: “Left out.”"),
    ]


def test_counts_of_a_page_and_of_a_book():
    made = page(
        Sentence("A.", 1, ("a", "b")),
        Sentence("B.", 2, ("a",), is_universal=True),
        Sentence("C.", 3, is_universal=True),
        Sentence("D.", 4, exempt="title", is_universal=True),
    )
    counts = count_claims(made)
    assert counts == {"sentences": 2, "checks": 2, "universal": 2, "universal-bound": 1}
    told = "4 sentences with 4 checks; 2 of 4 universal ones have one"
    assert in_words(counts + counts) == told


@pytest.mark.parametrize(
    "code",
    ["if False:\n    assert squares[0]", "def check():\n    assert squares[0]"],
)
def test_a_check_whose_assertions_do_not_run_is_refused(book, code):
    old = "assert (squares[1:] == np.arange(1, 9, 2).cumsum()).all()"
    said = refusal(book, PAGE.replace(old, code))
    line = line_of(book, "assert squares[0]")
    what = "cell 2 is a check, and this run reaches none of its assertions"
    assert f"docs/squares.md:{line}: {what}" in said
    assert said.count("    → ") == 1
