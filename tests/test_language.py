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
    assert language.main([]) == 0
    (tmp_path / "docs" / "page.md").write_text("Fix it.\n\nMend it.\n")
    assert language.main([]) == 1
    assert capsys.readouterr().out == "docs/page.md:3: 'Mend': 'fix' or 'correct'\n"


MESSAGES = '''\
"""A module that says: such are docstrings."""

NAME: int = 1
"""Such are the words that describe a name."""


def f(x):
    raise ValueError(
        f"{x} and such are"
        " the values"
    )
'''


def test_messages_are_read_where_asked():
    said = language.problems(MESSAGES, markdown=False, messages=True)
    assert [line for line, _ in said] == [1, 9]
    assert [line for line, _ in language.problems(MESSAGES, markdown=False)] == [1]


BRACKETS, OF, SO = language.COUNTS


def places(text: str, markdown: bool = True) -> dict[str, list[int]]:
    page = language.counted("page", text, markdown=markdown)
    lines = {c: [int(p.split(":")[1]) for p in page.found[c]] for c in page.found}
    return {count: found for count, found in lines.items() if found}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("It fits. (A tracer has a shape,\nso this works.)", BRACKETS),
        ("It fits. (`jit` prints {doc}`too </a>`.)", BRACKETS),
        ("It fits (`jit` prints (a line) too. It may not)", BRACKETS),
        ("It fits. (*Why?*)", BRACKETS),
        ("- The loss is that\n  of the cup.", OF),
        ("Those of the cup.", OF),
        ("So it fits.", SO),
        ("It is so. So\nit fits.", SO),
        (":::{note} Title\n:class: x\n\n**So** it fits.\n:::", SO),
    ],
)
def test_each_count_finds_its_kind(text: str, count: str):
    found = places(f"# Title\n\n{text}\n")
    assert list(found) == [count]
    assert len(found[count]) == 1


def test_a_count_names_the_line():
    assert places("---\na: 1\n---\n\n% So\n\nOne\ntwo. So three.\n") == {SO: [8]}


def test_counts_leave_the_rest_alone():
    for right in (
        "A call (of `f(x)`) fits (see *Title*), e.g. (a. b) and (e.g. this).",
        "A link [leads](https://A.B/So) here [too](A.).",
        "So far it fits, and the So-called x.",
        "# So\n\n## (A sentence.) That of\n\n`So (A.) that of`\n\n    ",
        ":::{grid-item-card} So\n:link: So\n\nWords.\n:::",
        "```{code-cell}\n# So (A sentence.) those of\n```",
        "Words.\n\n% So (A sentence.) that of\n",
    ):
        assert not places(right), right


def test_messages_are_counted_and_comments_are_not():
    assert places("# So it is that of x\nx = 'So it was not found.'\n", False) == {
        SO: [2]
    }
    assert not places("x = 'So'\ny = f'{x} So'\n", False)  # too short to be a message


def test_a_page_has_its_limit_and_so_have_all_together(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(language, "ROOT", tmp_path)
    monkeypatch.setattr(language, "LIMITED", ("docs/*.md", "src/*"))
    (tmp_path / "docs").mkdir()
    once, twice, long = "So it is.\n", "So it is.\n\nSo it is.\n", "word " * 12_000
    (tmp_path / "docs" / "a.md").write_text(once)
    assert language.main([]) == 0
    (tmp_path / "docs" / "b.md").write_text(once)
    assert language.main([]) == 1
    assert capsys.readouterr().out.startswith(f"docs/*.md together: 2 {SO} in 6 words")
    (tmp_path / "docs" / "b.md").write_text(long)
    (tmp_path / "docs" / "a.md").write_text(twice)
    assert language.main([]) == 1
    assert capsys.readouterr().out.startswith(f"docs/a.md: 2 {SO} in 6 words")
    (tmp_path / "docs" / "b.md").write_text(long + twice)
    (tmp_path / "docs" / "a.md").write_text("It is.\n")
    assert language.main([]) == 0

    (tmp_path / "src" / "tool").mkdir(parents=True)
    for name in ("one.py", "two.py"):
        (tmp_path / "src" / "tool" / name).write_text("x = 'So it was not found.'\n")
    assert language.main([]) == 1
    assert capsys.readouterr().out.startswith(f"src/tool: 2 {SO} in 10 words")

    assert language.main(["--counts", "docs/*.md", "src/*"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines if line[0] != " "] == [
        "src/tool", "docs/a.md", "docs/b.md",
    ]  # fmt: skip
    assert "    src/tool/two.py:1: So" in lines


def test_the_limits_reach_what_they_should():
    pages = [page.name for page in language.pages(language.LIMITED)]
    assert {"docs/learn/jit.md", "docs/index.md", "src/justafter"} <= {*pages}
    for pattern in language.LIMITED:
        assert list(language.ROOT.glob(pattern)), pattern
