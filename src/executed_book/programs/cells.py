"""One cell of a page: what the book knows of it, and its statements."""

from __future__ import annotations

import ast
import itertools
from dataclasses import dataclass, replace

from .magics import Magic, python_of


@dataclass(frozen=True)
class SourceCell:
    """One code cell of a page.

    Args:
        code: its source, magics included.
        tags: the cell's tags; those tagged `keep` set state for all later cells.
        raises: the announced failure, `"TypeError: words"`, or None.
        displays: whether the executed page shows a value for the last expression;
            None if that is not known, which is then told from the syntax.
        prints: whether it printed something; None if that is not known.
        fails_at: the line, from 1, of the statement that raised the announced failure;
            None if that is not known, and then it is the last statement.
        label: the name by which other cells call it.
        needs: names, and labels of earlier cells, that it needs, as its author says.
        needs_not: names that it does not need.
    """

    code: str
    tags: frozenset[str] = frozenset()
    raises: str | None = None
    displays: bool | None = None
    prints: bool | None = None
    fails_at: int | None = None
    label: str | None = None
    needs: tuple[str, ...] = ()
    needs_not: tuple[str, ...] = ()


@dataclass(frozen=True)
class ParsedCell:
    """A cell in plain Python, its magics replaced by what they run.

    Attributes:
        lines: its text; statements that shared a line stand on lines of their own.
        nodes: its statements.
        magics: the lines that hold a magic without a counterpart in Python.
        is_python: False for a cell that does not compile, or awaits at its top level.
        fails_at: the line of the statement that raises the announced failure.
    """

    source: SourceCell
    lines: tuple[str, ...]
    nodes: tuple[ast.stmt, ...] = ()
    magics: tuple[Magic, ...] = ()
    is_python: bool = True
    fails_at: int = 0


def parse(cell: SourceCell) -> ParsedCell:
    """A cell's statements, after IPython's own transformation of its magics.

    >>> parse(SourceCell("a = 1; b = 2")).lines
    ('a = 1', 'b = 2')
    """
    try:
        text, tree, magics = python_of(cell.code)
        if cell.raises is not None or "await" in text or "async" in text:
            compile(tree, "<cell>", "exec", dont_inherit=True)  # finds all mistakes
    except SyntaxError as error:
        lines = tuple(cell.code.split("\n"))
        if cell.raises is not None:
            return ParsedCell(cell, lines, is_python=False)
        why = (error.lineno or 1, f"not plain Python ({error.msg})")
        return ParsedCell(cell, lines, magics=(why,), is_python=False)
    if cell.code.lstrip("\n").startswith("%%timeit"):
        cell = replace(cell, displays=False)
    lines, moved = _one_a_line(tuple(text.rstrip("\n").split("\n")), tree)
    nodes = tuple(ast.parse("\n".join(lines)).body if moved else tree.body)
    fails_at = len(lines)
    if cell.fails_at is not None:
        fails_at = cell.fails_at + sum(line <= cell.fails_at for line in moved)
    return ParsedCell(cell, lines, nodes, tuple(magics), fails_at=fails_at)


def _one_a_line(
    lines: tuple[str, ...], tree: ast.Module
) -> tuple[tuple[str, ...], list[int]]:
    """Puts top-level statements that share a line on lines of their own.

    Also gives the line of each that was put on another.
    """
    split, moved = list(lines), list[int]()
    for before, node in reversed(list(itertools.pairwise(tree.body))):
        if before.end_lineno == node.lineno:
            raw = split[node.lineno - 1].encode()
            first, rest = raw[: before.end_col_offset], raw[node.col_offset :]
            split[node.lineno - 1 : node.lineno] = [first.decode(), rest.decode()]
            moved.append(node.lineno)
    return tuple(split), moved
