"""Reading one page as a chapter, and everything that is wrong with it."""

import dataclasses
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import PageError
from ..model import Cell, Chapter, Prose, Sentence, Value
from ..settings import Settings
from .markdown import SPAN, Stretch, stretches
from .notebooks import NOT_A_NOTEBOOK, notebook_stretches
from .options import (
    cell_options,
    check_language,
    executes,
    front_matter,
    of_myst_nb,
    page_options,
)
from .sentences import SentenceReader, check_prose


@dataclass
class Reading:
    """What reading a page gave: the chapter, if it is one, and what is wrong.

    `has_counts` says that its text quotes a count over the whole book.
    """

    path: Path
    settings: Settings
    chapter: Chapter | None = None
    sentences: tuple[Sentence, ...] = ()
    has_counts: bool = False
    errors: list[PageError] = field(default_factory=list)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The code cells; none on a page that does not execute."""
        return self.chapter.cells if self.chapter is not None else ()

    @cached_property
    def checks(self) -> dict[str, Cell]:
        """The cells that are checks, by name; of several with one name the first."""
        return {cell.check: cell for cell in reversed(self.cells) if cell.check}

    @property
    def docname(self) -> str:
        """The page's name for Sphinx."""
        return docname_of(self.path, self.settings.source)

    def read_text(self, pieces: list[Stretch]) -> None:
        """Note the sentences of the page, and measured numbers typed into them."""
        claims = self.settings.claims
        reader = SentenceReader(
            self.path,
            under=frozenset(claims.get("under", ())),
            after=frozenset(claims.get("after", ())),
            asking=frozenset(claims.get("asking", ())),
        )
        self.sentences = reader.read(pieces)
        self.errors += reader.errors
        if "numbers" in self.settings.rules:
            for piece in pieces:
                self.errors += check_prose(self.path, piece.running)


def read_page(path: Path, settings: Settings, text: str | None = None) -> Reading:
    """Read one page; `text` is its content, if that is known."""
    reading = Reading(path, settings)
    try:
        text = decode(path) if text is None else text
        reading.has_counts = "{receipts}`" in text
        if path.suffix == ".ipynb":
            _read_notebook(text, reading)
        else:
            _read_markdown(text, reading)
    except PageError as error:
        reading.errors.append(error)
    return reading


def decode(path: Path) -> str:
    """A page's text, with plain line ends and without a mark at its start.

    Raises:
        PageError: it is not UTF-8, at the line that is not, or cannot be read.
    """
    try:
        raw = path.read_bytes()
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise PageError(
            path,
            line,
            f"byte {raw[error.start]:#04x} is not UTF-8",
            "save the page as UTF-8",
        ) from None
    except OSError as error:
        raise PageError(
            path, 1, f"cannot be read: {error.strerror}", "correct or remove it"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def docname_of(path: Path, source: Path) -> str:
    """A page's name for Sphinx: its path below `source`, without the suffix."""
    return path.relative_to(source).with_suffix("").as_posix()


def _read_markdown(text: str, reading: Reading) -> None:
    path = reading.path
    front, front_lines = front_matter(text, path)
    body = text.split("\n", front_lines)[front_lines] if front_lines else text
    pieces = stretches(body, front_lines + 1)
    reading.read_text(pieces)
    if executes(front):
        check_language(front, path)
        for piece in pieces:
            _load(piece, path, reading.errors)
        _make_chapter(text, front, pieces, reading)
    elif cells := [piece for piece in pieces if piece.kind == "code"]:
        what = "a code cell on a page that does not execute"
        hint = "add 'file_format: mystnb' to the page's front matter"
        reading.errors.append(PageError(path, cells[0].fence, what, hint))


def _read_notebook(text: str, reading: Reading) -> None:
    try:
        metadata, pieces = notebook_stretches(text)
    except NOT_A_NOTEBOOK as error:
        what = f"not a notebook: {type(error).__name__}: {error}"
        way = "save it anew from Jupyter, or remove it"
        raise PageError(reading.path, 1, what, way) from None
    check_language(metadata, reading.path)
    metadata = {k: v for k, v in metadata.items() if k != "kernelspec"}
    reading.read_text(pieces)
    _make_chapter(text, metadata, pieces, reading)


def _make_chapter(
    text: str, metadata: dict[str, Any], pieces: list[Stretch], reading: Reading
) -> None:
    """Make the chapter of its pieces, and note what is wrong with them."""
    path = reading.path
    is_strict = "options" in reading.settings.rules and path.suffix != ".ipynb"
    options, wrong = page_options(metadata, text, path)
    reading.errors += wrong
    parts: list[Prose | Cell] = []
    number = 0
    may_raise = of_myst_nb(metadata).get("execution_allow_errors") is True
    for piece in pieces:
        if piece.kind != "code":
            parts.append(Prose(piece.text, piece.line, piece.kind, piece.options))
            _attach(_values(piece.running, reading), parts, reading)
            continue
        number += 1
        fields, wrong = cell_options(piece, path, is_strict)
        reading.errors += wrong
        fields["may_raise"] |= may_raise
        parts.append(Cell(number, piece.text, piece.line, **fields))
    reading.chapter = Chapter(
        docname=reading.docname,
        path=path,
        text=text,
        parts=tuple(parts),
        metadata=metadata,
        sentences=reading.sentences,
        **options,
    )


def _attach(values: list[Value], parts: list[Prose | Cell], reading: Reading) -> None:
    """Give values to the last cell above them."""
    for i in reversed(range(len(parts))):
        part = parts[i]
        if isinstance(part, Cell):
            parts[i] = dataclasses.replace(part, values=(*part.values, *values))
            return
    for value in values:
        what = f"the value {value.expression!r} is above the first cell"
        hint = "write it below the cell that computes it"
        reading.errors.append(PageError(reading.path, value.line, what, hint))


def _values(running: list[tuple[int, str]], reading: Reading) -> list[Value]:
    """The value roles of a stretch of running text; MyST-NB's own is an error."""
    text, values = "\n".join(content for _, content in running), []
    for span in SPAN.finditer(text):
        line = running[text.count("\n", 0, span.start())][0]
        expression = " ".join(span["text"].split())
        if span["role"] in ("value", "measured"):
            values.append(Value(span["role"], expression, line))
        elif span["role"] == "eval":
            what = "{eval} needs a kernel that runs while the page is rendered"
            hint = f"write {{value}}`{expression}`"
            reading.errors.append(PageError(reading.path, line, what, hint))
    return values


#: What a program at the head of a file needs, for tools that run it: no cell needs it.
_METADATA = re.compile(r"\A# /// script\n(?:#.*\n)*?# ///\n")


def _load(piece: Stretch, path: Path, errors: list[PageError]) -> None:
    """Take a cell's source from the file that its `:load:` names."""
    name = piece.options.get("load")
    if piece.kind != "code" or not isinstance(name, str):
        return
    try:
        text = path.parent.joinpath(name).read_text("utf-8")
        piece.text = _METADATA.sub("", text, count=1).rstrip("\n")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        what = f"the cell's file {name!r} cannot be read: {reason}"
        hint = "name a file by its path from this page's folder"
        errors.append(PageError(path, piece.fence, what, hint))
