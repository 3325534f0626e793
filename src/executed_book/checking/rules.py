"""What must hold of every executed chapter, whether it ran now or was kept."""

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator
from itertools import zip_longest
from pathlib import Path

from ..errors import PageError
from ..model import Cell, CellResult, Chapter, Executed, Failure
from ..running.shell import OVER_LIMIT
from .failing import assertions
from .receipts import false_sentences
from .text import has_figure, shown_texts, stderr_text

#: Text that belongs to one machine or one process, and what it is.
NOISE = (
    (re.compile(r"\x1b\["), "an ANSI code"),
    (re.compile(r"\bat 0x[0-9a-f]{6,}|\b0x[0-9a-f]{9,16}\b"), "a memory address"),
    (re.compile(r"\bobject id \d{6,}"), "an object's id"),
    (re.compile(r"ipykernel_\d+|<ipython-input"), "a temporary kernel name"),
    (re.compile(r"(?:/home|/root|/Users|/tmp|/var/folders)/[\w.-]+"), "a machine path"),
    (re.compile(r"\b[A-Z]:\\\\?Users\\"), "a machine path"),
    (re.compile(r"/(?:site|dist)-packages/"), "a machine path"),
)

#: How much of a message an announcement that we propose repeats (characters).
_WORDS = 60


def check_run(
    executed: Executed, rules: Collection[str], spoilt: Collection[int] = ()
) -> list[PageError]:
    """Everything that is wrong with a chapter's run, at the page's own lines.

    `rules` are those that hold for the book (see `settings.RULES`). `spoilt` are the
    numbers of cells that failed, or need one that did; `failed` reports their
    failures, unless the page announced them.
    """
    chapter = executed.chapter
    errors: list[PageError] = []
    for cell, result in executed:
        if cell.number not in spoilt:
            errors += _announced(chapter, cell, result)
            if "stderr" in rules or cell.warns is not None:
                errors += _warned(chapter, cell, result)
            if "noise" in rules:
                errors += _noise(chapter, cell, result)
            if "figures" in rules:
                errors += _described(chapter, cell, result)
            errors += _values(chapter, cell, result)
    if "measured" in rules:
        errors += _unchecked(chapter)
    return errors


# -- failures that nobody announced

#: What is raised where there is no network.
_UNREACHED = {
    *("urllib.error.URLError", "socket.gaierror", "builtins.ConnectionError"),
    *("requests.exceptions.RequestException", "httpx.TransportError"),
}


def failed(
    executed: Executed, needs: Callable[[int], set[int]]
) -> tuple[list[PageError], set[int]]:
    """The failures that were not allowed, and the cells that failures spoil.

    If a cell fails that needs another failed cell, one error reports both.
    `needs` gives the numbers of the cells that a cell needs.
    """
    failing, spoilt = _failing(executed, needs)
    errors = []
    for cell, failure in failing:
        error = _unannounced(executed.chapter, cell, failure)
        spoilt_by_it = {n for n, cause in spoilt.items() if cause == cell.number}
        if others := sorted(spoilt_by_it - {cell.number}):
            listed = ", ".join(map(str, others))
            error.message += f"; not checked, because they need it: cells {listed}"
        errors.append(error)
    return errors, set(spoilt)


def _failing(
    executed: Executed, needs: Callable[[int], set[int]]
) -> tuple[list[tuple[Cell, Failure]], dict[int, int]]:
    """The cells that failed on their own, and each spoilt cell with what spoils it."""
    failing: list[tuple[Cell, Failure]] = []
    spoilt: dict[int, int] = {}
    for cell, result in executed:
        needed = needs(cell.number) if spoilt else set()
        causes = {spoilt[number] for number in needed if number in spoilt}
        failure = result.failure
        if causes:
            spoilt[cell.number] = min(causes)
        elif failure is not None:
            is_announced = cell.may_raise or cell.raises is not None
            if not is_announced or failure.name == OVER_LIMIT:
                spoilt[cell.number] = cell.number
                failing.append((cell, failure))
    return failing, spoilt


def may_be_noise(executed: Executed, needs: Callable[[int], set[int]]) -> bool:
    """Whether all that failed are assertions on what was measured.

    On a busy machine a measurement may be far off, so that what holds otherwise does
    not; what was counted, computed or printed is no such matter.
    """
    failing, _ = _failing(executed, needs)
    measured = {cell.number for cell, _ in executed if "measured" in cell.tags}
    return bool(failing) and all(
        failure.name == "AssertionError"
        and measured & {cell.number, *needs(cell.number)}
        for cell, failure in failing
    )


def _unannounced(chapter: Chapter, cell: Cell, failure: Failure) -> PageError:
    if failure.name == OVER_LIMIT:
        way = "print less, or raise executed_book_output_limit in conf.py"
        return chapter.wrong(cell, failure.message, way)
    allow = f"write {announcement('raises', failure)}"
    if chapter.path.suffix == ".ipynb":
        allow = "tag it raises-exception"
    hint = f"correct the cell; if it is to fail, {allow}"
    if _UNREACHED & set(failure.kinds):
        hint += (
            "; if there is no network, name its page in nb_execution_excludepatterns"
        )
    what = f"raised {failure.name}{false_sentences(chapter, cell)}"
    return chapter.wrong(cell, what, hint, failure.traceback, failure.line)


