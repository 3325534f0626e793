"""A page's cells as programs, as one script and as a notebook.

A program has to give the page's output both as a file and pasted at the interactive
prompt, and the two differ from a notebook cell in what they show:

- A file shows no bare expression, so the one that the page shows becomes
  `print(repr(...))`. The prompt then shows it once as well.
- The prompt of Python 3.12 and before shows every bare expression, so those that the
  page does not show become `_ = ...`. Calls that only draw stay as they are.
- At that prompt an empty line ends an indented block, so no block has one inside and
  each is followed by one.

What an earlier cell printed is not printed again: an earlier statement that prints, and
is needed for something else, runs with its output turned away.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import nbformat

from . import _known
from ._facts import changes, dotted, root
from ._slice import (
    WAY_OUT,
    NoFaithfulProgram,
    Page,
    ParsedCell,
    SourceCell,
    Statement,
)

_QUIET = "with contextlib.redirect_stdout(io.StringIO()):  # shown by an earlier cell"
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
    return f"# {address}, run with JAX {jax_version}"


def program(cells: Page | Sequence[SourceCell], k: int, header: str) -> Program:
    """Cell `k` preceded by the statements of the page that it depends on.

    Args:
        cells: the page; pass a `Page` to get the programs of many cells.
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
    target = page.cells[k]
    indices = page.needed(k)
    if not target.is_python:
        return Program("\n".join([header, *target.lines, ""]), k)
    pieces = [*_earlier(page, indices), *_target(page, k)]
    return Program(
        _assemble(header, _ordered(pieces)),
        k,
        tuple((s.cell, s.first) for s in map(page.statements.__getitem__, indices)),
    )


# -- pieces of a program: statements with their comments


@dataclass(frozen=True)
class _Piece:
    text: str
    cell: int
    is_import: bool = False
    sets_environment: bool = False
    is_compound: bool = False
    in_target: bool = False


def _piece(page: Page, statement: Statement, text: str, **options: bool) -> _Piece:
    compound = isinstance(statement.node, _COMPOUND)
    if compound:
        text = _without_blank_lines(text)
    facts = statement.facts
    return _Piece(
        text,
        statement.cell,
        is_import=statement.is_import and not _is_rebound(page, statement),
        sets_environment=facts.environment and _known.SETTINGS in facts.mutates,
        is_compound=compound,
        **options,
    )


def _is_rebound(page: Page, statement: Statement) -> bool:
    """Whether the page gives an imported name another value: it then stays in place."""
    others = (s.facts for s in page.statements if not s.is_import)
    imports = statement.facts.imports
    return any(imports & (f.binds | f.may_bind) for f in others)


def _earlier(page: Page, indices: Iterable[int]) -> Iterator[_Piece]:
    for i in indices:
        statement = page.statements[i]
        quiet = page.needs[i].prints
        edits = [] if quiet else list(_silenced(page, statement))
        lines = _edit(page.cells[statement.cell].lines, edits)
        first = _comment_above(lines, statement.first)
        text = "\n".join(lines[first - 1 : statement.last])
        if quiet:
            yield from _quiet(page, statement, text)
        else:
            yield _piece(page, statement, text)


def _quiet(page: Page, statement: Statement, text: str) -> Iterator[_Piece]:
    for module in ("contextlib", "io"):
        yield _Piece(f"import {module}", statement.cell, is_import=True)
    body = _indented(_without_blank_lines(text))
    source = "\n".join(line for c in page.cells for line in c.lines)
    if "jax" in page.paths and re.search(r"debug\.|callback", source):
        # Callbacks print when they are run, which may be after the call returned.
        body += "\n    jax.effects_barrier()"
        yield _Piece("import jax", statement.cell, is_import=True)
    yield _Piece(f"{_QUIET}\n{body}", statement.cell, is_compound=True)


def _target(page: Page, k: int) -> Iterator[_Piece]:
    cell, statements = page.cells[k], page.of(k)
    edits = [e for s in statements for e in _shown(page, cell, s)]
    lines = _edit(cell.lines, edits)
    end = 0
    for statement in statements:
        first = _comment_above(lines, statement.first, after=end)
        between = _trimmed(lines[end : first - 1])
        text = "\n".join(lines[first - 1 : statement.last])
        if statement is cell.nodes[-1] or statement is statements[-1]:
            text = _without_semicolon(text)
        if between:
            yield _Piece(between, k, in_target=True)
        yield _piece(page, statement, text, in_target=True)
        end = statement.last
    rest = _trimmed(lines[end:])
    if rest:
        yield _Piece(rest, k, in_target=True)


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
    last = statement.node is cell.nodes[-1] and isinstance(statement.node, ast.Expr)
    if not last:
        yield from _silenced(page, statement)
    elif cell.source.raises is not None:
        return
    elif _is_displayed(page, cell, statement.node):
        yield from _printed(statement.node, cell.lines)
    elif cell.source.displays is None or is_quiet(cell.lines):
        yield from _silenced(page, statement)


def _is_displayed(page: Page, cell: ParsedCell, node: ast.Expr) -> bool:
    if is_quiet(cell.lines):
        return False
    if cell.source.displays is not None:
        return cell.source.displays
    return _has_value(page, node.value)


def is_quiet(lines: Sequence[str]) -> bool:
    """Whether a cell's last statement ends with a semicolon, which hides its value."""
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


def _printed(node: ast.Expr, lines: Sequence[str]) -> Iterator[_Edit]:
    source = ast.get_source_segment("\n".join(lines), node) or ""
    call = ast.parse(f"repr({source})", mode="eval").body
    # A tuple without parentheses would become several arguments.
    same = [ast.dump(a) for a in call.args] == [ast.dump(node.value)]
    opening, closing = ("print(repr(", "))") if same else ("print(repr((", ")))")
    yield node.lineno, node.col_offset, opening
    yield node.end_lineno or node.lineno, node.end_col_offset or 0, closing


