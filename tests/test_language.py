"""The check of the wording finds each phrase in prose, and only there."""

import pytest

from tests import language

USES = {
    "is told by": "The kernel is told by its name.",
    "the one that": "Take the one that fits.",
    "such are": "Such are loops.",
    "makes of": "See what XLA makes\nof it.",
    "is none": "A list is none.",
    "as XML has it": "A page as XML has it.",
    "stands below": "The number stands\nbelow the cell.",
    "number type": "Its number type is float32.",
    "handed over": "The array is handed over.",
    "Mend": "Mend it.",
}
MARKDOWN = """\
# Title

The check `is none` of {term}`ours <the one that>`.

```{code-cell}
such are the  # the one that
```

PROSE

```{glossary}
term
  A meaning.
```
"""
PYTHON = '''\
"""A module."""

x = "the one that"  # text is not read
# PROSE


def f():
    """A function, of which
    INSIDE
    """
    return """The number stands below."""
'''


def found(text: str, markdown: bool = True) -> list[tuple[int, str]]:
    found = language.problems(text, markdown=markdown)
    return [(line, said.split(": ")[0]) for line, said in found]


def test_each_phrase_has_a_use():
    assert len(USES) == len(language.PHRASES)


@pytest.mark.parametrize("words", USES)
def test_a_phrase_is_found(words: str):
    use = USES[words]
    (line, said), *others = found(MARKDOWN.replace("PROSE", use))
    assert not others
    assert said.lower() == repr(words).lower()
    assert line == 9

    comment = PYTHON.replace("PROSE", use.replace("\n", "\n# "))
    assert [line for line, _ in found(comment, False)] == [4]
    docstring = PYTHON.replace("INSIDE", use.replace("\n", "\n    "))
    assert [line for line, _ in found(docstring, False)] == [9]


def test_right_uses_are_not_found():
    for right in (
        "Two cells are told apart.",
        "None where there is none, and `x` is None.",
        "A tracer stands in for a value.",
        "The amendment is commended.",
        "what it makes\n\nof it",
    ):
        assert not found(MARKDOWN.replace("PROSE", right)), right
    assert not found(PYTHON, False)


def test_the_glossary_is_read():
    text = MARKDOWN.replace("A meaning.", "The one that means it.")
    assert found(text) == [(13, "'The one that'")]


def test_the_command_names_the_place(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(language, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("A book.\n")
    assert language.main() == 0
    (tmp_path / "docs" / "page.md").write_text("Fix it.\n\nMend it.\n")
    assert language.main() == 1
    assert capsys.readouterr().out == "docs/page.md:3: 'Mend': 'fix' or 'correct'\n"
