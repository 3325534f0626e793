"""Reading chapters: MyST pages with code cells, as plain data.

A chapter is read twice during a build, by the executor and by Sphinx. Both
go through this module, so that they agree on what a cell is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from myst_nb.core.read import (
    MystMetadataParsingError,
    is_myst_markdown_notebook,
    read_myst_markdown_notebook,
)
from myst_parser.config.main import MdParserConfig
from nbformat import NotebookNode

from ._errors import PageError
from ._prose import check_prose, running_text

#: The only kernel a chapter may name: cells run in the builder's own Python.
KERNEL = "python3"

#: What a cell's `:tags:` may say. The first group is ours, the rest MyST-NB's.
TAGS = frozenset(
    {"measured", "device", "check", "keep", "exercise", "solution"}
    | {f"{verb}-{what}" for verb in ("hide", "remove") for what in ("input", "cell")}
    | {"hide-output", "remove-output", "remove-stdout", "scroll-output"}
)

#: What a cell's options may be called.
OPTIONS = frozenset({"tags", "raises", "warns", "alt", "load", "mystnb", "no-program"})

_MARKDOWN = MdParserConfig(enable_extensions={"colon_fence"})
_ROLE = re.compile(r"(?<![`\w])\{(value|measured)\}`([^`]+)`(?!`)")


@dataclass(frozen=True)
class Value:
    """An expression in running text, evaluated after the cell above it."""

    role: str
    expression: str
    line: int


@dataclass(frozen=True)
class Cell:
    """One code cell: its source, its options, and where it stands on the page.

    `line` is the page's line (from 1) of the first line of the source.
    """

    number: int
    source: str
    line: int
    tags: frozenset[str] = frozenset()
    raises: str | None = None
    warns: str | None = None
    alt: str | None = None
    no_program: str | None = None
    values: tuple[Value, ...] = ()

    @property
    def varies(self) -> bool:
        """Whether the output may differ between runs or devices."""
        return bool(self.tags & {"measured", "device"})


@dataclass(frozen=True)
class Chapter:
    """One page that executes. `leading` values stand above the first cell.

    `limit` is how long a cell may take (seconds), `platform` the one that the chapter
    runs on wherever the book is built; None for the default.
    """

    docname: str
    path: Path
    text: str
    cells: tuple[Cell, ...]
    leading: tuple[Value, ...]
    limit: float | None = None
    platform: str | None = None

    @property
    def title(self) -> str:
        """Its first heading, or its name if it has none."""
        heading = re.search(r"^# +(.+)$", self.text, re.M)
        return heading[1].strip() if heading else self.docname


def find_chapters(source: Path) -> tuple[list[Chapter], list[PageError]]:
    """Read every chapter below `source`, sorted by name, and what is wrong."""
    chapters: list[Chapter] = []
    errors: list[PageError] = []
    for path in sorted(source.rglob("*.md")):
        try:
            chapter = read_chapter(path, source)
        except PageError as error:
            errors.append(error)
        else:
            if chapter is not None:
                chapters.append(chapter)
            errors.extend(check_prose(path, decode(path)))
    return chapters, errors


def read_chapter(path: Path, source: Path) -> Chapter | None:
    """Read one page; None if it holds nothing to execute.

    Raises:
        PageError: the page is not UTF-8, its front matter is broken, it names
            an unknown kernel, or a cell has an option that does not exist.
    """
    text = decode(path)
    front = front_matter(text, path)
    if not is_myst_markdown_notebook(text):
        if "```{code-cell}" in text and front.get("file_format") != "mystnb":
            line = text[: text.index("```{code-cell}")].count("\n") + 1
            raise PageError(
                path,
                line,
                "a code cell on a page that does not execute",
                "add 'file_format: mystnb' to the page's front matter",
            )
        return None
    kernel = (front.get("kernelspec") or {}).get("name", KERNEL)
    if kernel != KERNEL:
        raise PageError(
            path,
            line_of(text, "kernelspec"),
            f"unknown kernel {kernel!r}",
            f"chapters run on {KERNEL!r}: name that, or drop the line",
        )
    notebook = parse(text, path)
    return Chapter(
        docname=path.relative_to(source).with_suffix("").as_posix(),
        path=path,
        text=text,
        **_options(front, text, path),
        **_cells(notebook, text, path),
    )


def decode(path: Path) -> str:
    """The page's text, or a PageError that names the line that is not UTF-8."""
    raw = path.read_bytes()
    try:
        return raw.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise PageError(
            path,
            line,
            f"byte {raw[error.start]:#04x} is not UTF-8",
            "save the page as UTF-8",
        ) from None