def _silenced(page: Page, statement: Statement) -> Iterator[_Edit]:
    if "_" in page.names_used:
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
    start = root(value)
    return bool(start) and (
        page.paths.get(start.id, "").startswith("matplotlib")
        or start.id in page.drawing_names
    )


def _has_value(page: Page, value: ast.expr) -> bool:
    """Whether an expression may have a value other than None, told from its syntax."""
    if not isinstance(value, ast.Call):
        return not (isinstance(value, ast.Constant) and value.value is None)
    path = dotted(value.func, page.paths)
    if path:
        return not path.startswith(_known.GIVES_NONE) and not _draws(page, value)
    if isinstance(value.func, ast.Attribute):
        name = value.func.attr
        gives_none = name in _known.CONTAINER_MUTATORS and changes(value.func)
        return not (gives_none or page.method_gives_none(name) or _draws(page, value))
    if isinstance(value.func, ast.Name):
        name = value.func.id
        return name not in _known.NONE_BUILTINS and not page.gives_none(name)
    return True


# -- text


def _edit(lines: Sequence[str], edits: Iterable[_Edit]) -> list[str]:
    edited = list(lines)
    for line, column, text in sorted(edits, reverse=True):
        raw = edited[line - 1].encode()
        edited[line - 1] = (raw[:column] + text.encode() + raw[column:]).decode()
    return edited


def _without_semicolon(text: str) -> str:
    body, mark, comment = text.partition("  #")
    return body.rstrip().removesuffix(";") + mark + comment


def _inside_strings(text: str) -> set[int]:
    """The lines, from 0, that begin inside a string."""
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
    inside, lines = _inside_strings(text), text.split("\n")
    kept = (line for i, line in enumerate(lines) if line.strip() or i in inside)
    return "\n".join(kept)


def _indented(text: str) -> str:
    inside, lines = _inside_strings(text), text.split("\n")
    return "\n".join(
        line if i in inside or not line else f"    {line}"
        for i, line in enumerate(lines)
    )


def _ordered(pieces: Iterable[_Piece]) -> list[_Piece]:
    """Imports first, each one once.

    An import does not pass a statement that sets the environment or the import path:
    what it imports may read them.
    """
    ordered: list[_Piece] = []
    seen, start = set[str](), 0
    for piece in pieces:
        if not piece.is_import:
            ordered.append(piece)
            if piece.sets_environment:
                start = len(ordered)
        elif piece.text not in seen:
            seen.add(piece.text)
            first = 0 if piece.text.startswith("from __future__") else start
            ordered.insert(first, piece)
            start += 1
    return ordered


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


# -- the whole chapter


def script(parts: Sequence[SourceCell | str], header: str) -> str:
    """A chapter as one script.

    Args:
        parts: the chapter in order: its cells, and its prose as Markdown text. Of the
            prose only the headings are kept, as comments.
        header: the first line, a comment.

    A cell that is announced to raise prints the class and the message of what it
    raised, and the script goes on; it stops if the cell does not raise.
    """
    page = Page([part for part in parts if isinstance(part, SourceCell)])
    lines, k = [header], 0
    for part in parts:
        if isinstance(part, str):
            lines += [f"\n# {line}" for line in _headings(part)]
            continue
        for at, magic in page.cells[k].magics:
            raise NoFaithfulProgram(k, k, at, f"{magic} here", WAY_OUT)
        lines += ["", "# %%", _script_cell(page, k)]
        k += 1
    return "\n".join([*lines, ""])


def _headings(prose: str) -> list[str]:
    fenced = re.sub(r"(?ms)^(`{3,}|:{3,}).*?^\1", "", prose)
    return re.findall(r"(?m)^#+ .+$", fenced)


def _script_cell(page: Page, k: int) -> str:
    cell = page.cells[k]
    if not cell.is_python:
        compiled = f'compile({cell.source.code!r}, "<cell>", "exec")'
        return _expected_to_raise(compiled, cell.source.raises or "")
    statements = page.of(k)
    edits = list[_Edit]()
    if statements and isinstance(statements[-1].node, ast.Expr):
        node = statements[-1].node
        if cell.source.raises is None and _is_displayed(page, cell, node):
            edits = list(_printed(node, cell.lines))
    text = "\n".join(_edit(cell.lines, edits)).strip("\n")
    if cell.source.raises is None:
        return text
    return _expected_to_raise(text, cell.source.raises)


def _expected_to_raise(text: str, announced: str) -> str:
    message = f"this cell was announced to raise {announced}"
    return "\n".join(
        [
            "try:",
            _indented(text),
            "except Exception as error:",
            '    print(f"{type(error).__name__}: {error}")',
            "else:",
            f"    raise AssertionError({message!r})",
        ]
    )


def notebook(parts: Sequence[SourceCell | str]) -> nbformat.NotebookNode:
    """A chapter as a notebook without outputs; `parts` as in `script`.

    Cells that are announced to raise carry the tag `raises-exception`, so that running
    all cells goes on after them.
    """
    v4 = nbformat.v4
    cells = []
    for i, part in enumerate(parts):
        if isinstance(part, str):
            cells.append(v4.new_markdown_cell(part.strip("\n"), id=f"part-{i}"))
            continue
        tags = part.tags | ({"raises-exception"} if part.raises else set())
        metadata = {"tags": sorted(tags)} if tags else {}
        code = part.code.strip("\n")
        cells.append(v4.new_code_cell(code, id=f"part-{i}", metadata=metadata))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    made = v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.validate(made)
    return made
