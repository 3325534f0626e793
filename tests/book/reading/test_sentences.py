"""Sentences, the checks that they name, and which of them claim something of all."""

from pathlib import Path

import pytest

from executed_book.model import Sentence
from executed_book.reading.markdown import running_text, stretches
from executed_book.reading.sentences import SentenceReader, check_prose


def read(text: str, **options: list[str]) -> list[Sentence]:
    asked = {name: frozenset(said) for name, said in options.items()}
    reader = SentenceReader(Path("page.md"), **asked)
    found = reader.read(stretches(text))
    assert reader.errors == []
    return list(found)


def texts(text: str) -> list[tuple[int, str]]:
    return [(s.line, s.text) for s in read(text)]


def universal(text: str) -> list[str]:
    return [s.text for s in read(text) if s.is_universal]


def test_sentences_end_at_their_marks_and_have_their_lines():
    text = 'One. Two (e.g. this)! Is it three?\nFour goes\non. "Five." Six\n'
    assert texts(text) == [
        (1, "One."),
        (1, "Two (e.g. this)!"),
        (1, "Is it three?"),
        (2, "Four goes on."),
        (3, '"Five."'),
        (3, "Six"),
    ]


def test_no_sentence_ends_in_code_or_math_or_a_link():
    said = [(1, "It is a. b and $x. y$ so."), (1, "Two.")]
    assert texts("It is `a. b` and $x. y$ so. Two.\n") == said
    text = "See `a. b` and $x. y$ at [a](http://x.dev/a. b) now. Two.\n"
    assert texts(text)[-1] == (1, "Two.")


def test_a_mark_belongs_to_the_sentence_before_it():
    text = (
        "A. {check}`a, b-c` B {check}`d`. C {no-check}`title`. `` {check}`e` `` is.\n"
    )
    assert [(s.text, s.checks, s.exempt) for s in read(text)] == [
        ("A.", ("a", "b-c"), None),
        ("B.", ("d",), None),
        ("C.", (), "title"),
        ("{check}`e` is.", (), None),  # what is code is no mark
    ]


def test_the_check_at_the_end_of_a_paragraph_vouches_for_all_of_it():
    found = read("It never. {check}`a` Never\nraises. Two. {check}`b`\n\nNever.\n")
    assert [s.checks for s in found] == [("a",), (), ("b",), ()]
    assert [s.vouched for s in found] == [("b",), ("b",), ("b",), ()]
    assert [s.is_bound for s in found] == [True, True, True, False]
    # One within a paragraph vouches for its own sentence alone.
    found = read("It never copies. One. {check}`a` It never raises.\n")
    assert [s.is_bound for s in found] == [False, True, False]


def test_a_reason_that_is_none_is_told_at_its_line():
    reader = SentenceReader(Path("page.md"))
    reader.read(stretches("A.\n\nB\nc. {no-check}`obvious`\n", 5))
    [error] = reader.errors
    assert error.line == 7
    assert error.message == "{no-check}`obvious` is not understood"
    assert "definition, instruction, title" in error.hint


@pytest.mark.parametrize(
    "text",
    [
        "Every array has a dtype.",
        "It never copies.",
        "Nothing changes.",
        "You must use a key once.",
        "It can't run.",
        "There is no list.",
        "Whatever you do, it stands.",
        "This is *all* of it.",
    ],
)
def test_universal_sentences(text):
    assert len(universal(text + "\n")) == 1


@pytest.mark.parametrize(
    "text",
    [
        "An array has a dtype.",
        "Does it never copy?",
        "It calls `all` and {func}`every`.",
        "The all-reduce is fast.",
        "Say yes or no.",
        "$\\forall x$, some hold.",
        "[every](x.md#all)",
    ],
)
def test_sentences_of_some_only(text):
    assert universal(text + "\n") == []


def test_headings_tables_heads_and_links_claim_nothing():
    page = (
        "# Every one\n\nTerm\n: All of it.\n\n"
        "| all | none |\n|---|---|\n| every | x |\n\n[All of it](a.md)\n"
    )
    assert universal(page) == ["All of it.", "every"]


def test_directives_are_read_but_for_literal_ones():
    page = (
        "```{note} Every title\nAll of it.\n```\n\n"
        "```{code-block} python\nAll.\n```\n\n"
        "```{admonition} Try\nUse a key.\n```\n\n"
        "```{glossary}\nterm\n  Every one.\n```\n"
    )
    said = read(page)
    assert [s.text for s in said if s.is_universal] == ["All of it."]
    assert "Use a key." in [s.text for s in said]
    assert "All." not in [s.text for s in said]


