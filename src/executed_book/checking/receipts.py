"""Sentences and the checks that they name: what must hold, and how many there are."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sphinx.util.matching import Matcher

from ..errors import PageError, did_you_mean
from ..model import Cell, CellResult, Chapter, Executed, Sentence
from ..reading.chapters import Reading
from ..running.fingerprint import digest, file_digest
from ..running.store import Store
from . import failing
from .failing import Assertion

#: A row of a table's body, as cells show it.
_ROW = re.compile(r"<tr\b", re.IGNORECASE)
_BODY = re.compile(r"<tbody\b.*?</tbody>", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class PageText:
    """The sentences of a page, its cells, and those that are checks by name.

    `has_counts` says that its text quotes a count over the whole book.
    """

    docname: str
    path: Path
    sentences: tuple[Sentence, ...]
    cells: tuple[Cell, ...]
    checks: Mapping[str, Cell]
    has_counts: bool = False


@dataclass(frozen=True)
class Counts:
    """How many sentences have a check.

    Attributes:
        sentences: those that name a check.
        checks: the checks that are named.
        universal: the sentences in universal words that claim something.
        universal_bound: those of them that a check holds, theirs or the paragraph's.
        definition, instruction, title: universal sentences marked as such.
        lines: the lists, paragraphs and rows of tables that need a check each.
        lines_bound: those of them that have one.
    """

    sentences: int = 0
    checks: int = 0
    universal: int = 0
    universal_bound: int = 0
    definition: int = 0
    instruction: int = 0
    title: int = 0
    lines: int = 0
    lines_bound: int = 0

    def __add__(self, other: Counts) -> Counts:
        mine, theirs = dataclasses.astuple(self), dataclasses.astuple(other)
        return Counts(*(a + b for a, b in zip(mine, theirs, strict=True)))

    def __str__(self) -> str:
        marked = self.definition + self.instruction + self.title
        return (
            f"{self.sentences} sentences name {self.checks} checks: of"
            f" {self.universal} universal ones {self.universal_bound}, of"
            f" {self.lines} lines that need one {self.lines_bound};"
            f" {marked} universal sentences are definitions ({self.definition}),"
            f" instructions ({self.instruction}) or titles ({self.title})"
        )


def page_text(reading: Reading) -> PageText:
    """A page's sentences with the checks that they may name."""
    cells = reading.chapter.cells if reading.chapter is not None else ()
    checks: dict[str, Cell] = {}
    for cell in cells:
        if cell.check:
            checks.setdefault(cell.check, cell)
    return PageText(
        reading.docname,
        reading.path,
        reading.sentences,
        cells,
        checks,
        reading.has_counts,
    )


# -- what must hold


def check_names(page: PageText) -> Iterator[PageError]:
    """Each check has a name of its own, and each name that is used names one."""
    for cell in page.cells:
        if cell.check and page.checks[cell.check] is not cell:
            yield PageError(
                page.path,
                cell.line,
                f"a second check is called {cell.check!r}",
                f"the first is cell {page.checks[cell.check].number}: rename one",
            )
    for sentence in page.sentences:
        for name in sentence.checks:
            if name not in page.checks:
                yield _unknown(page, sentence, name)


def _unknown(page: PageText, sentence: Sentence, name: str) -> PageError:
    return PageError(
        page.path,
        sentence.line,
        f"no check of this page is called {name!r}: {_quoted(sentence)}",
        f"{did_you_mean(name, page.checks)}name a cell of the page: ':check: {name}'",
    )


def check_failing(page: PageText, store: Store) -> Iterator[PageError]:
    """Each check has an assertion, and none that holds whatever a library does."""
    for cell, assertions in zip(page.cells, _assertions(page, store), strict=True):
        if cell.is_skipped or not (cell.check or "check" in cell.tags):
            continue
        announced = cell.raises is not None or cell.warns is not None
        if not assertions and not announced:
            yield PageError(
                page.path,
                cell.line,
                f"cell {cell.number} is a check, and nothing in it can fail",
                "assert what would be false if the sentence were",
            )
        for assertion in assertions:
            if not assertion.can_fail:
                yield PageError(
                    page.path,
                    cell.line + assertion.line - 1,
                    f"this assertion holds whatever the libraries do: {assertion.code}",
                    "compare what a cell computed, or drop it",
                )


