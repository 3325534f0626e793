"""Whether an assertion can fail, judged by its code and what its names come from.

An assertion tells something only if a value reaches it that a library or a function of
the page computed. The value of a name is either written on the page, or live: computed
by something. What cannot be told is live.
"""

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Self

from ..names import Code, bound_names, free_names, imports, looked_up, own_names, parsed

#: Modules of Python's own that tell of nothing but what they are given.
_PLAIN = frozenset(
    {"abc", "cmath", "collections", "contextlib", "copy", "dataclasses", "datetime"}
    | {"decimal", "enum", "fractions", "functools", "html", "io", "itertools", "json"}
    | {"math", "numbers", "operator", "random", "re", "statistics", "string"}
    | {"textwrap", "types", "typing", "__future__"}
)

#: Built-in functions that give nothing but what they are given; the others can run,
#: read or look at anything.
_BUILTINS = frozenset(dir(builtins)) - frozenset(
    {"exec", "eval", "open", "input", "globals", "locals", "vars", "compile"}
    | {"__import__"}
)


@dataclass(frozen=True)
class Assertion:
    """An assertion of a cell, by its line there (from 1)."""

    line: int
    can_fail: bool
    code: str


def assertions(sources: Iterable[str]) -> list[list[Assertion]]:
    """The assertions of each of some cells that run one after the other.

    Besides `assert` these are functions of libraries that are called `assert_…`, and
    `raise AssertionError`.

    >>> label = ["import jax", "x = 'a'\\nassert x == 'a'", "assert jax.devices()"]
    >>> [[a.can_fail for a in found] for found in assertions(label)]
    [[], [False], [True]]
    """
    flow = _Flow()
    return [sorted(flow.cell(source), key=lambda one: one.line) for source in sources]


@dataclass
class _Flow:
    """Where the values of names come from, as statements run one after the other.

    A statement counts as one with all that is inside it. What it mentions beside
    something live is live from then on, since it may have been changed.

    Attributes:
        known: the names that are bound so far.
        live: those whose values something computed.
        modules: the names of imports, which no statement changes.
        shared: the names that functions of the page use whenever they are called.
    """

    known: set[str] = field(default_factory=set)
    live: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    shared: set[str] = field(default_factory=set)

    def cell(self, source: str) -> Iterator[Assertion]:
        try:
            yield from [*self._statements(parsed(source).body)]
        except (SyntaxError, RecursionError):  # magics, which only IPython reads; depth
            for number, line in enumerate(source.splitlines(), 1):
                if line.lstrip().startswith("assert "):
                    yield Assertion(number, True, line.strip())

    def _statements(self, body: Iterable[ast.stmt]) -> Iterator[Assertion]:
        for node in body:
            self._follow(node)
            flow = self._inside(node) if isinstance(node, Code) else self
            swallowed = set(_swallowed(node))
            for inner in ast.walk(node):
                can_fail = flow.judge(inner, within=node)
                if can_fail is not None:
                    can_fail = can_fail and inner not in swallowed
                    code = ast.unparse(inner).split("\n")[0]
                    yield Assertion(getattr(inner, "lineno", 1), can_fail, code)

    def _follow(self, node: ast.stmt) -> None:
        """Note where the values come from of all that a statement may change."""
        bound = set(bound_names([node]))
        self.known |= bound
        if isinstance(node, ast.Import | ast.ImportFrom):
            paths = dict(imports(node))
            plain = {n for n, path in paths.items() if path.split(".")[0] in _PLAIN}
            self.modules |= bound
            self.live = (self.live | bound) - plain
        elif isinstance(node, Code):
            self.live.add(node.name)  # it computes, and may be given anything
        elif not isinstance(node, ast.Assert):
            if isinstance(node, ast.Assign):
                names = (n for n in ast.walk(node) if isinstance(n, ast.Name))
                loaded = {n.id for n in names if isinstance(n.ctx, ast.Load)}
                self.live -= bound - loaded
            if self.reads(node):
                self.live |= looked_up(node) - self.modules
        for inner in ast.walk(node):
            if isinstance(inner, Code):
                self.shared |= free_names(inner) - self.modules - _BUILTINS
        self.live |= self.shared

    def _inside(self, code: Code) -> Self:
        """The flow in a function or a class, whose own names may hold anything."""
        codes = (inner for inner in ast.walk(code) if isinstance(inner, Code))
        return type(self)(self.known, self.live.union(*map(own_names, codes)))

    def judge(self, node: ast.AST, within: ast.stmt) -> bool | None:
        """Whether an assertion can fail; None for any other part of a statement."""
        match node:
            case ast.Assert(test=ast.Constant(value=value)):
                return not value and self.reads(within)
            case ast.Assert(test=test):
                return self._may_fail(test)
            case ast.Raise(exc=ast.expr() as error):
                if "AssertionError" in ast.unparse(error):
                    return isinstance(within, Code) or self.reads(within)
            case ast.Expr(value=ast.Call(func=function) as call):
                # A function like `numpy.testing.assert_allclose`.
                if ast.unparse(function).rpartition(".")[2].startswith("assert"):
                    return any(map(self.reads, [*call.args, *call.keywords]))
        return None

    def reads(self, node: ast.AST) -> bool:
        """Whether code names something that is live, or that is not known."""
        names = looked_up(node)
        return bool(names & self.live or names - self.known - _BUILTINS)

    def _may_fail(self, test: ast.expr) -> bool:
        """Whether the test of an assertion can be false."""
        match test:
            case ast.Constant():
                return not test.value
            case ast.Tuple() | ast.List() | ast.Set():
                return not test.elts
            case ast.Dict():
                return not test.keys
            case ast.Lambda() | ast.GeneratorExp():
                return False
            case ast.BoolOp(op=ast.And()):
                return any(map(self._may_fail, test.values))
            case ast.BoolOp():
                return all(map(self._may_fail, test.values))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                is_length = ast.unparse(left).startswith("len(")
                if is_length and isinstance(op, ast.GtE) and ast.unparse(right) == "0":
                    return False
                if isinstance(left, ast.Name) and ast.dump(left) == ast.dump(right):
                    return False
        return self.reads(test)


def _swallowed(node: ast.stmt) -> Iterator[ast.AST]:
    """The parts of a statement whose failing assertions nobody hears of."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Try):
            is_silent = not inner.orelse and any(map(_is_silent, inner.handlers))
        elif isinstance(inner, ast.With | ast.AsyncWith):
            managers = ", ".join(ast.unparse(item) for item in inner.items)
            is_silent = "suppress(" in managers and bool(_CATCHES.search(managers))
        else:
            continue
        if is_silent:
            for statement in inner.body:
                yield from ast.walk(statement)


#: What catches a failing assertion.
_CATCHES = re.compile(r"\b(AssertionError|Exception|BaseException)\b")


def _is_silent(handler: ast.ExceptHandler) -> bool:
    """Whether a handler takes a failing assertion and does nothing."""
    kinds = "Exception" if handler.type is None else ast.unparse(handler.type)
    is_empty = all(
        isinstance(statement, ast.Pass | ast.Continue)
        or (
            isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Constant)
        )
        for statement in handler.body
    )
    return is_empty and _CATCHES.search(kinds) is not None
