"""What must hold of every executed chapter, whether it ran now or was kept."""

from __future__ import annotations

import ast
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ._chapters import Cell, Chapter
from ._errors import PageError

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


def check_run(chapter: Chapter, run: dict[str, Any]) -> list[PageError]:
    """Everything that is wrong with a chapter's run, at the page's own lines."""
    errors: list[PageError] = []
    errors += _values(chapter.leading, run["leading"], chapter)
    for cell, record in zip(chapter.cells, run["cells"], strict=True):
        errors += _announced(chapter, cell, record)
        errors += _warned(chapter, cell, record)
        errors += _noise(chapter, cell, record)
        errors += _described(chapter, cell, record)
        errors += _values(cell.values, record["values"], chapter)
    errors += _unchecked(chapter)
    return errors


def _announced(chapter: Chapter, cell: Cell, record: dict) -> Iterator[PageError]:
    """A cell that is to raise raises what it announced."""
    failure = record["failure"]
    if cell.raises is None:
        return
    name, _, words = cell.raises.partition(": ")
    if failure is None:
        yield PageError(
            chapter.path,
            cell.line,
            f"cell {cell.number} announces {name} and raises nothing",
            "drop :raises:, or mend the cell so that it fails as the page says",
        )
    elif name not in _names(failure) or not _said(words, failure["message"]):
        yield PageError(
            chapter.path,
            cell.line + failure["line"] - 1,
            f"cell {cell.number} announces {cell.raises!r} and raises another",
            "announce what it raises, or mend the cell",
            failure["traceback"],
        )


def _said(words: str, message: str) -> bool:
    """Whether a message holds the words; without words, whether there is none."""
    return words in message if words else not message


def _names(failure: dict) -> set[str]:
    """How the class that was raised may be called: bare, or with its module."""
    return {failure["name"], *failure["kinds"][:1]}


def _warned(chapter: Chapter, cell: Cell, record: dict) -> Iterator[PageError]:
    """What a cell writes to stderr is what it announced."""
    text = "".join(
        item["text"] for item in record["outputs"] if item.get("name") == "stderr"
    )
    if cell.warns is None:
        if text:
            yield PageError(
                chapter.path,
                cell.line,
                f"cell {cell.number} writes to stderr",
                "mend the cause; if the page is about it, announce it with :warns:",
                text,
            )
        return
    name, _, words = cell.warns.partition(": ")
    if name not in text or words not in text:
        yield PageError(
            chapter.path,
            cell.line,
            f"cell {cell.number} announces the warning {cell.warns!r}"
            + (" and gives another" if text else " and gives none"),
            "announce what it says, or drop :warns:",
            text,
        )


def output_texts(record: dict) -> Iterator[str]:
    """Every text that a cell's outputs put on a page."""
    for item in record["outputs"]:
        match item["output_type"]:
            case "stream":
                yield item["text"]
            case "error":
                yield "\n".join(item["traceback"])
            case _:
                for kind, data in item["data"].items():
                    if kind.startswith("text/"):
                        yield data
    for value in record["values"]:
        yield value.get("text", "")


def _noise(chapter: Chapter, cell: Cell, record: dict) -> Iterator[PageError]:
    """No output carries what is true on one machine only."""
    for text in output_texts(record):
        for pattern, what in (*NOISE, *_own_paths(chapter)):
            if found := pattern.search(text):
                line = text[text.rfind("\n", 0, found.start()) + 1 :].split("\n")[0]
                yield PageError(
                    chapter.path,
                    cell.line,
                    f"cell {cell.number} prints {what}: {found[0]!r}",
                    "print something that is the same on every machine",
                    line[:200],
                )
                break


def _own_paths(chapter: Chapter) -> Iterator[tuple[re.Pattern, str]]:
    """The folders of this machine, whatever they are called."""
    folders = {
        sys.prefix,
        sys.base_prefix,
        tempfile.gettempdir(),
        Path.home(),
        Path.cwd(),
    }
    for folder in sorted(map(str, folders), key=len, reverse=True):
        if folder.count(os.sep) > 1 or len(folder) > 5:
            yield re.compile(re.escape(folder + os.sep)), "a machine path"


def _described(chapter: Chapter, cell: Cell, record: dict) -> Iterator[PageError]:
    """A figure has a text for those who do not see it."""
    has_figure = any(
        kind.startswith("image/")
        for item in record["outputs"]
        for kind in item.get("data", ())
    )
    if has_figure and not cell.alt:
        yield PageError(
            chapter.path,
            cell.line,
            f"cell {cell.number} shows a figure without alternative text",
            'say what it shows: :alt: "..."',
        )


def _values(values: tuple, results: list[dict], chapter: Chapter) -> list[PageError]:
    """The values in running text could be evaluated."""
    return [
        PageError(
            chapter.path,
            value.line,
            f"the value {value.expression!r} could not be had: {result['error']}",
            "name what a cell above defines",
        )
        for value, result in zip(values, results, strict=True)
        if "error" in result
    ]


def _unchecked(chapter: Chapter) -> Iterator[PageError]:
    """Output that varies is held by a predicate: an assert, here or just below."""
    for cell, following in zip_longest(chapter.cells, chapter.cells[1:]):
        below = following is not None and "check" in following.tags
        if cell.varies and not below and not has_assert(cell.source):
            yield PageError(
                chapter.path,
                cell.line,
                f"cell {cell.number} varies and nothing checks it",
                "assert what holds in every run, there or in a 'check' cell below",
            )


def has_assert(source: str) -> bool:
    """Whether the code holds an assert statement; magics never do."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return any(line.lstrip().startswith("assert ") for line in source.splitlines())
    return any(isinstance(node, ast.Assert) for node in ast.walk(tree))
