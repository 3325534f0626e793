"""The text of a program: a cell after the statements that it depends on.

A program has to give the page's output both as a file and pasted at the interactive
prompt, and the two differ from a notebook cell in what they show:

- A file shows no bare expression, so the expression that the page shows becomes
  `print(repr(...))`. The prompt then shows it once as well.
- The prompt of Python 3.12 and before shows every bare expression, so those that the
  page does not show become `_ = ...`. Calls that only draw stay as they are.
- At that prompt an empty line ends an indented block, so no block has one inside and
  each is followed by one.

What an earlier cell printed is not printed again, and what it raised is not raised: an
earlier statement that does so, and is needed, runs with that turned away.
"""

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

from ..names import dotted, parsed, root_name
from . import libraries
from .cells import ParsedCell
from .slicing import Page, Statement

# What changes the environment; passing `os.environ` on to another process does not.
_ENVIRONMENT = re.compile(
    r"\bos\.environ(\[|\.(update|setdefault|pop|clear)\b)|\bos\.(putenv|unsetenv)\b"
)
# What may decide how a later import behaves.
_BEFORE_IMPORTS = re.compile(
    rf"{_ENVIRONMENT.pattern}|\bsys\.(meta_path|modules|path)\b"
)
# Callbacks print when they are run, which may be after the call returned.
_CALLBACKS = re.compile(r"debug\.|callback")
_INDENT = "    "


def sets_environment(text: str) -> bool:
    """Whether a program must start where JAX has not been imported yet."""
    return bool(_ENVIRONMENT.search(text))


@dataclass(frozen=True)
class _Piece:
    """A statement with its comments."""

    text: str
    cell: int
    is_import: bool = False
    is_compound: bool = False


class Programs:
    """The programs of a page's cells.

    Args:
        page: the page.
        header: the first line of each program, a comment.

    >>> from executed_book.programs.cells import SourceCell
    >>> page = Page([SourceCell("a = [1]"), SourceCell("b = 2"), SourceCell("a")])
    >>> made = Programs(page, "# here")
    >>> print(made.of(2, [(2, 1)]))
    # here
    a = [1]
    <BLANKLINE>
    b = 2
    <BLANKLINE>
    a
    <BLANKLINE>
    >>> made.others_above(2)
    [(2, 1)]
    """

    def __init__(self, page: Page, header: str) -> None:
        self.page, self.header = page, header
        self._earlier = cache(self._written)

    def of(self, k: int, added: Collection[tuple[int, int]] = ()) -> str:
        """The text of cell `k` preceded by the statements that it depends on.

        `added` are further statements, as (cell, line), both from 1.

        Raises:
            NoFaithfulProgram: no program could be told to do what the page does.
        """
        page = self.page
        more = [s.index for s in page.statements if (s.cell + 1, s.first) in added]
        statements = [page.statements[i] for i in page.needed(k, more)]
        cell = page.cells[k]
        if cell.problem is not None:
            return "\n".join([self.header, *cell.lines, ""])
        pieces = [piece for s in statements for piece in self._earlier(s)]
        pieces += _own_pieces(page, k)
        return _assemble(self.header, _ordered(pieces))

    def others_above(self, k: int) -> list[tuple[int, int]]:
        """The statements above cell `k` that it does not need, as `of` takes them."""
        needed = self.page.needed(k)
        above = (s for s in self.page.statements if s.cell < k and s.runs)
        return [(s.cell + 1, s.first) for s in above if s.index not in needed]

    @cached_property
    def _waits_for_callbacks(self) -> bool:
        lines = (line for cell in self.page.cells for line in cell.lines)
        return "jax" in self.page.paths and any(map(_CALLBACKS.search, lines))

    def _written(self, statement: Statement) -> list[_Piece]:
        """An earlier statement, without what it shows and raises: a cell above did."""
        page, cell = self.page, statement.cell
        lines, silent = page.cells[cell].lines, page.is_silent(statement)
        first = _comment_above(lines, statement.first)
        if silent and not statement.fails:
            edited = _edit(lines, _silenced(page, statement))
            text = "\n".join(edited[first - 1 : statement.last])
            return [_piece(page, statement, text)]
        text = _without_blank_lines("\n".join(lines[first - 1 : statement.last]))
        body, managers, modules = _indented(text), [], {"contextlib"}
        if statement.fails:
            managers.append("contextlib.suppress(Exception)")
        if not silent:
            managers.append("contextlib.redirect_stdout(io.StringIO())")
            modules.add("io")
        if not silent and self._waits_for_callbacks:
            modules.add("jax")
            body += f"\n{_INDENT}jax.effects_barrier()"
        imports = [_Piece(f"import {m}", cell, is_import=True) for m in sorted(modules)]
        head = f"with {', '.join(managers)}:  # shown by an earlier cell"
        return [*imports, _piece(page, statement, f"{head}\n{body}")]


# -- pieces of a program


def _piece(page: Page, statement: Statement, text: str) -> _Piece:
    compound = text.startswith("with ") or any(
        hasattr(statement.node, name) for name in ("body", "cases")
    )
    text = _without_blank_lines(text) if compound else text
    return _Piece(text, statement.cell, page.may_move(statement.node), compound)


def _own_pieces(page: Page, k: int) -> Iterator[_Piece]:
    """The cell itself."""
    cell, statements, end = page.cells[k], page.of(k), 0
    lines = _edit(cell.lines, [e for s in statements for e in _shown(page, cell, s)])
    for statement in statements:
        first = _comment_above(lines, statement.first, after=end)
        if between := _trimmed(lines[end : first - 1]):
            yield _Piece(between, k)
        yield _piece(page, statement, "\n".join(lines[first - 1 : statement.last]))
        end = statement.last
    if rest := _trimmed(lines[end:]):
        yield _Piece(rest, k)


