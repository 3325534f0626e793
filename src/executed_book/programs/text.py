"""The text of a program: a cell after the statements that it depends on.

A program has to give the page's output both as a file and pasted at the interactive
prompt, and the two differ from a notebook cell in what they show:

- A file shows no bare expression, so the one that the page shows becomes
  `print(repr(...))`. The prompt then shows it once as well.
- The prompt of Python 3.12 and before shows every bare expression, so those that the
  page does not show become `_ = ...`. Calls that only draw stay as they are, and so
  does code whose own text may be shown, in a traceback.
- At that prompt an empty line ends an indented block, so no block has one inside and
  each is followed by one.

What an earlier cell printed is not printed again, and what it raised is not raised: an
earlier statement that does so, and is needed, runs with that turned away.
"""

from __future__ import annotations

import ast
import builtins
import io
import re
import tokenize
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from . import libraries
from .cells import ParsedCell, SourceCell
from .names import dotted, root_name
from .slicing import CodeStatement, Page, bindings

_COMPOUND = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.With,
    ast.AsyncWith,
    ast.Try,
    ast.TryStar,
    ast.Match,
)
# What changes the environment; passing `os.environ` on to another process does not.
_ENVIRONMENT = re.compile(
    r"\bos\.environ(\[|\.(update|setdefault|pop|clear)\b)|\bos\.(putenv|unsetenv)\b"
)
# What may show the program's own text.
_SHOWS_SOURCE = re.compile(
    r"\btraceback\b|\binspect\b|__traceback__|exc_info|linecache|\.exception\("
)
_CALLBACKS = re.compile(r"debug\.|callback")
_INDENT = "    "


@dataclass(frozen=True)
class Program:
    """A cell with what it needs, as the text of a Python program.

    Attributes:
        text: the program.
        cell: index of the cell it is of.
        kept: the earlier statements it holds, as (cell, line in the cell).
    """

    text: str
    cell: int
    kept: tuple[tuple[int, int], ...] = ()

    @property
    def sets_environment(self) -> bool:
        """Whether it must start in an interpreter that has not imported JAX yet."""
        return bool(_ENVIRONMENT.search(self.text))


def header(address: str, jax_version: str) -> str:
    """The first line of each program.

    >>> header("https://example.org/numpy/random.html", "0.12.0")
    '# https://example.org/numpy/random.html, run with JAX 0.12.0'
    """
    return f"# {address}" + (f", run with JAX {jax_version}" if jax_version else "")


def program(cells: Page | Sequence[SourceCell], k: int, header: str) -> Program:
    """Cell `k` preceded by the statements of the page that it depends on.

    Args:
        cells: the page. To get the programs of many of its cells use `Programs`.
        k: index of the cell.
        header: the first line, a comment.

    Raises:
        NoFaithfulProgram: no program could be told to do what the page does.

    >>> cells = [SourceCell("a = [1]"), SourceCell("b = 2"), SourceCell("a")]
    >>> print(program(cells, 2, "# here").text)
    # here
    a = [1]
    <BLANKLINE>
    print(repr(a))
    <BLANKLINE>
    """
    page = cells if isinstance(cells, Page) else Page(cells)
    return Programs(page, header).of(k)


