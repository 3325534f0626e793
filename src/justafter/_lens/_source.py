"""Where the Python source of a function and its helpers comes from."""

from __future__ import annotations

import ast
import functools
import linecache
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

from .. import _IMPORTED, _functions
from .._internals import _equations
from ._model import Source, Span

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef)
# File, line and name of a function.
Place = tuple[str, int, str]

# Python 3.11 counts the depth of its parser for all threads together, and loses count.
_PARSING = threading.Lock()


@functools.lru_cache(maxsize=4096)
def normal(expression: str) -> str:
    """Write an expression as Python itself would, on one line and without comments."""
    try:
        with _PARSING:
            return ast.unparse(ast.parse(f"(\n{expression.strip()}\n)", mode="eval"))
    except SyntaxError:
        return " ".join(expression.split())


@dataclass
class _File:
    """A file's lines and functions, read once."""

    path: str
    lines: list[str] = field(default_factory=list)
    tree: ast.Module | None = None

    @classmethod
    def read(cls, path: str) -> _File:
        # Since Python 3.13, lines of "<string>" are those of `python -c`, whichever
        # exec() the function came from.
        linecache.checkcache(path)
        found = [] if path == "<string>" else linecache.getlines(path)
        lines = [line.rstrip("\r\n") for line in found]
        try:
            with _PARSING:
                tree = ast.parse("\n".join(lines)) if lines else None
        except (SyntaxError, ValueError):
            tree = None
        return cls(path, lines, tree)

    @functools.cached_property
    def statements(self) -> list[ast.stmt]:
        every = [] if self.tree is None else ast.walk(self.tree)
        return [node for node in every if isinstance(node, ast.stmt)]

    @functools.cached_property
    def was_written_since(self) -> bool:
        """Whether the file was written after this package was imported."""
        try:
            stat = Path(self.path).stat()
        except (OSError, ValueError):
            return False
        return max(stat.st_mtime, stat.st_ctime) > _IMPORTED

    @functools.cached_property
    def codes(self) -> list[CodeType]:
        """The code of each function, as the file's text has it now."""
        if self.tree is None:
            return []
        with _PARSING:
            code = compile(self.tree, self.path, "exec", dont_inherit=True)
        return list(_inner_codes(code))

    def has(self, code: CodeType) -> bool:
        """Whether the file's text still has a function that is in use."""
        return any(
            one.co_firstlineno == code.co_firstlineno
            and one == code
            and list(one.co_positions()) == list(code.co_positions())
            for one in self.codes
            if one.co_qualname == code.co_qualname
        )

    def column(self, line: int, column: int) -> int:
        """Turn a column in bytes into one in characters."""
        if not 1 <= line <= len(self.lines):
            return column
        text = self.lines[line - 1]
        if text.isascii():
            return min(column, len(text))
        return len(text.encode()[:column].decode(errors="ignore"))

    def extent(self, line: int, function: str) -> tuple[int, int] | None:
        """Find the first and last line of what to show around a line.

        That is the innermost function, decorators included; the innermost statement
        for a lambda and for code outside any function.
        """
        around, scopes = [], []
        for node in self.statements:
            above = [one.lineno for one in getattr(node, "decorator_list", [])]
            place = min([node.lineno, *above]), node.end_lineno or node.lineno
            if place[0] <= line <= place[1]:
                around.append(place)
                scopes += [place] * isinstance(node, _SCOPES)
        is_loose = function.endswith(("<lambda>", "<module>")) or not scopes
        choice = around if is_loose else scopes
        return min(choice, key=lambda place: place[1] - place[0], default=None)


def _inner_codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _inner_codes(one)


class Sources:
    """Reads files once; turns JAX's frames into spans and spans into source."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}
        self._spans: dict[tuple[CodeType, int], Span] = {}
        self._seen: dict[str, set[CodeType]] = {}
        self._changed: dict[str, bool] = {}

    def of_frames(self, frames: Iterable[tuple[CodeType, int]]) -> Span | None:
        """The reader's own expression among the frames that made an equation.

        The innermost one: what a library's code does in it belongs to it.
        """
        for code, offset in frames:
            path = code.co_filename
            if not _functions.is_library(path):
                self._seen.setdefault(path, set()).add(code)
                return self._span(code, offset)
        return None

    def _span(self, code: CodeType, offset: int) -> Span:
        key = code, offset
        if key not in self._spans:
            path, name, line, column, end, end_column = _equations.place(code, offset)
            file, label = self._file(path), _functions.file_label(path)
            column, end_column = file.column(line, column), file.column(end, end_column)
            name = name.rsplit(".", 1)[-1]
            self._spans[key] = Span(label, name, line, column, end, end_column, path)
        return self._spans[key]

    def changed_files(self) -> list[str]:
        """The labels of the reader's files that changed since they were imported."""
        found = [path for path in self._seen if self.is_changed(path)]
        return [_functions.file_label(path) for path in found]

    def is_changed(self, path: str) -> bool:
        """Whether a file's text is no longer what its functions were made of.

        To be asked when all frames are known.
        """
        if path not in self._changed:
            # Test runners and type checkers rewrite what they import, so a function
            # may be another than the file's though nobody has written the file.
            file = self._file(path)
            seen = self._seen.get(path, ())
            is_same = not file.lines or all(map(file.has, seen))
            self._changed[path] = not is_same and file.was_written_since
        return self._changed[path]

    def expression(self, span: Span | None) -> str | None:
        """Give the text of a span on one line, or None if there is no source."""
        if span is None or self.is_changed(span.path):
            return None
        lines = self._file(span.path).lines[span.line - 1 : span.end_line]
        if not lines:
            return None
        lines[-1] = lines[-1][: span.end_column]
        lines[0] = lines[0][span.column :]
        text = "\n".join(lines).strip()
        return (normal(text) if "\n" in text else text) or None

    def pieces(self, start: Place | None, spans: list[Span]) -> tuple[Source, ...]:
        """Collect the function's source, then that of each helper involved."""
        places = [] if start is None else [start]
        places += [(span.path, span.line, span.function) for span in spans]
        found = [self._piece(*place) for place in dict.fromkeys(places)]
        # A generator inside a function has a name of its own, but the same text.
        unique: dict[tuple[str, int, int], Source] = {}
        for p in filter(None, found):
            unique.setdefault((p.path, p.line, p.end_line), p)
        all_of = unique.values()
        return tuple(
            p for p in all_of if not any(q.holds(p) for q in all_of if q is not p)
        )

    def first_line(self, fn: Callable[..., Any]) -> Place | None:
        """Find file, line and name of the function that a callable comes from."""
        code = _functions.code_of(fn)
        if code is None or _functions.is_library(code.co_filename):
            return None
        self._seen.setdefault(code.co_filename, set()).add(code)
        return code.co_filename, code.co_firstlineno, code.co_name

    def _file(self, path: str) -> _File:
        if path not in self._files:
            self._files[path] = _File.read(path)
        return self._files[path]

    def _piece(self, path: str, line: int, function: str) -> Source | None:
        file = self._file(path)
        found = None if self.is_changed(path) else file.extent(line, function)
        if found is None:
            return None
        lines = file.lines[found[0] - 1 : found[1]]
        indent = len(lines[0]) - len(lines[0].lstrip())
        cuts = tuple(min(indent, len(x) - len(x.lstrip())) for x in lines)
        text = "\n".join(x[cut:] for x, cut in zip(lines, cuts, strict=True))
        label = _functions.file_label(path)
        return Source(function, label, found[0], text, cuts, path)