def _trimmed(lines: Sequence[str]) -> str:
    return "\n".join(line for line in lines if line.strip())


def _comment_above(lines: Sequence[str], first: int, after: int = 0) -> int:
    while first - 1 > after and lines[first - 2].startswith("#"):
        first -= 1
    return first


# -- what is shown

# An insertion: line in the cell, column in bytes, text.
_Edit = tuple[int, int, str]


def _shown(page: Page, cell: ParsedCell, statement: Statement) -> Iterator[_Edit]:
    node = statement.node
    if not (isinstance(node, ast.Expr) and node is cell.nodes[-1]):
        yield from _silenced(page, statement)
    elif cell.source.displays and cell.source.raises is None:
        yield from _printed(node)
    elif cell.lines[-1].rstrip().endswith(";"):  # which hides the value
        yield from _silenced(page, statement)


def _printed(node: ast.Expr) -> Iterator[_Edit]:
    """What makes an expression print itself."""
    opening, closing = "print(repr(", "))"
    if isinstance(node.value, ast.Tuple):  # without parentheses: several arguments
        opening, closing = "print(repr((", ")))"
    yield node.lineno, node.col_offset, opening
    yield node.end_lineno or node.lineno, node.end_col_offset or 0, closing


def _silenced(page: Page, statement: Statement) -> Iterator[_Edit]:
    for node in _bare_expressions(statement.node):
        if _has_value(page, node.value):
            yield node.lineno, node.col_offset, "_ = "


def _bare_expressions(node: ast.AST) -> Iterator[ast.Expr]:
    """The expression statements that run when a top-level statement does."""
    if isinstance(node, ast.Expr):
        yield node
    elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                yield from _bare_expressions(child)


def _has_value(page: Page, value: ast.expr) -> bool:
    """Whether the prompt would show the value of an expression, told from its syntax.

    What drawing gives is never shown.
    """
    if not isinstance(value, ast.Call):
        return not (isinstance(value, ast.Constant) and value.value is None)
    root, dot, rest = dotted(value.func).partition(".")
    path = f"{page.paths.get(root, 'builtins.' + root)}{dot}{rest}"
    method = getattr(value.func, "attr", "") if root not in page.paths else ""
    draws = root_name(value) in page.drawing_names
    gives_none = path.startswith(libraries.GIVES_NONE) or root in page.procedures
    none = libraries.METHODS_GIVE_NONE | page.procedures
    return not (draws or gives_none or method in none)


# -- text


def _edit(lines: Sequence[str], edits: Iterable[_Edit]) -> list[str]:
    """Lines with texts inserted."""
    edited = list(lines)
    for line, column, text in sorted(edits, reverse=True):
        raw = edited[line - 1].encode()
        new = raw[:column] + text.encode() + raw[column:]
        edited[line - 1] = new.decode()
    return edited


def _inside_strings(text: str) -> set[int]:
    """The lines, from 0, that begin inside a string of several lines."""
    if '"""' not in text and "'''" not in text:
        return set()
    inside, lines = set[int](), text.encode().split(b"\n")
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno:
            written = lines[node.lineno - 1][node.col_offset :]
            if re.match(rb"\w*(\"\"\"|''')", written):
                inside |= set(range(node.lineno, node.end_lineno))
    return inside


def _without_blank_lines(text: str) -> str:
    inside, lines = _inside_strings(text), text.split("\n")
    lines_left = (line for i, line in enumerate(lines) if line.strip() or i in inside)
    return "\n".join(lines_left)


def _indented(text: str) -> str:
    """Text one level deeper, apart from lines inside strings."""
    inside, lines = _inside_strings(text), text.split("\n")
    return "\n".join(
        line if i in inside or not line else f"{_INDENT}{line}"
        for i, line in enumerate(lines)
    )


def _ordered(pieces: Iterable[_Piece]) -> list[_Piece]:
    """Imports first, each one once, and above all those from the future.

    An import does not pass a statement that sets the environment or the import path:
    what it imports may read them.
    """
    ordered: list[_Piece] = []
    future: dict[str, _Piece] = {}
    seen, start = set[str](), 0
    for piece in pieces:
        if piece.text.startswith("from __future__"):
            future[piece.text] = replace(piece, is_import=True)
        elif not piece.is_import:
            ordered.append(piece)
            if _BEFORE_IMPORTS.search(piece.text):
                start = len(ordered)
        elif piece.text not in seen:
            seen.add(piece.text)
            ordered.insert(start, piece)
            start += 1
    return [*future.values(), *ordered]


def _assemble(header: str, pieces: Sequence[_Piece]) -> str:
    lines = [header]
    for before, piece in zip([None, *pieces], pieces, strict=False):
        if before and _is_apart(before, piece):
            lines.append("")
        lines.append(piece.text)
    # At the prompt an indented block still waits for an empty line.
    ends_block = bool(pieces) and pieces[-1].is_compound
    return "\n".join([*lines, *([""] if ends_block else []), ""])


def _is_apart(before: _Piece, piece: _Piece) -> bool:
    if before.is_import and piece.is_import:
        return False
    return (
        before.is_compound
        or piece.is_compound
        or before.is_import != piece.is_import
        or before.cell != piece.cell
    )