class Programs:
    """The programs of a page's cells.

    Args:
        page: the page.
        header: the first line of each program, a comment.

    >>> page = Page([SourceCell("a = [1]"), SourceCell("b = 2"), SourceCell("a")])
    >>> made = Programs(page, "# here")
    >>> made.of(2).kept, made.of(2, [(2, 1)]).kept, made.above(2)
    (((0, 1),), ((0, 1), (1, 1)), [(1, 1), (2, 1)])
    """

    def __init__(self, page: Page, header: str) -> None:
        self.page = page
        self.header = header
        self._texts: dict[tuple[int, bool], list[_Piece]] = {}

    def of(self, k: int, added: Collection[tuple[int, int]] = ()) -> Program:
        """Cell `k` preceded by the statements of the page that it depends on.

        `added` are further statements, as (cell, line), both from 1.

        Raises:
            NoFaithfulProgram: no program could be told to do what the page does.
        """
        page = self.page
        more = [s.index for s in page.statements if (s.cell + 1, s.first) in added]
        statements = [page.statements[i] for i in page.needed(k, more)]
        cell = page.cells[k]
        if not cell.is_python:
            return Program("\n".join([self.header, *cell.lines, ""]), k)
        marked = not self._shows_source(statements, k)
        pieces = [p for s in statements for p in self._earlier(s, marked)]
        pieces += self._target(k, marked)
        kept = tuple((s.cell, s.first) for s in statements)
        return Program(_assemble(self.header, _first(_ordered(pieces))), k, kept)

    def above(self, k: int) -> list[tuple[int, int]]:
        """All statements above cell `k` that run on the page, as `added` takes them."""
        above = (s for s in self.page.statements if s.cell < k and s.runs)
        return [(s.cell + 1, s.first) for s in above]

    def _shows_source(self, statements: Iterable[CodeStatement], k: int) -> bool:
        if not self._may_show_source:
            return False
        kept = [*statements, *self.page.of(k)]
        return any(_SHOWS_SOURCE.search(_source(self.page, s)) for s in kept)

    @cached_property
    def _may_show_source(self) -> bool:
        lines = (line for cell in self.page.cells for line in cell.lines)
        return any(map(_SHOWS_SOURCE.search, lines))

    @cached_property
    def _waits_for_callbacks(self) -> bool:
        """Callbacks print when they are run, which may be after the call returned."""
        lines = (line for cell in self.page.cells for line in cell.lines)
        return "jax" in self.page.paths and any(map(_CALLBACKS.search, lines))

    # -- earlier statements

    def _earlier(self, statement: CodeStatement, marked: bool) -> list[_Piece]:
        """The pieces of an earlier statement; `marked` is whether `_ =` is put in."""
        key = statement.index, marked
        if key not in self._texts:
            self._texts[key] = list(self._written(statement, marked))
        return self._texts[key]

    def _written(self, statement: CodeStatement, marked: bool) -> Iterator[_Piece]:
        page, lines = self.page, self.page.cells[statement.cell].lines
        first = _comment_above(lines, statement.first)
        text = "\n".join(lines[first - 1 : statement.last])
        silent = page.is_silent(statement)
        if not silent or statement.fails:
            yield from self._turned_away(statement, text, silent)
            return
        edits = list(_silenced(page, statement, marked))
        if edits:
            edited = edit(lines[first - 1 : statement.last], edits, above=first - 1)
            text = "\n".join(edited)
        yield _piece(page, statement, text)

    def _turned_away(
        self, statement: CodeStatement, text: str, silent: bool
    ) -> Iterator[_Piece]:
        """A statement whose output, or whose failure, an earlier cell has shown."""
        managers, modules = [], {"contextlib"}
        if statement.fails:
            managers.append(f"contextlib.suppress({_failure(self.page, statement)})")
        if not silent:
            managers.append("contextlib.redirect_stdout(io.StringIO())")
            modules.add("io")
        body = indented(_without_blank_lines(text))
        if not silent and self._waits_for_callbacks:
            modules.add("jax")
            body += f"\n{_INDENT}jax.effects_barrier()"
        for module in sorted(modules):
            yield _Piece(f"import {module}", statement.cell, is_import=True)
        note = "  # shown by an earlier cell"
        text = f"with {', '.join(managers)}:{note}\n{body}"
        piece = _piece(self.page, statement, text)
        below = self.page.effects[statement.index].prints_below
        yield from _below(piece) if below and not silent else [piece]

    # -- the cell itself

    def _target(self, k: int, marked: bool) -> Iterator[_Piece]:
        page, cell, statements = self.page, self.page.cells[k], self.page.of(k)
        edits = [e for s in statements for e in _shown(page, cell, s, marked)]
        lines = edit(cell.lines, edits)
        end = 0
        for statement in statements:
            first = _comment_above(lines, statement.first, after=end)
            between = _trimmed(lines[end : first - 1])
            text = "\n".join(lines[first - 1 : statement.last])
            if statement is statements[-1]:
                text = _without_semicolon(text)
            if between:
                yield _Piece(between, k)
            yield _piece(page, statement, text)
            end = statement.last
        rest = _trimmed(lines[end:])
        if rest:
            yield _Piece(rest, k)


# -- pieces of a program: statements with their comments


@dataclass(frozen=True)
class _Piece:
    text: str
    cell: int
    is_import: bool = False
    sets_environment: bool = False
    # Whether it writes a file, which may be a module that is imported below.
    writes: bool = False
    is_compound: bool = False
    # The statement it is, if it is one of the page.
    statement: CodeStatement | None = None


def _piece(page: Page, statement: CodeStatement, text: str) -> _Piece:
    compound = isinstance(statement.node, _COMPOUND) or text.startswith("with ")
    needs = page.effects[statement.index]
    return _Piece(
        _without_blank_lines(text) if compound else text,
        statement.cell,
        is_import=statement.is_import and _may_move(page, statement),
        sets_environment=needs.sets_environment,
        writes=needs.writes_files,
        is_compound=compound,
        statement=statement,
    )


