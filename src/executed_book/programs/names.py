"""What code reads, binds and may change, as a list of plain operations.

`block` turns statements into `Op`s in the order of the text. A name stands for itself;
a value in between has a name with a dollar sign. Nothing here knows what a name means:
`slicing` follows the operations over what the page has made.
"""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

#: Names of values: those that a value may be.
Names = frozenset[str]

NOTHING: Names = frozenset()

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Code = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef


@dataclass(frozen=True)
class Read:
    """A name is looked up."""

    name: str


@dataclass(frozen=True)
class Bind:
    """A name is given a value; not `certain` where it may keep the one it had."""

    name: str
    value: Names
    certain: bool = True


@dataclass(frozen=True)
class Unbind:
    """A name is deleted."""

    name: str


@dataclass(frozen=True)
class Import:
    """A name is bound to a module, or to what a module holds, at a dotted path."""

    name: str
    path: str


@dataclass(frozen=True)
class Part:
    """`result` is something inside of `value`, or shares its data.

    `path` is how it is written, where it is written with names and dots alone.
    """

    result: str
    value: Names
    path: str = ""


@dataclass(frozen=True)
class Make:
    """`result` is new and holds `parts`; `code` is what it runs when it is called."""

    result: str
    parts: Names = NOTHING
    code: Code | None = None
    is_list: bool = False


@dataclass(frozen=True)
class Change:
    """What `value` is changes, and may hold `stored` from now on.

    `path` is the place that is assigned to, such as `os.environ`.
    """

    value: Names
    stored: Names = NOTHING
    path: str = ""


@dataclass(frozen=True)
class Use:
    """The value is gone through, which uses up an iterator."""

    value: Names


@dataclass(frozen=True)
class Call:
    """A call. `path` is the function as it is written, such as `jax.jit`, or empty.

    `method` is the last part of `path`, or of what else is called, and `function` then
    the values that have the method.
    """

    result: str
    function: Names
    path: str
    method: str
    positional: tuple[Names, ...]
    keywords: tuple[tuple[str, Names], ...]
    constants: tuple[object, ...] = ()

    @property
    def given(self) -> Names:
        """All that the function is given."""
        return NOTHING.union(*self.positional, *(value for _, value in self.keywords))


Op = Read | Bind | Unbind | Import | Part | Make | Change | Use | Call


@dataclass(frozen=True)
class Block:
    """A function's body, or a statement of the page.

    Attributes:
        ops: what it does, in order.
        parameters: by place; `extra` are those that take several or go by name.
        own: the names that are its own; others are those of the code around it.
        returns: the values that it returns.
    """

    ops: tuple[Op, ...]
    parameters: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    own: Names = NOTHING
    returns: Names = NOTHING
    is_class: bool = False

    @functools.cached_property
    def free(self) -> Names:
        """The names of the code around it that it looks up, nested functions' too."""
        found = {op.name for op in self.ops if isinstance(op, Read | Bind | Unbind)}
        inner = (op.code for op in self.ops if isinstance(op, Make) and op.code)
        below = NOTHING.union(*(block_of(code).free for code in inner))
        if self.is_class:  # whose names its methods do not see
            return (frozenset(found) - self.own) | below
        return (frozenset(found) | below) - self.own


def root_name(node: ast.AST) -> str:
    """The name an access path starts from: `a` for `a.b[0].c`."""
    while True:
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred | ast.Await):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return node.id if isinstance(node, ast.Name) else ""


def statement_block(node: ast.stmt) -> Block:
    """The operations of one statement of a page."""
    compiler = _Compiler()
    compiler.statements([node])
    return Block(tuple(compiler.ops))


def block_of(code: Code) -> Block:
    """The operations that a function's body does, or all methods of a class."""
    found = getattr(code, "block", None)
    if not isinstance(found, Block):
        found = _class_block(code) if isinstance(code, ast.ClassDef) else _body(code)
        code.block = found  # type: ignore[union-attr]
    return found


def _class_block(node: ast.ClassDef) -> Block:
    compiler = _Compiler()
    compiler.statements(node.body)
    own = frozenset(bound_names(node.body)) | {"__class__"}
    return Block(tuple(compiler.ops), own=own, is_class=True)


