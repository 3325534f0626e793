"""A MyST page is taken apart as MyST's own parser reads it."""

import pytest

from executed_book.reading.markdown import SPAN, running_text, stretches


def apart(text: str, first: int = 1) -> list[tuple[str, str, int]]:
    return [(s.kind, s.text, s.line) for s in stretches(text, first)]


def test_lines_are_the_files():
    page = "\nOne.\n\n```{code-cell} ipython3\nx\n```\n\n\nTwo.\n"
    assert apart(page, first=10) == [
        ("markdown", "One.", 11),
        ("code", "x", 14),
        ("markdown", "Two.", 18),
    ]
    assert [s.fence for s in stretches(page, 10)] == [0, 13, 0]


@pytest.mark.parametrize("mark", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_what_ends_lines_elsewhere_ends_none_of_a_page(mark):
    cells = f"\n\n```{{code-cell}}\nx = '{mark}'\n```\n\n```{{code-cell}}\n:alt: A\n"
    assert apart(f"A{mark}b.{cells}\ny = '{mark}'\n```\nC.\n") == [
        ("markdown", f"A{mark}b.", 1),
        ("code", f"x = '{mark}'", 4),
        ("code", f"y = '{mark}'", 10),
        ("markdown", "C.", 12),
    ]


def test_only_a_fence_of_its_own_is_a_cell():
    inside = "- item\n\n  ```{code-cell}\n  x\n  ```\n"
    quoted = "````markdown\n```{code-cell}\nx\n```\n````\n"
    assert [kind for kind, *_ in apart(inside)] == ["markdown"]
    assert [kind for kind, *_ in apart(quoted)] == ["markdown"]
    assert [kind for kind, *_ in apart("```{raw-cell}\nx\n```\n")] == ["raw"]


def test_a_block_break_divides_the_text():
    divided = [("markdown", "A.", 1), ("markdown", "B.", 5)]
    assert apart("A.\n\n+++ {}\n\nB.\n") == divided


@pytest.mark.parametrize(
    ("content", "options", "source", "line"),
    [
        (":tags: [check]\n:alt: A\n\nx", {"tags": ["check"], "alt": "A"}, "x", 5),
        ("---\ntags: [check]\n---\nx", {"tags": ["check"]}, "x", 5),
        ("\nx", {}, "x", 3),
        ("x = {'a':\n:1}", {}, "x = {'a':\n:1}", 2),
        ("", {}, "", 2),
    ],
)
def test_options_stand_above_the_source(content, options, source, line):
    [cell] = stretches(f"```{{code-cell}}\n{content}\n```\n")
    assert (cell.options, cell.text, cell.complaint) == (options, source, None)
    if source:
        assert cell.line == line


def test_options_that_cannot_be_read_are_kept_as_a_complaint():
    [cell] = stretches("```{code-cell}\n:alt: a: b\nx\n```\n")
    assert "YAML" in cell.complaint


def test_running_text_leaves_out_code_and_keeps_what_directives_say():
    page = (
        "A\nb\n\n```{math}\nx\n```\n\n```{note} Title\n:class: tip\n\nInside.\n```\n\n"
        "```{figure} file.png\nCaption.\n```\n\n```{py:function} f\nSkipped.\n```\n"
    )
    said = [(3, "A"), (4, "b"), (10, "Title"), (13, "Inside."), (17, "Caption.")]
    assert running_text(page, 3) == said


def test_a_cell_of_a_table_has_the_line_of_its_row():
    table = "| a | b |\n|---|---|\n| c | d |\n| e | f |\n"
    assert running_text(table) == list(zip((1, 1, 3, 3, 4, 4), "abcdef", strict=True))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`a`", [(None, "a")]),
        ("{value}`a` and ``b`c``", [("value", "a"), (None, "b`c")]),
        ("`` {value}`x` ``", [(None, " {value}`x` ")]),
        (r"\`a` b", []),
        ("`a\nb`", [(None, "a\nb")]),
        ("`a\n\nb`", []),
        ("{py:func}`f`", [("py:func", "f")]),
    ],
)
def test_a_span_of_code_with_its_role(text, found):
    assert [(s["role"], s["text"]) for s in SPAN.finditer(text)] == found