def _may_move(page: Page, statement: CodeStatement) -> bool:
    """Whether an import may stand above all that is no import.

    Not if the page gives its name another value, even that of another import; and a
    built-in function of that name may be used before.
    """
    names = dict(bindings(statement.node))
    bound_once = all(page.import_paths[name] == {path} for name, path in names.items())
    return bound_once and not any(hasattr(builtins, name) for name in names)


def _failure(page: Page, statement: CodeStatement) -> str:
    """The class to suppress for a statement that raises what its cell announces."""
    name = (page.cells[statement.cell].source.raises or "").partition(":")[0]
    found = getattr(builtins, name, None)
    is_plain = isinstance(found, type) and not issubclass(found, Exception)
    return name if is_plain else "Exception"


def _below(piece: _Piece) -> Iterator[_Piece]:
    """Turns away what is printed past the `sys.stdout` of the moment.

    Other processes do so, and who kept the real one.
    """
    for module in ("os", "sys"):
        yield _Piece(f"import {module}", piece.cell, is_import=True)
    yield _Piece(
        "_shown = os.dup(1)\n_ = os.dup2(os.open(os.devnull, os.O_WRONLY), 1)",
        piece.cell,
    )
    yield piece
    yield _Piece("sys.stdout.flush()\n_ = os.dup2(_shown, 1)", piece.cell)


def _source(page: Page, statement: CodeStatement) -> str:
    lines = page.cells[statement.cell].lines
    return "\n".join(lines[statement.first - 1 : statement.last])


def _trimmed(lines: Sequence[str]) -> str:
    return "\n".join(line for line in lines if line.strip())


def _comment_above(lines: Sequence[str], first: int, after: int = 0) -> int:
    while first - 1 > after and lines[first - 2].startswith("#"):
        first -= 1
    return first


# -- what is shown

# An insertion: line in the cell, column in bytes, text.
Edit = tuple[int, int, str]


def _shown(
    page: Page, cell: ParsedCell, statement: CodeStatement, marked: bool
) -> Iterator[Edit]:
    node = statement.node
    if not (isinstance(node, ast.Expr) and node is cell.nodes[-1]):
        yield from _silenced(page, statement, marked)
    elif cell.source.raises is not None:
        return
    elif is_displayed(page, cell, node):
        yield from printed(node, cell.lines)
    elif cell.source.displays is None or hides_value(cell.lines):
        yield from _silenced(page, statement, marked)


def is_displayed(page: Page, cell: ParsedCell, node: ast.Expr) -> bool:
    """Whether the page shows the value of a cell's last expression."""
    if hides_value(cell.lines):
        return False
    if cell.source.displays is not None:
        return cell.source.displays
    return _has_value(page, node.value)


def hides_value(lines: Sequence[str]) -> bool:
    """Whether a cell's last statement ends with a semicolon, which hides its value."""
    if not any(";" in line for line in lines[-3:]):
        return False
    tokens = tokenize.generate_tokens(io.StringIO("\n".join(lines)).readline)
    layout = (
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.ENDMARKER,
        tokenize.DEDENT,
    )
    code = [token.string for token in tokens if token.type not in layout]
    return code[-1:] == [";"]


def printed(node: ast.Expr, lines: Sequence[str]) -> Iterator[Edit]:
    """What makes an expression print itself."""
    source = ast.get_source_segment("\n".join(lines), node) or ""
    call = ast.parse(f"repr({source})", mode="eval").body
    assert isinstance(call, ast.Call)
    # A tuple without parentheses would become several arguments.
    same = [ast.dump(a) for a in call.args] == [ast.dump(node.value)]
    opening, closing = ("print(repr(", "))") if same else ("print(repr((", ")))")
    yield node.lineno, node.col_offset, opening
    yield node.end_lineno or node.lineno, node.end_col_offset or 0, closing


def _silenced(page: Page, statement: CodeStatement, marked: bool) -> Iterator[Edit]:
    if "_" in page.names_read or not marked:
        return
    for node in _bare_expressions(statement.node):
        drawn = _draws(page, node.value)
        if not drawn and _has_value(page, node.value):
            yield node.lineno, node.col_offset, "_ = "


def _bare_expressions(node: ast.AST) -> Iterator[ast.Expr]:
    """The expression statements that run when a top-level statement does."""
    if isinstance(node, ast.Expr):
        yield node
    elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                yield from _bare_expressions(child)