def _body(code: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Block:
    arguments = code.args
    places = tuple(a.arg for a in [*arguments.posonlyargs, *arguments.args])
    extra = [*arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    names = tuple(a.arg for a in extra if a)
    hidden = getattr(code, "hidden", {})
    outside = {n: h for n, h in hidden.items() if n not in (*places, *names)}
    compiler = _Compiler(hidden=outside)
    if isinstance(code, ast.Lambda):
        compiler.returns = compiler.value(code.body)
        return Block(
            tuple(compiler.ops),
            places,
            names,
            frozenset((*places, *names)),
            compiler.returns,
        )
    compiler.hidden = {n: h for n, h in outside.items() if n not in _bound(code.body)}
    compiler.statements(code.body)
    outer = {
        n
        for s in _inside(code.body)
        for n in getattr(s, "names", ())
        if isinstance(s, ast.Global | ast.Nonlocal)
    }
    own = ({*places, *names} | _bound(code.body)) - outer
    return Block(tuple(compiler.ops), places, names, frozenset(own), compiler.returns)


def _bound(statements: Iterable[ast.stmt]) -> frozenset[str]:
    return frozenset(bound_names(statements))


def method(node: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    """The method of this name that a class defines itself."""
    found = None
    for inner in node.body:
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and (
            inner.name == name
        ):
            found = inner
    return found  # type: ignore[return-value]


# -- names that statements bind


def bound_names(statements: Iterable[ast.stmt]) -> Iterator[str]:
    """The names that statements bind where they stand.

    >>> list(bound_names(ast.parse("import a.b; c = [d for d in e]").body))
    ['a', 'c']
    """
    for node in _inside(statements):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield name
            case ast.Import() | ast.ImportFrom():
                yield from (name for name, _ in imports(node))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
                yield from _declared(node)
            case ast.ClassDef(name=name):
                yield name
                yield from _declared(node)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield name
            case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield name


def _declared(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Global):
            yield from inner.names


def _inside(statements: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes that belong to the same scope."""
    for node in statements:
        yield node
        if isinstance(node, DEFINITIONS):
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(
            node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
        ):
            inner = [n for n in ast.walk(node) if isinstance(n, ast.NamedExpr)]
            yield from (n.target for n in inner)
            continue
        yield from _inside(ast.iter_child_nodes(node))


def imports(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """The names that an import binds, each with its dotted path."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield alias.asname or alias.name, f"{node.module}.{alias.name}"
        elif alias.asname:
            yield alias.asname, alias.name
        else:
            top = alias.name.partition(".")[0]
            yield top, top


# -- from syntax to operations

_TEMPORARY = itertools.count()


@dataclass
class _Compiler:
    """Writes operations down; `hidden` are the names inside of comprehensions."""

    ops: list[Op] = field(default_factory=list)
    hidden: dict[str, str] = field(default_factory=dict)
    returns: Names = NOTHING
    depth: int = 0

    def new(self) -> str:
        return f"${next(_TEMPORARY)}"

    def make(
        self, parts: Names = NOTHING, code: Code | None = None, is_list: bool = False
    ) -> Names:
        result = self.new()
        if code is not None and self.hidden:
            code.hidden = self.hidden  # type: ignore[union-attr]
        self.ops.append(Make(result, parts, code, is_list))
        return frozenset((result,))

    def part(self, value: Names, path: str = "") -> Names:
        result = self.new()
        self.ops.append(Part(result, value, path))
        return frozenset((result,))

    # -- statements

    def statements(self, nodes: Sequence[ast.stmt]) -> None:
        for node in nodes:
            self.statement(node)

    def below(self, *parts: Sequence[ast.stmt]) -> None:
        """Statements that may or may not run."""
        self.depth += 1
        for nodes in parts:
            self.statements(nodes)
        self.depth -= 1

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                self.ops += [Import(name, path) for name, path in imports(node)]
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self.definition(node)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self.assign(target, value, self.value(value))
            case ast.AnnAssign(target=target, value=value, annotation=annotation):
                self.value(annotation)
                if value is not None:
                    self.assign(target, value, self.value(value))
            case ast.AugAssign(target=target, value=value):
                self.in_place(target, self.value(value))
            case ast.Delete(targets=targets):
                for target in targets:
                    if isinstance(target, ast.Name):
                        self.ops.append(Unbind(target.id))
                    else:
                        self.store(target, NOTHING)
            case ast.For() | ast.AsyncFor():
                items = self.gone_through(node.iter)
                self.assign(node.target, None, items)
                self.below(node.body, node.orelse)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    manager = self.value(item.context_expr)
                    if item.optional_vars is not None:
                        self.assign(item.optional_vars, None, self.part(manager))
                self.statements(node.body)
            case ast.Return(value=value):
                if value is not None:
                    self.returns |= self.value(value)
            case ast.Try() | ast.TryStar():
                for handler in node.handlers:
                    if handler.type is not None:
                        self.value(handler.type)
                    if handler.name:
                        self.bind(handler.name, self.make())
                bodies = [handler.body for handler in node.handlers]
                self.below(node.body, *bodies, node.orelse, node.finalbody)
            case ast.Match(subject=subject, cases=cases):
                matched = self.value(subject)
                for name in bound_names([node]):
                    self.bind(name, self.part(matched))
                for case_ in cases:
                    for inner in ast.walk(case_.pattern):
                        if isinstance(inner, ast.expr):
                            self.value(inner)
                    if case_.guard:
                        self.value(case_.guard)
                self.below(*(case_.body for case_ in cases))
            case _:
                self.others(node)

    def others(self, node: ast.stmt) -> None:
        """Statements of which each expression is read and each body may run."""
        for name, inner in ast.iter_fields(node):
            if isinstance(inner, ast.expr):
                self.value(inner)
            elif isinstance(inner, list) and name in ("body", "orelse"):
                self.below(inner)

    def definition(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    ) -> None:
        parts = NOTHING
        if isinstance(node, ast.ClassDef):
            parts = self.values([*node.bases, *(k.value for k in node.keywords)])
        else:
            parts = self.defaults(node.args)
            if node.returns is not None:
                self.value(node.returns)
        value = self.make(parts, node)
        if isinstance(node, ast.ClassDef):
            # The body runs now; its names are those of the class.
            outside = {s for s in node.body if not isinstance(s, DEFINITIONS)}
            hidden = {n: f"${n}" for n in bound_names(node.body)}
            self.hidden, before = {**self.hidden, **hidden}, self.hidden
            for inner in node.body:
                for expression in _evaluated(inner, inner in outside):
                    self.ops.append(Change(value, self.value(expression)))
            self.hidden = before
        for decorator in reversed(node.decorator_list):
            value = self.call(decorator, [value])
        self.bind(node.name, value)

    def defaults(self, arguments: ast.arguments) -> Names:
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [a for a in (arguments.vararg, arguments.kwarg) if a]
        for argument in every:
            if argument.annotation is not None:
                self.value(argument.annotation)
        given = [*arguments.defaults, *arguments.kw_defaults]
        return self.values(d for d in given if d is not None)

    # -- what is assigned to

    def bind(self, name: str, value: Names) -> None:
        self.ops.append(Bind(self.hidden.get(name, name), value, not self.depth))

    def assign(self, target: ast.expr, node: ast.expr | None, value: Names) -> None:
        match target:
            case ast.Name(id=name):
                self.bind(name, value)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                items = self.part(value)
                for inner in targets:
                    self.assign(inner, None, items)
            case ast.Starred(value=inner):
                self.assign(inner, None, self.make(value))
            case _:
                self.store(target, value)

    def store(self, target: ast.expr, value: Names) -> None:
        base = (
            target.value if isinstance(target, ast.Attribute | ast.Subscript) else None
        )
        if base is None:
            return
        if isinstance(target, ast.Subscript):
            self.value(target.slice)
        place = target if isinstance(target, ast.Attribute) else base
        self.ops.append(Change(self.value(base), value, dotted(place)))

    def in_place(self, target: ast.expr, value: Names) -> None:
        if isinstance(target, ast.Name):
            old = self.value(ast.Name(target.id, ast.Load()))
            self.ops.append(Change(old, value))
            self.ops.append(Bind(self.hidden.get(target.id, target.id), old, False))
        else:
            self.store(target, value)

    # -- expressions

    def values(self, nodes: Iterable[ast.expr]) -> Names:
        return NOTHING.union(*map(self.value, nodes))

    def value(self, node: ast.expr) -> Names:
        """Writes down what evaluating an expression does; what its value may be."""
        match node:
            case ast.Name(id=name):
                name = self.hidden.get(name, name)
                self.ops.append(Read(name))
                return frozenset((name,))
            case ast.Constant():
                return NOTHING
            case ast.Attribute(value=base):
                return self.part(self.value(base), dotted(node))
            case ast.Subscript(value=base, slice=index):
                self.value(index)
                return self.part(self.value(base))
            case ast.Call(func=function):
                positional = [self.value(a) for a in node.args]
                constants = [
                    k.value.value
                    for k in node.keywords
                    if isinstance(k.value, ast.Constant)
                ]
                constants += [a.value for a in node.args if isinstance(a, ast.Constant)]
                keywords = [(k.arg or "", self.value(k.value)) for k in node.keywords]
                return self.call(function, positional, keywords, constants)
            case ast.List() | ast.Tuple() | ast.Set():
                return self.make(self.values(node.elts), is_list=True)
            case ast.Dict(keys=keys, values=values):
                every = [*(k for k in keys if k is not None), *values]
                return self.make(self.values(every), is_list=True)
            case ast.Lambda():
                return self.make(self.defaults(node.args), node)
            case ast.IfExp(test=test, body=first, orelse=second):
                self.value(test)
                return self.value(first) | self.value(second)
            case ast.BoolOp(values=values):
                return self.values(values)
            case ast.NamedExpr(target=target, value=inner):
                value = self.value(inner)
                self.bind(target.id, value)
                return value
            case ast.Starred(value=inner):
                return self.gone_through(inner)
            case ast.Await(value=inner):
                return self.value(inner)
            case ast.Yield(value=inner):
                given = self.value(inner) if inner is not None else NOTHING
                self.returns |= self.make(given)
                return given
            case ast.YieldFrom(value=inner):
                self.returns |= self.gone_through(inner)
                return NOTHING
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self.comprehension(node)
            case ast.BinOp(left=left, right=right):
                parts = self.value(left) | self.value(right)
                holds = any(isinstance(n, ast.List | ast.Tuple) for n in (left, right))
                return self.make(parts if holds else NOTHING, is_list=True)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.value(child)
                return NOTHING

    def gone_through(self, node: ast.expr) -> Names:
        """An expression whose elements are taken; what an element may be."""
        value = self.value(node)
        self.ops.append(Use(value))
        return self.part(value)

    def call(
        self,
        function: ast.expr,
        positional: Sequence[Names],
        keywords: Sequence[tuple[str, Names]] = (),
        constants: Sequence[object] = (),
    ) -> Names:
        base, name = function, ""
        if isinstance(function, ast.Attribute):
            base, name = function.value, function.attr
        path = dotted(function)
        called = self.value(base)
        result = self.new()
        self.ops.append(
            Call(
                result,
                called,
                path,
                name,
                tuple(positional),
                tuple(keywords),
                tuple(constants),
            )
        )
        return frozenset((result,))

    def comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
    ) -> Names:
        before, self.hidden = self.hidden, dict(self.hidden)
        for part in node.generators:
            items = self.gone_through(part.iter)
            for inner in ast.walk(part.target):
                if isinstance(inner, ast.Name):
                    self.hidden[inner.id] = self.new()
            self.assign(part.target, None, items)
            for condition in part.ifs:
                self.value(condition)
        if isinstance(node, ast.DictComp):
            parts = self.values([node.key, node.value])
        else:
            parts = self.value(node.elt)
        self.hidden = before
        return self.make(parts, is_list=True)


def _evaluated(node: ast.stmt, is_plain: bool) -> Iterator[ast.expr]:
    """The expressions that run when a class is made."""
    if not is_plain:
        arguments = getattr(node, "args", None)
        if isinstance(arguments, ast.arguments):
            yield from arguments.defaults
            yield from (d for d in arguments.kw_defaults if d is not None)
        yield from getattr(node, "decorator_list", [])
        return
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.expr) and not isinstance(
            getattr(inner, "ctx", None), ast.Store
        ):
            yield inner


def dotted(node: ast.expr) -> str:
    """`jax.numpy.sum` as it is written; empty for what is no name with attributes.

    >>> dotted(ast.parse("np.random.normal", mode="eval").body)
    'np.random.normal'
    """
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])