def test_sections_that_ask_claim_nothing_until_they_end():
    page = (
        "## Tasks\n\nUse every key.\n\n### One\n\nEach of them.\n\n"
        "## After\n\nAll of it.\n\n### Tasks\n\nNone.\n\n### Then\n\nNothing.\n"
    )
    found = read(page, asking=["Tasks"])
    assert [s.text for s in found if s.is_universal] == ["All of it.", "Nothing."]


def test_lists_below_some_titles_are_claims():
    page = (
        "# A\n\n- zero\n\n## Keep `this`\n\n- One. Two.\n\n  - inner\n- Three\n\nEnd.\n"
        "\n1. Four\n"
    )
    found = read(page, under=["Keep this"])
    claims = [(text, 7) for text in ("One.", "Two.", "inner", "Three")]
    assert [(s.text, s.claim) for s in found if s.claim] == [*claims, ("Four", 14)]


def test_the_check_at_the_end_of_a_claim_vouches_for_all_of_it():
    page = (
        "# Keep\n\n- It never copies.\n- Only one. {check}`own`\n- All.\n{end}\n"
        "\nNever.\n\n- Nothing.\n"
    )
    _, *found = read(page.replace("{end}", ""), under=["Keep"])
    assert [s.is_bound for s in found] == [False, True, False, False, False]
    _, *found = read(page.replace("{end}", "  {check}`a, b`"), under=["Keep"])
    assert [s.is_bound for s in found] == [True, True, True, False, False]
    assert found[0].vouched == found[2].checks == ("a", "b")


def test_paragraphs_after_some_words_are_one_claim_of_their_section():
    page = (
        "# A\n\n**Cause.** It is so.\n\n**Other.** Not.\n\n**Fix.** Never. {check}`a`\n"
        "\n## B\n\n**Cause.** Only.\n"
    )
    found = read(page, after=["Cause.", "Fix."])
    assert [(s.text, s.claim, s.vouched) for s in found if s.text not in "AB"] == [
        ("It is so.", 3, ("a",)),
        ("Other.", None, ()),
        ("Not.", None, ()),
        ("Never.", 3, ("a",)),
        ("Only.", 11, ()),
    ]


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("{doc}`the page <a/b>`", "the page"),
        ("{term}`leaf`", "leaf"),
        ("is {value}`x + 1` and {measured}`t`", "is … and …"),
        ("[JAX](https://jax.dev) *is* **fast**", "JAX is fast"),
        ("`a*b*c` and 2 * 3", "a*b*c and 2 * 3"),
    ],
)
def test_a_sentence_as_a_reader_sees_it(text, seen):
    assert texts(text + "\n") == [(1, seen)]


def test_the_title_of_a_section_lasts_over_cells():
    page = "# Keep\n\n```{code-cell}\nx\n```\n\n- one\n"
    assert [s.claim for s in read(page, under=["Keep"])] == [None, 7]


def typed(text: str) -> list[tuple[int, str]]:
    return [
        (error.line, error.message.rsplit(": ", 1)[1])
        for error in check_prose(Path("page.md"), running_text(text))
    ]


@pytest.mark.parametrize(
    "text",
    [
        "It is 3.2× faster.",
        "It took 12 ms.",
        "It took 12ms.",
        "About 40 µs a call",
        "ran in 0.5 s, then stopped",
        "uses 16.5 MB",
        "moves 4.3 TB/s",
        "is 5 times slower",
        "was 20 % faster",
        "a 10-fold gain",
        "between 40-50 seconds",
    ],
)
def test_a_bare_measured_number_is_typed(text):
    assert len(typed(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "It is at least five times faster.",
        "It is {measured}`ratio:.1f` times faster.",
        "It took {measured}`1e3 * t:.1f` ms.",
        "The call `sleep(12) s` waits.",
        "Split into 3 keys, 32 bits each, of shape 10x10.",
        "$12 s + 3$",
        "Python 3.13 supports this; chapter 4 says more.",
        "[a talk](https://example.org/12 ms)",
        "On 1000 points the curves agree.",
    ],
)
def test_other_numbers_are_left_alone(text):
    assert typed(text) == []


def test_code_is_not_prose_but_admonitions_are():
    text = """\
---
title: 12 ms
---

```{code-cell}
x = "12 ms"
```

:::{note}
It took 13 ms.

```python
y = "14 ms"
```

It took 15 ms.
:::

It took 16 ms.
"""
    assert typed(text) == [(10, "'13 ms'"), (16, "'15 ms'"), (19, "'16 ms'")]
