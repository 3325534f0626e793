"""One cell of a page: what the book knows of it, and its statements."""

import ast
import itertools
import re
import warnings
from dataclasses import dataclass

from ..names import dotted, parsed, same_scope

_NOTEBOOK_ONLY = re.compile(r"(?m)^%(?:matplotlib|config|load_ext|autoreload)\b.*$")
_RUNS_ITS_CODE = re.compile(
    r"(?m)^([ \t]*)%%?(timeit|time|capture|prun)\b(?: +-\w+(?: +\d+)?)* *(.*)$"
)


@dataclass(frozen=True)
class SourceCell:
    """One code cell of a page.

    Args:
        code: its source, magics included.
        tags: the cell's tags; those tagged `keep` set state for all later cells.
        raises: the announced failure, `"TypeError: words"`, or None.
        displays: whether the executed page shows a value for the last expression.
        prints: whether it printed something.
        fails_at: the line, from 1, of the statement that raised the announced failure;
            None if that is not known, and then it is the last statement.
        label: the name by which other cells call it.
        needs: names, and labels of earlier cells, that it needs, as its author says.
    """

    code: str
    tags: frozenset[str] = frozenset()
    raises: str | None = None
    displays: bool = False
    prints: bool = False
    fails_at: int | None = None
    label: str | None = None
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class ParsedCell:
    """A cell in plain Python, its magics replaced by the code that they run.

    Attributes:
        lines: its text.
        nodes: its statements.
        problem: why it is not plain Python, with the line; None if it is.
        fails_at: the line of the statement that raises the announced failure.
    """

    source: SourceCell
    lines: tuple[str, ...]
    nodes: tuple[ast.stmt, ...] = ()
    problem: tuple[int, str] | None = None
    fails_at: int = 0


def parse(cell: SourceCell) -> ParsedCell:
    r"""A cell's statements.

    Of IPython's magics, those that concern the notebook alone go, and those that run
    code become that code: a program gives the value, and no timing is the same twice.

    >>> parse(SourceCell("%matplotlib inline\n%timeit -n 2 f(x)")).lines
    ('', 'f(x);')
    """
    try:
        text, tree = _python_of(cell.code)
        if cell.raises is not None or "await" in text or "async" in text:
            with warnings.catch_warnings(action="ignore"):
                compile(tree, "<cell>", "exec", dont_inherit=True)  # finds all mistakes
        if _starts_tasks(tree):
            raise SyntaxError("it needs the event loop that a notebook runs")
    except SyntaxError as error:
        problem = error.lineno or 1, f"not plain Python ({error.msg})"
        return ParsedCell(cell, tuple(cell.code.split("\n")), problem=problem)
    fails_at = cell.fails_at
    if any(a.end_lineno == b.lineno for a, b in itertools.pairwise(tree.body)):
        # On separate lines, so that a program can hold one without the other.
        text, fails_at = "\n".join(map(ast.unparse, tree.body)), None
        tree = parsed(text)
    lines = tuple(text.rstrip("\n").split("\n"))
    return ParsedCell(cell, lines, tuple(tree.body), fails_at=fails_at or len(lines))


def _starts_tasks(tree: ast.Module) -> bool:
    """Whether a cell's own statements ask for the event loop that runs.

    >>> [_starts_tasks(ast.parse(text)) for text in (
    ...     "t = create_task(f())", "async def g(): create_task(f())")]
    [True, False]
    """
    names = {"create_task", "ensure_future", "get_running_loop"}
    calls = (node for node in same_scope(tree.body) if isinstance(node, ast.Call))
    return any(dotted(call.func).removeprefix("asyncio.") in names for call in calls)


def _python_of(code: str) -> tuple[str, ast.Module]:
    try:
        return code, parsed(code)  # a string may hold what looks like a magic
    except SyntaxError:
        text = _RUNS_ITS_CODE.sub(_code_run, _NOTEBOOK_ONLY.sub("", code))
        return text, parsed(text)


def _code_run(magic: re.Match[str]) -> str:
    indent, name, code = magic.groups()
    end = ";" if name == "timeit" and code else ""  # it shows no value
    return f"{indent}{code}{end}"