def _draws(page: Page, value: ast.expr) -> bool:
    start = root_name(value)
    return bool(start) and (
        page.paths.get(start, "").startswith("matplotlib")
        or start in page.drawing_names
    )


def _has_value(page: Page, value: ast.expr) -> bool:
    """Whether an expression may have a value other than None, told from its syntax."""
    if not isinstance(value, ast.Call):
        return not (isinstance(value, ast.Constant) and value.value is None)
    path = _path(value.func, page)
    if path:
        return not path.startswith(libraries.GIVES_NONE) and not _draws(page, value)
    if isinstance(value.func, ast.Attribute):
        name = value.func.attr
        gives_none = name in libraries.METHODS_GIVE_NONE and not _is_update(value.func)
        return not (gives_none or page.gives_none(f".{name}") or _draws(page, value))
    if isinstance(value.func, ast.Name):
        name = value.func.id
        return f"builtins.{name}" not in libraries.GIVES_NONE and not page.gives_none(
            name
        )
    return True


def _is_update(method: ast.Attribute) -> bool:
    """Whether a method is one of `x.at[i]`, which gives a new array."""
    path = [n for n in ast.walk(method.value) if isinstance(n, ast.Attribute)]
    return any(n.attr == "at" for n in path)


def _path(node: ast.expr, page: Page) -> str:
    """`jax.numpy.sum` for `jnp.sum`; empty unless it starts from an imported name."""
    root, dot, rest = dotted(node).partition(".")
    return f"{page.paths[root]}{dot}{rest}" if root in page.paths else ""


# -- text


def edit(lines: Sequence[str], edits: Iterable[Edit], above: int = 0) -> list[str]:
    """Lines with texts inserted; `above` lines of the cell stand before them."""
    edited = list(lines)
    for line, column, text in sorted(edits, reverse=True):
        raw = edited[line - 1 - above].encode()
        new = raw[:column] + text.encode() + raw[column:]
        edited[line - 1 - above] = new.decode()
    return edited


def _without_semicolon(text: str) -> str:
    body, mark, comment = text.partition("  #")
    return body.rstrip().removesuffix(";") + mark + comment


def _inside_strings(text: str) -> set[int]:
    """The lines, from 0, that begin inside a string."""
    if '"""' not in text and "'''" not in text and "\\\n" not in text:
        return set()
    inside, depth, start = set[int](), 0, 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = tokenize.tok_name[token.type]
        if kind == "STRING":
            inside |= set(range(token.start[0], token.end[0]))
        elif kind in ("FSTRING_START", "TSTRING_START"):
            depth += 1
            start = token.start[0] if depth == 1 else start
        elif kind in ("FSTRING_END", "TSTRING_END"):
            depth -= 1
            if not depth:
                inside |= set(range(start, token.end[0]))
    return inside


def _without_blank_lines(text: str) -> str:
    if "\n\n" not in text and "\n " not in text:
        return text
    inside, lines = _inside_strings(text), text.split("\n")
    kept = (line for i, line in enumerate(lines) if line.strip() or i in inside)
    return "\n".join(kept)


def indented(text: str) -> str:
    """Text one level deeper, apart from lines inside strings."""
    inside, lines = _inside_strings(text), text.split("\n")
    return "\n".join(
        line if i in inside or not line else f"{_INDENT}{line}"
        for i, line in enumerate(lines)
    )


def _ordered(pieces: Iterable[_Piece]) -> list[_Piece]:
    """Imports first, each one once.

    An import does not pass a statement that sets the environment or the import path:
    what it imports may read them. Nor does that of a module which a statement above it
    may have written.
    """
    ordered: list[_Piece] = []
    seen, start, has_written = set[str](), 0, False
    for piece in pieces:
        stays = has_written and not _is_installed(piece)
        if not piece.is_import or stays:
            ordered.append(piece)
            has_written |= piece.writes
            if piece.sets_environment:
                start = len(ordered)
        elif piece.text not in seen:
            seen.add(piece.text)
            ordered.insert(start, piece)
            start += 1
    return ordered


def _is_installed(piece: _Piece) -> bool:
    if piece.statement is None:
        return True
    paths = (path for _, path in bindings(piece.statement.node))
    return all(map(libraries.is_known, paths))


def _first(pieces: Sequence[_Piece]) -> list[_Piece]:
    """What Python wants at the top of a file comes first."""
    future = [p for p in pieces if p.text.startswith("from __future__")]
    once = {p.text: replace(p, is_import=True) for p in future}
    return [*once.values(), *(p for p in pieces if p not in future)]


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
