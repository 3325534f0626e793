"""Sentences and the checks that they name: what must hold, and how many there are."""

import dataclasses
from collections import Counter
from collections.abc import Container, Iterator
from pathlib import Path

from .. import names
from ..errors import PageError, counted, did_you_mean
from ..files import code_digest, digest
from ..model import Cell, Chapter, Executed, Sentence
from ..reading.chapters import Reading
from ..running.store import Store
from . import failing
from .failing import Assertion

#: What is counted: the sentences that name a check, the checks that are named, the
#: sentences in universal words that claim something, and those of them that a check
#: holds, theirs or the paragraph's.
COUNTED = ("sentences", "checks", "universal", "universal-bound")


# -- what must hold


def check_names(page: Reading) -> Iterator[PageError]:
    """Each check has a name of its own, and each name that is used names one."""
    for cell in page.cells:
        if cell.check and page.checks[cell.check] is not cell:
            what = f"a second check is called {cell.check!r}"
            hint = f"the first is cell {page.checks[cell.check].number}: rename one"
            yield PageError(page.path, cell.line, what, hint)
    for sentence in page.sentences:
        for name in sentence.checks:
            if name not in page.checks:
                what = f"no check of this page is called {name!r}: {_quoted(sentence)}"
                meant = did_you_mean(name, page.checks)
                hint = f"{meant}name a cell of the page: ':check: {name}'"
                yield PageError(page.path, sentence.line, what, hint)


def check_failing(page: Reading, store: Store) -> Iterator[PageError]:
    """Each check has an assertion, and none that holds whatever a library does."""
    for cell, assertions in zip(page.cells, _assertions(page, store), strict=True):
        if cell.is_skipped or not cell.is_check:
            continue
        announced = cell.raises is not None or cell.warns is not None
        if not assertions and not announced:
            what = f"cell {cell.number} is a check, and nothing in it can fail"
            hint = "add an assertion that fails if the sentence is false"
            yield PageError(page.path, cell.line, what, hint)
        for assertion in assertions:
            if not assertion.can_fail:
                line = cell.line + assertion.line - 1
                what = "this assertion holds whatever the libraries do: "
                hint = "compare what a cell computed, or drop it"
                yield PageError(page.path, line, what + assertion.code, hint)


def check_reached(executed: Executed, elsewhere: Container[int]) -> Iterator[PageError]:
    """Of each check that passed, an assertion ran: here, or as a record says elsewhere.

    `elsewhere` are the numbers of the cells that passed on another device.
    """
    for cell, result in executed:
        announced = cell.raises is not None or cell.warns is not None
        passed = announced or cell.number in elsewhere or result.failure is not None
        if result.missed and not result.reached and not passed:
            yield executed.chapter.wrong(
                cell,
                "is a check, and this run reaches none of its assertions",
                "assert what is reached here; what is of another device needs a record"
                " of that device",
                line=result.missed[0],
            )


def _assertions(page: Reading, store: Store) -> list[list[Assertion]]:
    """The assertions of each cell, from the cache: following all values is slow."""
    sources = [cell.source for cell in page.cells]
    code = code_digest(Path(str(module.__file__)) for module in (failing, names))
    key = digest([sources, code])
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


def unbound(page: Reading) -> Iterator[PageError]:
    """The universal sentences and the lines of a page that name no check."""
    loose = [sentence for sentence in page.sentences if not sentence.is_bound]
    universal = [s for s in loose if s.is_universal and not s.exempt]
    for sentence in universal:
        yield _loose(page, sentence, "no check holds this sentence")
    named = {None, *(sentence.claim for sentence in universal)}
    for sentence in loose:  # of each claim the first, unless one of it is named above
        if sentence.claim not in named:
            named.add(sentence.claim)
            yield _loose(page, sentence, "no check holds this line")


def _loose(page: Reading, sentence: Sentence, what: str) -> PageError:
    return PageError(
        page.path,
        sentence.line,
        f"{what}: {_quoted(sentence)}",
        "name its check after it, {check}`name`; say it of fewer cases; or mark it:"
        " {no-check}`definition`",
    )


# -- how many there are


def count_claims(page: Reading) -> Counter[str]:
    """The counts of one page, by the names in `COUNTED`."""
    sentences = page.sentences
    claiming = [s for s in sentences if s.is_universal and not s.exempt]
    counts = (
        sum(bool(s.checks) for s in sentences),
        len({name for s in sentences for name in s.checks}),
        len(claiming),
        sum(s.is_bound for s in claiming),
    )
    return Counter(dict(zip(COUNTED, counts, strict=True)))


def in_words(counts: Counter[str]) -> str:
    """The counts of a page or a book, as a sentence."""
    sentences, checks, universal, bound = (counts[name] for name in COUNTED)
    return (
        f"{counted(sentences, 'sentence')} with {counted(checks, 'check')};"
        f" {bound} of {universal} universal ones have one"
    )
