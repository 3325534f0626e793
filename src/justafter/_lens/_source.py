"""Where the Python source of a function and its helpers comes from."""

import ast
import functools
import inspect
import linecache
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from types import CodeType
from typing import Any

from .._internals import _equations as _internals
from ._model import Source, Span

_PACKAGE = str(Path(__file__).parent.parent)
_CELL = re.compile(r"^<|[\\/]ipykernel_\d+[\\/]|^Cell In\[")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef)


def file_label(path: str) -> str:
    """Name a file without its folders.

    >>> file_label("/srv/models/train.py"), file_label("<ipython-input-3-abc>")
    ('train.py', 'notebook cell')
    """
    return "notebook cell" if _CELL.search(path) else PurePath(path).name


@dataclass
class _File:
    """A file's lines and functions, read once."""

    path: str
    lines: list[str] = field(default_factory=list)
    tree: ast.AST | None = None

    @classmethod
    def read(cls, path: str) -> "_File":
        # Since Python 3.13, lines of "<string>" are those of `python -c`, whichever
        # exec() the function came from.
        found = [] if path == "<string>" else _lines(path)
        lines = [line.rstrip("\r\n") for line in found]
        try:
            tree = ast.parse("\n".join(lines))
        except (SyntaxError, ValueError):
            tree = None
        return cls(path, lines, tree)

    @functools.cached_property
    def nodes(self) -> list[ast.stmt]:
        every = [] if self.tree is None else ast.walk(self.tree)
        return [node for node in every if isinstance(node, ast.stmt)]

    def column(self, line: int, column: int) -> int:
        """Turn a column in bytes into one in characters."""
        if not 1 <= line <= len(self.lines):
            return column
        return len(self.lines[line - 1].encode()[:column].decode(errors="ignore"))

    def extent(self, line: int, function: str) -> tuple[int, int] | None:
        """Find the first and last line of what to show around a line.

        That is the innermost function; the innermost statement for a lambda and
        for code outside any function.
        """
        if not self.nodes:
            return None
        around = [extent(n) for n in self.nodes if covers(n, line)]
        scopes = [extent(n) for n in self.nodes if covers(n, line) and is_scope(n)]
        is_loose = function.endswith(("<lambda>", "<module>")) or not scopes
        choice = around if is_loose else scopes
        return min(choice, key=lambda e: e[1] - e[0], default=None)


def _lines(path: str) -> list[str]:
    linecache.checkcache(path)
    return linecache.getlines(path)


def is_scope(node: ast.AST) -> bool:
    """Say whether a statement defines a function."""
    return isinstance(node, _SCOPES)


def extent(node: ast.stmt) -> tuple[int, int]:
    """Give a statement's first and last line, decorators included."""
    starts = [node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]
    return min(starts), node.end_lineno or node.lineno


def covers(node: ast.stmt, line: int) -> bool:
    """Say whether a statement reaches over a line."""
    first, last = extent(node)
    return first <= line <= last


class Sources:
    """Reads files once; turns JAX's frames into spans and spans into source."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}

    def span(self, fields: tuple[str, str, int, int, int, int] | None) -> Span | None:
        """Make a span of JAX's frame; None for frames of this package."""
        if fields is None or fields[0].startswith(_PACKAGE):
            return None
        path, function, line, column, end_line, end_column = fields
        file = self._file(path)
        column = file.column(line, column)
        end_column = file.column(end_line, end_column)
        name = function.rsplit(".", 1)[-1]
        label = file_label(path)
        return Span(label, name, line, column, end_line, end_column, path)

    def expression(self, span: Span | None) -> str | None:
        """Give the text of a span on one line, or None if there is no source."""
        if span is None:
            return None
        lines = self._file(span.path).lines[span.line - 1 : span.end_line]
        if not lines:
            return None
        lines[-1] = lines[-1][: span.end_column]
        lines[0] = lines[0][span.column :]
        return " ".join(line.strip() for line in lines) or None

    def pieces(self, fn: Callable[..., Any], spans: list[Span]) -> tuple[Source, ...]:
        """Collect the function's source, then that of each helper involved."""
        start = first_line(fn)
        places = dict.fromkeys((s.path, s.line, s.function) for s in spans)
        first = [start] if start else []
        wanted = [self._piece(*place) for place in (*first, *places)]
        # A generator inside a function has a name of its own, but the same text.
        unique: dict[tuple[str, int, int], Source] = {}
        for p in wanted:
            if p is not None:
                unique.setdefault((p.path, p.line, p.end_line), p)
        pieces = list(unique.values())
        return tuple(p for p in pieces if not any(is_inside(p, q) for q in pieces))

    def _file(self, path: str) -> _File:
        if path not in self._files:
            self._files[path] = _File.read(path)
        return self._files[path]

    def _piece(self, path: str, line: int, function: str) -> Source | None:
        file = self._file(path)
        found = file.extent(line, function)
        if found is None:
            return None
        lines = file.lines[found[0] - 1 : found[1]]
        indent = len(lines[0]) - len(lines[0].lstrip())
        cuts = tuple(min(indent, len(x) - len(x.lstrip())) for x in lines)
        text = "\n".join(x[cut:] for x, cut in zip(lines, cuts, strict=True))
        return Source(function, file_label(path), found[0], text, cuts, path)


def is_inside(piece: Source, other: Source) -> bool:
    """Say whether a piece is a part of a larger one."""
    return (
        piece.path == other.path
        and other.line <= piece.line
        and piece.end_line <= other.end_line
        and other.text.count("\n") > piece.text.count("\n")
    )


def first_line(fn: Callable[..., Any]) -> tuple[str, int, str] | None:
    """Find file, line and name of the function that a callable comes from."""
    code = user_code(fn)
    if code is None:
        return None
    return code.co_filename, code.co_firstlineno, code.co_name


def user_code(fn: Any) -> CodeType | None:
    """Look through partials, methods and wrappers for the user's own code."""
    while fn is not None:
        code = getattr(fn, "__code__", None)
        inner = inner_function(fn)
        if inner is None and isinstance(code, CodeType):
            path = code.co_filename
            is_ours = path.startswith(_PACKAGE)
            return None if is_ours or not _internals.is_user_file(path) else code
        fn = inner
    return None


def inner_function(fn: Any) -> Any:
    """Unwrap one layer of a callable; None at the bottom."""
    if isinstance(fn, functools.partial):
        return fn.func
    if inspect.ismethod(fn):
        return fn.__func__
    if hasattr(fn, "__wrapped__"):
        return fn.__wrapped__
    if inspect.isfunction(fn) or inspect.isbuiltin(fn) or inspect.isclass(fn):
        return None
    call = inspect.getattr_static(type(fn), "__call__", None)
    return call if inspect.isfunction(call) else None