def _assertions(page: PageText, store: Store) -> list[list[Assertion]]:
    """The assertions of each cell, from the cache: following all values is slow."""
    sources = [cell.source for cell in page.cells]
    key = digest([sources, file_digest(Path(failing.__file__))])
    entry = store.load(page.docname, key)
    if entry is not None:
        return [[Assertion(*plain) for plain in cell] for cell in entry["cells"]]
    by_cell = failing.assertions(sources)
    plain = [[dataclasses.astuple(one) for one in cell] for cell in by_cell]
    store.save(page.docname, key, {"cells": plain})
    return by_cell


def false_sentences(chapter: Chapter, cell: Cell) -> str:
    """What a failure of a cell makes false, as the end of a message of that failure."""
    named = [s for s in chapter.sentences if cell.check in (s.checks or s.vouched)]
    said = "; ".join(f"line {s.line}, {_quoted(s)}" for s in named)
    return f", so that this does not hold: {said}" if said else ""


def _quoted(sentence: Sentence) -> str:
    return f"“{sentence.text}”"


# -- what is not bound


def unbound(page: PageText) -> Iterator[PageError]:
    """The universal sentences and the lines of a page that name no check."""
    for sentence in page.sentences:
        if sentence.is_universal and not sentence.is_bound and not sentence.exempt:
            word = "no check holds this sentence"
            yield _loose(page, sentence, word)
    for parts in _claims(page.sentences):
        loose = [part for part in parts if not part.is_bound]
        if loose and not any(part.is_universal and not part.exempt for part in loose):
            yield _loose(page, loose[0], "no check holds this line")


def _loose(page: PageText, sentence: Sentence, what: str) -> PageError:
    return PageError(
        page.path,
        sentence.line,
        f"{what}: {_quoted(sentence)}",
        "name its check after it, {check}`name`; say it of fewer cases; or mark it:"
        " {no-check}`definition`",
    )


def unbound_rows(executed: Executed) -> Iterator[PageError]:
    """The tables that cells show and that no sentence holds by naming their cell."""
    chapter = executed.chapter
    for cell, rows in _tables(executed):
        if not _is_named(chapter, cell):
            yield PageError(
                chapter.path,
                cell.line,
                f"no check holds the {rows} rows that cell {cell.number} shows",
                "assert each row where it is made, call the cell ':check: name', and"
                " name that in the sentence above the table",
            )


def _tables(executed: Executed) -> Iterator[tuple[Cell, int]]:
    for cell, result in executed:
        rows = _rows(result)
        if rows:
            yield cell, rows


def _rows(result: CellResult) -> int:
    """How many rows the tables have that a cell shows."""
    shown = (
        "".join(output.get("data", {}).get("text/html", ""))
        for output in result.outputs
    )
    return sum(len(_ROW.findall(b)) for html in shown for b in _BODY.findall(html))


def _is_named(chapter: Chapter, cell: Cell) -> bool:
    return any(cell.check in s.checks for s in chapter.sentences if cell.check)


def _claims(sentences: Iterable[Sentence]) -> Collection[list[Sentence]]:
    """The sentences of each list or paragraph that needs a check."""
    claims: dict[int, list[Sentence]] = {}
    for sentence in sentences:
        if sentence.claim is not None:
            claims.setdefault(sentence.claim, []).append(sentence)
    return claims.values()


# -- how many there are


def count_claims(page: PageText, executed: Executed | None, has_rows: bool) -> Counts:
    """The counts of one page; with the rows of its tables if they are claims."""
    sentences = page.sentences
    universal = [s for s in sentences if s.is_universal]
    marked = Counter(s.exempt for s in universal)
    claiming = [s for s in universal if not s.exempt]
    claims = _claims(sentences)
    tables = list(_tables(executed)) if executed is not None and has_rows else []
    named = [rows for cell, rows in tables if _is_named(executed.chapter, cell)]  # type: ignore[union-attr]
    return Counts(
        sentences=sum(bool(s.checks) for s in sentences),
        checks=len({name for s in sentences for name in s.checks}),
        universal=len(claiming),
        universal_bound=sum(s.is_bound for s in claiming),
        definition=marked["definition"],
        instruction=marked["instruction"],
        title=marked["title"],
        lines=len(claims) + sum(rows for _, rows in tables),
        lines_bound=sum(all(s.is_bound for s in c) for c in claims) + sum(named),
    )


def matches(patterns: Collection[str], docname: str) -> bool:
    """Whether one of the patterns means the page."""
    return Matcher(list(patterns))(docname)
