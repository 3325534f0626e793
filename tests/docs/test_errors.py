"""The error index: each message is raised, explained, fixed, and in the finder."""

import re
from dataclasses import dataclass
from itertools import pairwise

import jax
import pytest

from executed_book.checking.stored import accepted_path
from executed_book.model import Cell

from .conftest import DOCS, ROOT, chapters, docnames

FOLDER = "errors/"
FINDER = DOCS / "errors" / "index.md"

#: In the place of a class where JAX raises and warns nothing, but writes to its log.
LOGGED = "WARNING"

_HEADING = re.compile(r"## (?P<name>\w+): (?P<words>.+)")
_ROW = re.compile(
    r"\| \[(?P<words>.+)\]\((?P<page>[\w-]+)\.md#\S+\) \| `(?P<name>\w+)` \|"
)
_KIND = re.compile(r"\| `(?P<name>\w+)` \| `(?P<base>\w+)` \|")


@dataclass(frozen=True)
class Entry:
    """One message: its page, what its heading announces, its text and its cells."""

    page: str
    name: str
    words: str
    line: int
    text: str
    cells: tuple[Cell, ...]

    @property
    def place(self) -> str:
        return f"docs/{FOLDER}{self.page}.md:{self.line}"

    @property
    def row(self) -> tuple[str, str, str]:
        return self.words, self.page, self.name


def found_entries() -> list[Entry]:
    entries = []
    for chapter in chapters(FOLDER):
        lines = chapter.text.splitlines()
        starts = [i for i, line in enumerate(lines) if line.startswith("## ")]
        for start, end in pairwise([*starts, len(lines)]):
            heading = _HEADING.fullmatch(lines[start])
            assert heading, f"{chapter.path}:{start + 1}: no 'Class: words'"
            entries.append(
                Entry(
                    page=chapter.docname.removeprefix(FOLDER),
                    name=heading["name"],
                    words=plain(heading["words"]),
                    line=start + 1,
                    text="\n".join(lines[start:end]),
                    cells=tuple(c for c in chapter.cells if start < c.line <= end),
                )
            )
    return entries


def plain(markdown: str) -> str:
    return re.sub(r"\\(.)", r"\1", markdown).replace("`", "")


ENTRIES = found_entries()


def test_the_finder_lists_every_entry_and_no_other():
    rows = [_ROW.fullmatch(line) for line in FINDER.read_text().splitlines()]
    listed = [(plain(r["words"]), r["page"], r["name"]) for r in rows if r]
    assert sorted(listed) == sorted(entry.row for entry in ENTRIES)
    words = [re.sub(r"[^a-z0-9 ]", "", row[0].lower()).strip() for row in listed]
    assert words == sorted(words), "the finder is not in alphabetical order"


def test_the_finder_explains_the_documented_classes():
    rows = map(_KIND.match, FINDER.read_text().splitlines())
    kinds = {row["name"]: row["base"] for row in rows if row}
    documented = {k: v for k, v in vars(jax.errors).items() if isinstance(v, type)}
    assert kinds.keys() == documented.keys()
    for name, base in kinds.items():
        bases = {kind.__name__ for kind in documented[name].__mro__[1:]}
        assert base in bases, f"{name} is not a {base}"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.words)
def test_an_entry_raises_its_message_explains_it_and_fixes_it(entry: Entry):
    """A build fails where a cell does not give its pin, or raises no such error."""
    if entry.name == LOGGED:
        pins = accepted_path(ROOT / "outputs" / "cells", FOLDER + entry.page)
        assert entry.words in plain(pins.read_text("utf-8")), entry.place
    else:
        said = entry.cells[0].raises or entry.cells[0].warns or ""
        assert plain(said) == f"{entry.name}: {entry.words}", entry.place
    before, cause, rest = entry.text.partition("\n**Cause.** ")
    assert cause, f"{entry.place}: no cause"
    assert "{code-cell}" in before, f"{entry.place}: the cause comes first"
    told, fix, mended = rest.partition("\n**Fix.** ")
    assert fix, f"{entry.place}: no fix"
    assert len(told.split()) >= 8, f"{entry.place}: the cause is not explained"
    assert "{code-cell}" in mended, f"{entry.place}: the fix is not shown"
    cells = entry.cells[1:]
    assert not any(cell.raises or cell.warns for cell in cells), entry.place
    assert "assert " in cells[-1].source, f"{entry.place}: the fix is not checked"
    links = re.findall(r"\{doc\}`/([\w/-]+)`", entry.text)
    lessons = {name for name in docnames() if not name.startswith(FOLDER)}
    assert lessons & {*links}, f"{entry.place}: no link to a chapter"
