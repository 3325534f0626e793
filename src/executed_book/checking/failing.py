"""Whether an assertion can fail, judged by its code and what its names come from.

An assertion tells something only if a value reaches it that a library or a function of
the page computed. So each name of a chapter has a source: what is written on the page
(FIXED), a clock (CLOCK), or anything computed (LIVE). What cannot be told is LIVE.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

FIXED, CLOCK, LIVE = range(3)

#: Modules of Python's own that tell of nothing but what they are given.
_PLAIN = frozenset(
    {"abc", "cmath", "collections", "contextlib", "copy", "dataclasses", "datetime"}
    | {"decimal", "enum", "fractions", "functools", "html", "io", "itertools", "json"}
    | {"math", "numbers", "operator", "random", "re", "statistics", "string"}
    | {"textwrap", "types", "typing", "__future__"}
)
_CLOCKS = frozenset({"time", "timeit"})

#: Built-in functions that can run, read or look at anything.
_OPEN = frozenset(
    {"exec", "eval", "open", "input", "globals", "locals", "vars", "compile"}
    | {"__import__"}
)

_TIME = re.compile(r"(?:^|_)(?:seconds|time|elapsed|duration|latency|took|[nmu]?s)$")

_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef


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
    """Where the values of names come from, as statements run one after the other."""

    sources: dict[str, int] = field(default_factory=dict)
    found: list[Assertion] = field(default_factory=list)
    control: int = FIXED
    depth: int = 0
    top: ast.stmt | None = None
    local: frozenset[str] = frozenset()
    modules: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)

    # -- statements

    def cell(self, source: str) -> list[Assertion]:
        self.found = []
        try:
            body = ast.parse(source).body
        except SyntaxError:  # magics, which only IPython reads
            return list(_by_words(source))
        for statement in body:
            self.top = statement
            self.statement(statement)
        return self.found

    def block(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assert():
                self._judge(node, self.may_fail(node.test))
            case ast.Raise() if node.exc and "AssertionError" in ast.dump(node.exc):
                self._judge(node, self._is_in_live_code())
            case ast.Import() | ast.ImportFrom():
                self._import(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self._define(node)
            case ast.Assign():
                self._assign(node.targets, self.of(node.value))
            case ast.AnnAssign() if node.value is not None:
                self._assign([node.target], self.of(node.value))
            case ast.AugAssign():
                self._raise_to([node.target], self.of(node.value))
            case ast.For() | ast.AsyncFor():
                self._raise_to([node.target], self.of(node.iter))
                self._inside(self.of(node.iter), [*node.body, *node.orelse])
            case ast.While() | ast.If():
                self._inside(self.of(node.test), [*node.body, *node.orelse])
            case ast.With() | ast.AsyncWith():
                self._with(node)
            case ast.Try():
                self._try(node)
            case ast.Match():
                source = self.of(node.subject)
                self._inside(source, [s for case in node.cases for s in case.body])
            case _:
                self._expression(node)
        if not hasattr(node, "body") or isinstance(node, _Scope):
            self._note_changes(node)

    def _inside(self, source: int, body: list[ast.stmt]) -> None:
        """Statements that run or not, or how often, as a value decides."""
        before, self.control = self.control, max(self.control, source)
        self.depth += 1
        self.block(body)
        self.control, self.depth = before, self.depth - 1

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        """What a context gives or is given tells of all that happens within it."""
        headers = [item.context_expr for item in node.items]
        source = max(map(self.reads, [*headers, *node.body]))
        for item in node.items:
            targets = [item.optional_vars] if item.optional_vars else []
            self._raise_to([*targets, *_names(item.context_expr)], source)
        self._inside(self.control, node.body)

    def _try(self, node: ast.Try) -> None:
        source = max(map(self.reads, node.body))
        self._inside(source, node.body)
        for handler in node.handlers:
            if handler.name:
                self.sources[handler.name] = source
            self._inside(source, handler.body)
        self._inside(source, [*node.orelse, *node.finalbody])

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            module = getattr(node, "module", None) or alias.name
            root = module.partition(".")[0]
            source = FIXED if root in _PLAIN else CLOCK if root in _CLOCKS else LIVE
            name = alias.asname or alias.name.partition(".")[0]
            self.sources[name] = source
            self.modules.add(name)

    def _define(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    ) -> None:
        """A function of the page computes; its arguments may be anything."""
        self._assign([ast.Name(node.name, ast.Store())], LIVE)
        own = dict.fromkeys(_bound_in(node), LIVE)
        called = _Flow({**self.sources, **own}, depth=1)
        for inner in ast.walk(node):
            if isinstance(inner, ast.Assert):
                self._judge(inner, called.may_fail(inner.test))

    def _assign(self, targets: Iterable[ast.expr], source: int) -> None:
        for target in targets:
            if isinstance(target, ast.Name) and not self.depth:
                # A function that is defined already may change it when it is called.
                known = LIVE if target.id in self.changed else source
                self.sources[target.id] = known
            else:
                self._raise_to([target], source)

    def _raise_to(self, targets: Iterable[ast.expr], source: int) -> None:
        for target in targets:
            for name in _roots(target):
                known = self.sources.get(name, FIXED)
                self.sources[name] = max(known, source, self.control)

    def _expression(self, node: ast.stmt) -> None:
        """A statement that gives no name: a method may change what it is of."""
        for call in ast.walk(node):
            if isinstance(call, ast.Call):
                given = [self.of(a) for a in _arguments(call)]
                if _said(call.func).startswith("assert"):
                    self._judge(node, LIVE in [*given, self.control])
                if isinstance(call.func, ast.Attribute):
                    self._raise_to([call.func.value], max(given, default=FIXED))

    def _note_changes(self, node: ast.stmt) -> None:
        """What functions change, and what is given to ones of unknown effect."""
        for inner in ast.walk(node):
            if isinstance(inner, _Scope):
                found = _changed_in(inner) - self.modules
                self.changed |= found
                self.sources |= dict.fromkeys(found & self.sources.keys(), LIVE)
            elif isinstance(inner, ast.Call) and _said(inner.func) in _OPEN:
                for argument in _arguments(inner):
                    self._raise_to(_names(argument), LIVE)
            elif isinstance(inner, ast.NamedExpr):
                self._assign([inner.target], self.of(inner.value))

    def _judge(self, node: ast.stmt, can_fail: bool) -> None:
        code = ast.unparse(node).split("\n")[0]
        self.found.append(Assertion(node.lineno, can_fail, code))

    def _is_in_live_code(self) -> bool:
        """Whether a branch, a loop or a function that computes comes here or not."""
        return self.depth > 0 and (self.top is None or self.reads(self.top) == LIVE)

    # -- expressions

    def of(self, node: ast.expr) -> int:
        """Where the value of an expression comes from."""
        bound = frozenset(_bound_in(node))
        if not bound <= self.local:  # names of comprehensions are as their sources
            return _Flow(self.sources, local=self.local | bound).of(node)
        return self.reads(node)

    def reads(self, node: ast.AST) -> int:
        """Where the values come from that some code names."""
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        return max(map(self._name, names), default=FIXED)

    def _name(self, name: str) -> int:
        if name in self.sources:
            return self.sources[name]
        if name in self.local:
            return FIXED
        return FIXED if hasattr(builtins, name) and name not in _OPEN else LIVE

    # -- tests

    def may_fail(self, test: ast.expr) -> bool:
        """Whether the test of an assertion can be false."""
        match test:
            case ast.Constant():
                return not test.value and self._is_in_live_code()
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
        return self.of(test) > FIXED

    def _pair_may_fail(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> bool:
        if isinstance(op, ast.Lt | ast.LtE):
            turned = ast.Gt() if isinstance(op, ast.Lt) else ast.GtE()
            left, op, right = right, turned, left
        if isinstance(op, ast.Gt | ast.GtE) and _is_zero(right):
            if self.of(left) == CLOCK or _TIME.search(_said(left)):
                return False
            if isinstance(op, ast.GtE) and _said(left) == "len":
                return False
        if isinstance(left, ast.Name) and ast.dump(left) == ast.dump(right):
            return False
        return max(self.of(left), self.of(right)) > FIXED


def _said(node: ast.expr) -> str:
    """The last name of an expression: `seconds` of `timing.seconds`."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return node.attr
        case ast.Call():
            return _said(node.func)
    return ""


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _names(node: ast.AST) -> list[ast.expr]:
    return [n for n in ast.walk(node) if isinstance(n, ast.Name)]


def _roots(node: ast.expr) -> Iterator[str]:
    """The names that an assignment changes: `a` and `b` of `a, b.c[0]`."""
    match node:
        case ast.Name():
            yield node.id
        case ast.Attribute() | ast.Subscript() | ast.Starred():
            yield from _roots(node.value)
        case ast.Tuple() | ast.List():
            for element in node.elts:
                yield from _roots(element)


def _bound_in(node: ast.AST) -> Iterator[str]:
    """Names that a function, or a comprehension in an expression, has for itself."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.arg):
            yield inner.arg
        elif isinstance(inner, ast.comprehension):
            yield from _roots(inner.target)
        elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            yield inner.id


def _changed_in(scope: ast.AST) -> set[str]:
    """Names of outside that a function's body may change."""
    outside: set[str] = set()
    changed: set[str] = set()
    for node in ast.walk(scope):
        if isinstance(node, ast.Global | ast.Nonlocal):
            outside |= set(node.names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            changed |= set(_roots(node.func.value))
        elif isinstance(node, ast.Subscript | ast.Attribute) and isinstance(
            node.ctx, ast.Store
        ):
            changed |= set(_roots(node))
    return outside | (changed - set(_bound_in(scope)))
