"""Whether an assertion can fail, judged by its code and what its names come from.

An assertion tells something only if a value reaches it that a library or a function of
the page computed. So each name of a chapter has a source: what is written on the page
(FIXED), or anything computed (LIVE). What cannot be told is LIVE.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ..names import Code, free_names, imports, parsed

FIXED, LIVE = range(2)

#: Modules of Python's own that tell of nothing but what they are given.
_PLAIN = frozenset(
    {"abc", "cmath", "collections", "contextlib", "copy", "dataclasses", "datetime"}
    | {"decimal", "enum", "fractions", "functools", "html", "io", "itertools", "json"}
    | {"math", "numbers", "operator", "random", "re", "statistics", "string"}
    | {"textwrap", "types", "typing", "__future__"}
)

#: Built-in functions that can run, read or look at anything.
_OPEN = frozenset(
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
    return [flow.cell(source) for source in sources]


def _by_words(source: str) -> Iterator[Assertion]:
    for number, line in enumerate(source.splitlines(), 1):
        if line.lstrip().startswith("assert "):
            yield Assertion(number, True, line.strip())


@dataclass
class _Flow:
    """Where the values of names come from, as statements run one after the other.

    A statement counts as one with all that is inside it. What it mentions beside
    something LIVE is LIVE from then on, since it may have been changed.

    Attributes:
        sources: where the value of each name comes from.
        modules: the names of imports, which no statement changes.
        shared: the names that functions of the page use whenever they are called.
    """

    sources: dict[str, int] = field(default_factory=dict)
    modules: set[str] = field(default_factory=set)
    shared: set[str] = field(default_factory=set)

    def cell(self, source: str) -> list[Assertion]:
        try:
            body = parsed(source).body
        except SyntaxError:  # magics, which only IPython reads
            return list(_by_words(source))
        judged = [assertion for node in body for assertion in self._statement(node)]
        return sorted(judged, key=lambda assertion: assertion.line)

    def _statement(self, node: ast.stmt) -> Iterator[Assertion]:
        if isinstance(node, ast.Import | ast.ImportFrom):
            self._import(node)
        elif isinstance(node, Code):
            # A function of the page computes; its arguments may be anything.
            self.sources[node.name] = LIVE
            inside = _Flow({**self.sources, **dict.fromkeys(_bound_in(node), LIVE)})
            for inner in ast.walk(node):
                if isinstance(inner, ast.Assert):
                    yield _judged(inner, inside.may_fail(inner.test))
        else:
            self._bind(node)
            for inner in ast.walk(node):
                can_fail = self._is_failing(inner, within=node)
                if can_fail is not None:
                    yield _judged(inner, can_fail)
        for inner in ast.walk(node):
            if isinstance(inner, Code):
                self.shared |= _shared_by(inner) - self.modules
                self.sources |= dict.fromkeys(self.shared, LIVE)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for name, path in imports(node):
            root = path.partition(".")[0]
            self.sources[name] = FIXED if root in _PLAIN else LIVE
            self.modules.add(name)

    def _bind(self, node: ast.stmt) -> None:
        """Note where the values come from of all that a statement may change."""
        source = self.reads(node)
        mentioned = set() if isinstance(node, ast.Assert) else _names(node)
        for name in {*_bound_in(node), *mentioned} - self.modules:
            is_new = isinstance(node, ast.Assign) and name not in _names(node, ast.Load)
            before = FIXED if is_new else self.sources.get(name, FIXED)
            self.sources[name] = LIVE if name in self.shared else max(before, source)

    def _is_failing(self, node: ast.AST, within: ast.stmt) -> bool | None:
        """Whether an assertion can fail; None for any other part of a statement."""
        match node:
            case ast.Assert(test=ast.Constant(value=value)):
                return not value and self.reads(within) == LIVE
            case ast.Assert(test=test):
                return self.may_fail(test)
            case ast.Raise(exc=ast.expr() as error) if "AssertionError" in ast.dump(
                error
            ):
                return self.reads(within) == LIVE
            case ast.Expr(value=ast.Call() as call) if _asserts(call):
                return LIVE in map(self.reads, [*call.args, *call.keywords])
        return None

    def reads(self, node: ast.AST) -> int:
        """Where the values come from that some code names."""
        own, names = set(_bound_in(node)), _names(node, ast.Load)
        return max((self._source(name, name in own) for name in names), default=FIXED)

    def _source(self, name: str, is_own: bool) -> int:
        if name in self.sources:
            return self.sources[name]
        is_builtin = hasattr(builtins, name) and name not in _OPEN
        return FIXED if is_own or is_builtin else LIVE

    def may_fail(self, test: ast.expr) -> bool:
        """Whether the test of an assertion can be false."""
        match test:
            case ast.Constant():
                return not test.value
            case ast.Tuple():
                return not test.elts
            case ast.BoolOp(op=ast.And()):
                return any(map(self.may_fail, test.values))
            case ast.BoolOp():
                return all(map(self.may_fail, test.values))
            case ast.Compare():
                sides = [test.left, *test.comparators]
                pairs = zip(sides, test.ops, sides[1:], strict=False)
                return any(self._pair_may_fail(*pair) for pair in pairs)
        return self.reads(test) > FIXED

    def _pair_may_fail(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> bool:
        if isinstance(op, ast.GtE) and ast.unparse(right) == "0" and _is_length(left):
            return False
        if isinstance(left, ast.Name) and ast.dump(left) == ast.dump(right):
            return False
        return max(self.reads(left), self.reads(right)) > FIXED


def _asserts(call: ast.Call) -> bool:
    """Whether it calls a function like `numpy.testing.assert_allclose`."""
    return ast.unparse(call.func).rpartition(".")[2].startswith("assert")


def _is_length(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "len"


def _judged(node: ast.AST, can_fail: bool) -> Assertion:
    line: int = getattr(node, "lineno", 1)
    return Assertion(line, can_fail, ast.unparse(node).split("\n")[0])


def _names(node: ast.AST, use: type[ast.expr_context] = ast.expr_context) -> set[str]:
    nodes = (n for n in ast.walk(node) if isinstance(n, ast.Name))
    return {n.id for n in nodes if isinstance(n.ctx, use)}


def _bound_in(node: ast.AST) -> Iterator[str]:
    """Names that code binds: parameters, variables of comprehensions and all others."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.arg):
            yield inner.arg
        elif isinstance(inner, ast.ExceptHandler) and inner.name:
            yield inner.name
        elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            yield inner.id


def _shared_by(code: Code) -> set[str]:
    """The names that code uses and does not bind for itself."""
    nodes = [n for n in ast.walk(code) if isinstance(n, ast.Global | ast.Nonlocal)]
    declared = {name for node in nodes for name in node.names}
    return declared | free_names(code)