def front_matter(text: str, path: Path) -> dict:
    """The mapping between the page's leading `---` lines; {} without one."""
    if not text.startswith("---\n"):
        return {}
    block, mark, _ = text[4:].partition("\n---")
    if not mark:
        raise PageError(
            path, 1, "the front matter never ends", "close it with a '---' line"
        )
    try:
        data = yaml.safe_load(block)
    except yaml.YAMLError as error:
        place = getattr(error, "problem_mark", None)
        raise PageError(
            path,
            (place.line if place else 0) + 2,
            f"broken front matter: {getattr(error, 'problem', None) or error}",
            "write it as YAML: one 'name: value' a line",
        ) from None
    if data is not None and not isinstance(data, dict):
        raise PageError(
            path, 2, "broken front matter", "write it as 'name: value' lines"
        )
    return data or {}


def _options(front: dict, text: str, path: Path) -> dict[str, Any]:
    """What a chapter's front matter says about how it executes."""
    settings = front.get("justafter") or {}
    unknown = sorted(set(settings) - {"limit", "platform"})
    limit, platform = settings.get("limit"), settings.get("platform")
    good = limit is None or (isinstance(limit, (int, float)) and limit > 0)
    if unknown or not good or platform not in (None, "cpu"):
        raise PageError(
            path,
            line_of(text, "justafter"),
            f"front matter 'justafter: {settings}' is not understood",
            "it may say 'limit', the seconds that a cell may take, and"
            " 'platform: cpu', to run there wherever the book is built",
        )
    return {"limit": limit, "platform": platform}


def line_of(text: str, word: str) -> int:
    """The first line (from 1) that holds `word`; 1 if none does."""
    place = text.find(word)
    return 1 if place < 0 else text[:place].count("\n") + 1


def parse(text: str, path: Path) -> NotebookNode:
    """The page as a notebook, not yet executed, with its source map."""
    try:
        return read_myst_markdown_notebook(
            text, config=_MARKDOWN, add_source_map=True, path=path
        )
    except MystMetadataParsingError as error:
        line = re.search(r"at line (\d+)", str(error))
        raise PageError(
            path,
            int(line[1]) if line else 1,
            f"cell options could not be read: {error}",
            "write each as ':name: value', text in quotes",
        ) from None


def _cells(notebook: NotebookNode, text: str, path: Path) -> dict:
    """The code cells, each with the values in the text that follows it."""
    lines = text.splitlines()
    cells: list[Cell] = []
    groups: list[list[Value]] = [[]]
    for cell, start in zip(notebook.cells, notebook.metadata.source_map, strict=True):
        if cell.cell_type == "code":
            cells.append(_cell(cell, len(cells) + 1, start, lines, path))
            groups.append([])
        elif cell.cell_type == "markdown":
            groups[-1].extend(_values(cell.source, _first_line(cell, start, lines)))
    leading, *following = (tuple(group) for group in groups)
    with_values = (
        Cell(**{**vars(cell), "values": values})
        for cell, values in zip(cells, following, strict=True)
    )
    return {"cells": tuple(with_values), "leading": leading}


def _first_line(cell: NotebookNode, start: int, lines: list[str]) -> int:
    """The page's line of a cell's first line: the map may point above it."""
    first = cell.source.split("\n", 1)[0]
    for number in range(start, len(lines)):
        if lines[number] == first:
            return number + 1
    return start + 1


def _cell(
    cell: NotebookNode, number: int, start: int, lines: list[str], path: Path
) -> Cell:
    line = _first_line(cell, start, lines)
    options = dict(cell.metadata)
    tags = options.get("tags", [])
    tags = frozenset(tags if isinstance(tags, list) else str(tags).split())
    unknown = sorted(set(options) - OPTIONS) + sorted(tags - TAGS)
    if unknown:
        raise PageError(
            path,
            start,
            f"unknown cell option or tag {unknown[0]!r}",
            f"options: {', '.join(sorted(OPTIONS))}; tags: {', '.join(sorted(TAGS))}",
        )
    names = ("raises", "warns", "alt", "no-program")
    texts = {name.replace("-", "_"): options.get(name) for name in names}
    for name, value in texts.items():
        if value is not None and not isinstance(value, str):
            raise PageError(
                path, start, f"option {name!r} is not text", "put it in quotes"
            )
    for name in ("raises", "warns"):
        if texts[name] and not re.match(r"[\w.]+(: \S|$)", texts[name]):
            raise PageError(
                path,
                start,
                f"option {name!r} is {texts[name]!r}",
                f'write it as :{name}: "Class: words of its message", or the class'
                " alone where it has no message",
            )
    return Cell(number=number, source=cell.source, line=line, tags=tags, **texts)


def _values(source: str, line: int) -> list[Value]:
    """The value roles of a stretch of text whose first line is the page's `line`."""
    numbered = list(running_text(source))
    text = "\n".join(content for _, content in numbered)
    return [
        Value(
            role=found[1],
            expression=" ".join(found[2].split()),
            line=line - 1 + numbered[text.count("\n", 0, found.start())][0],
        )
        for found in _ROLE.finditer(text)
    ]