def announcement(option: str, failure: Failure) -> str:
    """The line that announces a failure, as it has to stand on the page.

    >>> failure = Failure("ValueError", (), 'no "such" thing', 1, "")
    >>> print(announcement("raises", failure))
    :raises: "ValueError: no \\"such\\" thing"
    """
    words = _first_words(failure.message)
    text = f"{failure.name}: {words}" if words else failure.name
    return f":{option}: {json.dumps(text, ensure_ascii=False)}"


def _first_words(message: str) -> str:
    """The beginning of a message, cut between words, without what varies in it."""
    lines = (line.strip() for line in message.splitlines())
    first = next((line for line in lines if line), "")
    first = re.split(r"<cell \d+>|0x[0-9a-f]{6,}", first)[0].rstrip(" (")
    if len(first) > _WORDS:
        first = first[:_WORDS].rpartition(" ")[0] or first[:_WORDS]
    return first


# -- failures and warnings that were


def _announced(chapter: Chapter, cell: Cell, result: CellResult) -> Iterator[PageError]:
    """A cell that is to raise raises what it announced; without words, no message."""
    failure = result.failure
    if cell.raises is None:
        return
    name, _, words = cell.raises.partition(": ")
    if failure is None:
        yield chapter.wrong(
            cell,
            f"announces {name} and raises nothing{false_sentences(chapter, cell)}",
            "drop :raises:, or change the cell so that it fails as the page says",
        )
        return
    said = words in failure.message if words else not failure.message
    if not said or name not in (failure.name, *failure.kinds[:1]):
        what = f"announces {cell.raises!r} and raises another"
        what += false_sentences(chapter, cell)
        hint = f"write {announcement('raises', failure)}, or correct the cell"
        yield chapter.wrong(cell, what, hint, failure.traceback, failure.line)


def _warned(chapter: Chapter, cell: Cell, result: CellResult) -> Iterator[PageError]:
    """What a cell writes to stderr is what it announced."""
    text = stderr_text(result)
    if cell.warns is None:
        if text:
            hint = f"fix the cause; if the page is about it, write {_warning(text)}"
            yield chapter.wrong(cell, "writes to stderr", hint, text)
        return
    if not re.search(rf"(?<![\w.]){re.escape(cell.warns)}", text):
        other = "another" if text else "none"
        what = f"announces the warning {cell.warns!r} and gives {other}"
        hint = (
            f"write {_warning(text)}" if text else "drop :warns:, or correct the cell"
        )
        yield chapter.wrong(cell, what, hint, text)


def _warning(text: str) -> str:
    """The line that announces what was written to stderr."""
    lines = [line for line in text.splitlines() if line.strip()]
    name, _, words = (lines or [""])[0].partition(": ")
    if not re.fullmatch(r"[\w.]+", name):
        # No warning of Python's: its first word has to do for the class.
        name = next(iter(re.findall(r"[\w.]+", text)), "")
        return f":warns: {json.dumps(name)}"
    return announcement("warns", Failure(name, (), words, 1, ""))


# -- what may not stand on a page


def _noise(chapter: Chapter, cell: Cell, result: CellResult) -> Iterator[PageError]:
    """No output carries what is true on one machine only."""
    patterns = (*NOISE, *_own_paths())
    for text in shown_texts(result):
        for pattern, what in patterns:
            if match := pattern.search(text):
                line = text[text.rfind("\n", 0, match.start()) + 1 :].split("\n")[0]
                said = f"prints {what}: {match[0]!r}"
                hint = "print something that is the same on every machine"
                yield chapter.wrong(cell, said, hint, line[:200])
                break


def _own_paths() -> list[tuple[re.Pattern[str], str]]:
    """The folders of this machine, whatever they are called."""
    places = {sys.prefix, sys.base_prefix, tempfile.gettempdir()}
    places |= {str(Path.home()), str(Path.cwd())}
    folders = sorted(places, key=len, reverse=True)
    return [
        (re.compile(re.escape(folder + os.sep)), "a machine path")
        for folder in folders
        if folder.count(os.sep) > 1 or len(folder) > 5
    ]


def _described(chapter: Chapter, cell: Cell, result: CellResult) -> Iterator[PageError]:
    """A figure has a text for those who do not see it, and the text a figure."""
    if has_figure(result) and not cell.alt:
        hint = 'say what it shows: :alt: "A line that rises"'
        yield chapter.wrong(cell, "shows a figure without alternative text", hint)
    elif cell.alt is not None and not has_figure(result):
        hint = "drop :alt:, or let the cell show the figure"
        yield chapter.wrong(cell, "describes a figure and shows none", hint)


def _values(chapter: Chapter, cell: Cell, result: CellResult) -> Iterator[PageError]:
    """The values in running text could be evaluated."""
    for value, got in zip(cell.values, result.values, strict=True):
        if got.error is not None:
            what = f"cannot evaluate the value {value.expression!r}: {got.error}"
            hint = "name what a cell above defines"
            yield PageError(chapter.path, value.line, what, hint)


def _unchecked(chapter: Chapter) -> Iterator[PageError]:
    """Output that varies is held by a predicate: an assert, here or just below."""
    for cell, following in zip_longest(chapter.cells, chapter.cells[1:]):
        below = following is not None and "check" in following.tags
        if cell.varies and not below and not assertions([cell.source])[0]:
            hint = "assert what holds in every run, there or in a 'check' cell below"
            yield chapter.wrong(
                cell, "has output that varies, and no assertion checks it", hint
            )
