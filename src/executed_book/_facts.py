"""What one statement reads, binds and changes, told from its syntax alone.

`_slice` joins these facts over a page. Two times are kept apart: *now*, when the
statement itself runs, and *later*, when a function or class that it defines runs.
Python resolves a function's global names at the call, so `later` facts are looked up
in the state of the page at each call and not at the `def`.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from . import _known
from ._known import SETTINGS


@dataclass
class Later:
    """What the functions and classes of a statement do each time they run."""

    reads: set[str] = field(default_factory=set)
    mutates: set[str] = field(default_factory=set)
    prints: bool = False
    changes_arguments: bool = False
    # Keeps state of its own between calls: a closure's counter, an object's attribute.
    stateful: bool = False
    makes_functions: bool = False


@dataclass
class Flow:
    """One binding: the names it binds and the expression their values come from."""

    names: frozenset[str]
    value: ast.expr
    # True where the value is only stored inside the names' objects (`d["k"] = value`).
    stored: bool = False


@dataclass
class Facts:
    """What a statement reads, binds and changes.

    Names that the statement itself binds before it reads them are not in `reads`.
    """

    reads: set[str] = field(default_factory=set)
    invoked: set[str] = field(default_factory=set)
    binds: set[str] = field(default_factory=set)
    may_bind: set[str] = field(default_factory=set)
    deletes: set[str] = field(default_factory=set)
    imports: set[str] = field(default_factory=set)
    mutates: set[str] = field(default_factory=set)
    # Names that a call gets as receiver or argument, or that a `for` consumes.
    called: set[str] = field(default_factory=set)
    calls: list[ast.Call] = field(default_factory=list)
    bare: list[ast.Call] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    hidden: list[tuple[int, str]] = field(default_factory=list)
    prints: bool = False
    traces: bool = False
    reads_caches: bool = False
    clears_caches: bool = False
    donates: bool = False
    environment: bool = False
    # Whether functions written in the statement may run in it, as in `map(lambda...)`.
    runs_own: bool = False
    later: Later = field(default_factory=Later)


def import_paths(trees: Iterable[ast.AST]) -> dict[str, str]:
    """The dotted path behind each imported name, over all of a page.

    >>> import_paths([ast.parse("import jax.numpy as jnp; from jax import lax")])
    {'jnp': 'jax.numpy', 'lax': 'jax.lax'}
    """
    paths = {}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    paths[alias.asname or top] = alias.name if alias.asname else top
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    name = alias.asname or alias.name
                    paths[name] = f"{node.module}.{alias.name}"
    return paths


def facts(node: ast.stmt, paths: dict[str, str]) -> Facts:
    """The facts of one top-level statement; `paths` is from `import_paths`.

    >>> found = facts(ast.parse("total['n'] += f(x)").body[0], {})
    >>> sorted(found.reads), found.mutates
    (['f', 'total', 'x'], {'total'})
    """
    walker = _Walker(node, paths)
    walker.visit(node)
    found = walker.facts
    found.may_bind |= walker.stored - walker.bound
    found.binds |= walker.bound
    return found


def dotted(node: ast.expr, paths: dict[str, str]) -> str | None:
    """`jax.numpy.sum` for `jnp.sum`; None unless it starts from an imported name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in paths:
        return None
    return ".".join([paths[node.id], *reversed(parts)])


def root(node: ast.expr) -> ast.Name | None:
    """The name an access path starts from: `a` for `a.b[0].c`."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred | ast.Await):
        node = node.value
    if isinstance(node, ast.Call):
        return root(node.func)
    return node if isinstance(node, ast.Name) else None


def names(node: ast.AST) -> set[str]:
    """Every name read in an expression, functions written in it included."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def is_lazy(path: str | None) -> bool:
    """Whether a call only wraps the function it is given."""
    return path in _known.LAZY


def is_pure_builtin(name: str) -> bool:
    """Whether calling this built-in leaves its arguments as they are."""
    return name in _known.PURE_BUILTINS


def changes(method: ast.Attribute) -> bool:
    """Whether a method is known to change its object; `x.at[i].add(v)` does not."""
    known = method.attr in _known.RETURNING_MUTATORS | _known.CONTAINER_MUTATORS
    path = [n for n in ast.walk(method.value) if isinstance(n, ast.Attribute)]
    return known and not any(n.attr == "at" for n in path)


@dataclass
class _Scope:
    kind: str  # "function", "class" or "comprehension"
    names: set[str]
    globals: set[str] = field(default_factory=set)
    parameters: tuple[str, ...] = ()
    name: str = ""
    in_class: bool = False


class _Locals(ast.NodeVisitor):
    """Collects the names that a function's body binds in its own scope."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.names.add(node.id)

    def visit_Global(self, node: ast.Global) -> None:
        self.globals.update(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.nonlocals.update(node.names)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.names.add(node.name)

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        pass

    def visit_ListComp(self, node: ast.ListComp) -> None:
        # Only a walrus reaches out of a comprehension.
        walrus = (n for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
        self.names.update(n.target.id for n in walrus)

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def visit_alias(self, node: ast.alias) -> None:
        self.names.add(node.asname or node.name.partition(".")[0])

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.names.update(_captured(node))
        self.generic_visit(node)

    visit_MatchAs = visit_MatchStar = visit_MatchMapping = visit_ExceptHandler


def _captured(node: ast.AST) -> Iterator[str]:
    name = getattr(node, "rest", None) or getattr(node, "name", None)
    if name:
        yield name


def _parameters(arguments: ast.arguments) -> tuple[str, ...]:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [a for a in (arguments.vararg, arguments.kwarg) if a]
    return tuple(a.arg for a in every)


class _Walker(ast.NodeVisitor):
    def __init__(self, statement: ast.stmt, paths: dict[str, str]) -> None:
        self.statement = statement
        self.paths = paths
        self.facts = Facts()
        self.scopes: list[_Scope] = []
        self.stored: set[str] = set()
        self.bound: set[str] = set()  # certainly bound at this point of the walk
        self.lazy = False
        self.wrapping: set[ast.expr] = set()
        definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        self.is_only_defined = isinstance(statement, definitions)

    # -- names and scopes

    def owner(self, name: str) -> _Scope | None:
        """The scope that holds a name; None for the page itself."""
        for depth, scope in enumerate(reversed(self.scopes)):
            if scope.kind == "class" and depth:
                continue
            if name in scope.globals:
                return None
            if name in scope.names:
                return scope
        return None

    @property
    def is_later(self) -> bool:
        return any(scope.kind == "function" for scope in self.scopes)

    def read(self, name: str) -> None:
        if self.owner(name):
            return
        if self.is_later:
            self.facts.later.reads.add(name)
        elif name not in self.bound:
            self.facts.reads.add(name)
            if not self.lazy:
                self.facts.invoked.add(name)

    def store(self, name: str) -> None:
        scopes = [s for s in self.scopes if s.kind != "comprehension"]
        if not scopes:
            self.stored.add(name)
            self.bound.add(name)
        elif name in scopes[-1].globals:
            self.facts.later.mutates.add(name)
        elif scopes[-1].kind == "class":
            scopes[-1].names.add(name)
        elif name not in scopes[-1].names:  # declared nonlocal
            self.facts.later.stateful = True

    def touch(self, name: str) -> None:
        """Notes a read and a change of state that no name of the page holds."""
        now, later = self.facts, self.facts.later
        (later if self.is_later else now).reads.add(name)
        (later if self.is_later else now).mutates.add(name)

    def mutate(self, target: ast.expr) -> None:
        name = root(target)
        if name is None:
            return
        path = dotted(name, self.paths)
        owner = self.owner(name.id)
        if owner is None and path:
            self.touch(SETTINGS)
            full = dotted(target, self.paths) or path
            self.facts.environment |= full.startswith(_known.BEFORE_IMPORTS)
        elif owner is None:
            where = self.facts.later if self.is_later else self.facts
            where.mutates.add(name.id)
        elif owner.kind == "function":
            self.mutate_local(name.id, owner)

    def mutate_local(self, name: str, owner: _Scope) -> None:
        functions = [s for s in self.scopes if s.kind == "function"]
        if owner is not functions[-1]:
            self.facts.later.stateful = True
        elif owner.in_class and owner.parameters[:1] == (name,):
            self.facts.later.stateful |= owner.name != "__init__"
        elif name in owner.parameters:
            self.facts.later.changes_arguments = True

    # -- leaves

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.read(node.id)
        elif isinstance(node.ctx, ast.Del) and not self.scopes:
            self.read(node.id)
            self.facts.deletes.add(node.id)
        else:
            self.store(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.facts.reads_caches |= node.attr in _known.CACHE_READERS
        if not isinstance(node.ctx, ast.Load):
            self.mutate(node)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.mutate(node)
        if dotted(node.value, self.paths) == "os.environ":
            self.facts.environment = True
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if alias.name == "*":
                self.facts.hidden.append((node.lineno, "import *"))
                continue
            name = alias.asname or alias.name.partition(".")[0]
            self.store(name)
            if not self.scopes:
                self.facts.imports.add(name)

    visit_ImportFrom = visit_Import

    # -- calls

    def visit_Call(self, node: ast.Call) -> None:
        path = dotted(node.func, self.paths)
        self.note_call(node, path)
        if not self.is_later:
            self.facts.calls.append(node)
            self.facts.called |= {n for n in names(node) if not self.owner(n)}
        before, self.lazy = self.lazy, self.lazy or node in self.wrapping
        self.generic_visit(node)
        self.lazy = before

    def note_call(self, node: ast.Call, path: str | None) -> None:
        found = self.facts
        last = (path or "").rpartition(".")[2]
        if isinstance(node.func, ast.Attribute):
            last = node.func.attr
        elif isinstance(node.func, ast.Name):
            self.note_builtin(node, node.func.id)
        found.traces |= last in _known.TRACERS
        found.donates |= any((k.arg or "").startswith("donate") for k in node.keywords)
        if path:
            self.note_library(node, path)
        elif isinstance(node.func, ast.Attribute) and changes(node.func):
            self.mutate(node.func.value)
        for keyword in node.keywords:
            if keyword.arg == "out":
                self.mutate(keyword.value)

    def note_builtin(self, node: ast.Call, name: str) -> None:
        if self.owner(name):
            return
        if name in ("print", "display"):
            self.note_print()
        elif name in ("next", "setattr", "delattr") and node.args:
            self.mutate(node.args[0])
        elif name in _known.HIDES_NAMES:
            self.note_hidden(node, name)

    def note_hidden(self, node: ast.Call, name: str) -> None:
        if name in ("eval", "exec") and len(node.args) > 1:
            self.mutate(node.args[1])  # the code sees, and binds, only what is in it
            return
        # In a function locals() and vars(x) only see what the source shows.
        own = name == "locals" and self.is_later
        if not own and not (name == "vars" and node.args):
            self.facts.hidden.append((node.lineno, f"{name}()"))

    def note_print(self) -> None:
        if self.is_later:
            self.facts.later.prints = True
        else:
            self.facts.prints = True

    def note_library(self, node: ast.Call, path: str) -> None:
        if path.startswith("numpy.random."):
            if path.split(".")[2] not in _known.NUMPY_GENERATORS:
                self.touch(_known.NUMPY_RANDOM)
        elif path.startswith("random.") and path != "random.Random":
            self.touch(_known.PYTHON_RANDOM)
        elif path.startswith(_known.SETS) and path not in _known.ONLY_READS:
            self.touch(SETTINGS)
        if path.startswith(_known.BEFORE_IMPORTS):
            self.facts.environment = True
        if path == "jax.clear_caches" and not self.is_later:
            self.facts.clears_caches = True
        if path in _known.PRINTS:
            self.note_print()
        registers = path.rpartition(".")[2].startswith("register")
        if (registers or path in _known.CHANGES_FIRST) and node.args:
            self.mutate(node.args[0])

    def visit_Expr(self, node: ast.Expr) -> None:
        value = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(value, ast.Call):
            if self.is_later:
                self.note_bare_later(value)
            else:
                self.facts.bare.append(value)
        self.generic_visit(node)

    def note_bare_later(self, call: ast.Call) -> None:
        if dotted(call.func, self.paths):
            return
        if isinstance(call.func, ast.Attribute):
            if call.func.attr not in _known.PURE_METHODS:
                self.mutate(call.func.value)
        elif not (isinstance(call.func, ast.Name) and is_pure_builtin(call.func.id)):
            for argument in call.args:
                self.mutate(argument)

    # -- bindings

    def flow(self, targets: Iterable[ast.expr], value: ast.expr | None) -> None:
        if self.scopes or value is None:
            return
        stores = [n for t in targets for n in ast.walk(t) if isinstance(n, ast.expr)]
        bound = {n.id for n in stores if isinstance(n, ast.Name) and _is_store(n)}
        inside = {root(n) for n in stores if _is_store(n)} - {None}
        held = {n.id for n in inside} - bound
        self.facts.flows.append(Flow(frozenset(bound), value))
        if held:
            self.facts.flows.append(Flow(frozenset(held), value, stored=True))

    def visit_Assign(self, node: ast.Assign) -> None:
        if node is self.statement and isinstance(node.value, ast.Lambda):
            self.is_only_defined = True
        self.wrapping = set(_wrapping(node.value, self.paths))
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)
        self.flow(node.targets, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.annotation)
        if node.value:
            self.visit(node.value)
            self.visit(node.target)
            self.flow([node.target], node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        # In place for a list or an array: a change, and of its aliases too.
        if isinstance(node.target, ast.Name):
            self.read(node.target.id)
            self.mutate(node.target)
        else:
            self.visit(node.target)
        self.visit(node.value)
        if isinstance(node.target, ast.Name) and self.is_later:
            self.store(node.target.id)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self.visit(node.target)
        if not self.is_later:
            held, self.scopes = self.scopes, []
            self.flow([node.target], node.value)
            self.scopes = held

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            self.visit(item.context_expr)
            if item.optional_vars:
                self.visit(item.optional_vars)
                self.flow([item.optional_vars], item.context_expr)
        self.block(node.body)

    visit_AsyncWith = visit_With

    # -- control flow: what is bound for certain after each branch

    def block(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self.visit(statement)

    def branches(self, *bodies: list[ast.stmt]) -> None:
        before, after = set(self.bound), []
        for body in bodies:
            self.bound = set(before)
            self.block(body)
            after.append(self.bound)
        self.bound = set.intersection(*after)

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self.branches(node.body, node.orelse)

    def visit_For(self, node: ast.For) -> None:
        self.visit(node.iter)
        if not self.is_later:
            self.facts.called |= {n for n in names(node.iter) if not self.owner(n)}
        before = set(self.bound)
        self.visit(node.target)
        self.flow([node.target], node.iter)
        self.block(node.body)
        self.bound = set(before)
        self.block(node.orelse)
        self.bound = before

    visit_AsyncFor = visit_For

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        self.branches([*node.body, *node.orelse], [])

    def visit_Try(self, node: ast.Try) -> None:
        before = set(self.bound)
        self.block([*node.body, *node.orelse])
        for handler in node.handlers:
            self.bound = set(before)
            self.visit(handler)
        self.bound = before
        self.block(node.finalbody)

    visit_TryStar = visit_Try

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.type:
            self.visit(node.type)
        for name in _captured(node):
            self.store(name)
        self.block(node.body)

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        before = set(self.bound)
        for case in node.cases:
            self.bound = set(before)
            self.visit(case)
        self.bound = before

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        for name in _captured(node):
            self.store(name)
        self.generic_visit(node)

    visit_MatchStar = visit_MatchMapping = visit_MatchAs

    # -- definitions

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for part in [*node.decorator_list, *_annotations(node)]:
            self.visit(part)
            path = dotted(part, self.paths) or ""
            self.facts.traces |= path.rpartition(".")[2] in _known.TRACERS
            # `@f.defjvp` gives a rule to `f`: a decorator of the page's own object
            # changes that object. One of a module's, which `paths` knows, does not.
            owner = None if isinstance(part, ast.Name) else root(part)
            if owner is not None and owner.id not in self.paths:
                self.facts.mutates.add(owner.id)
        self.store(node.name)
        self.function(node.args, node.body, node.name)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        # As an assignment: what a lambda ends with is a value, not a bare call.
        held = ast.Assign([], node.body)
        self.function(node.args, [held], "")

    def function(self, args: ast.arguments, body: list[ast.stmt], name: str) -> None:
        for default in [*args.defaults, *filter(None, args.kw_defaults)]:
            self.visit(default)
        if self.is_later:
            self.facts.later.makes_functions = True
        elif not (self.is_only_defined or self.lazy):
            self.facts.runs_own = True
        inner = _Locals()
        for statement in body:
            inner.visit(statement)
        parameters = _parameters(args)
        local = inner.names | set(parameters)
        in_class = bool(self.scopes) and self.scopes[-1].kind == "class"
        scope = _Scope(
            "function",
            local - inner.globals - inner.nonlocals,
            inner.globals,
            parameters,
            name,
            in_class,
        )
        lazy, self.lazy = self.lazy, False
        self.scopes.append(scope)
        self.block(body)
        self.scopes.pop()
        self.lazy = lazy

    def visit_Yield(self, node: ast.Yield) -> None:
        self.facts.later.stateful = self.facts.later.makes_functions = True
        self.generic_visit(node)

    visit_YieldFrom = visit_Yield

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in [*node.decorator_list, *node.bases, *node.keywords]:
            self.visit(part)
        self.store(node.name)
        self.facts.later.makes_functions = True
        self.scopes.append(_Scope("class", set()))
        self.block(node.body)
        self.scopes.pop()

    def comprehension(self, node: ast.AST, *parts: ast.expr) -> None:
        generators = node.generators
        self.visit(generators[0].iter)
        scope = _Scope("comprehension", set())
        for generator in generators:
            stores = (n for n in ast.walk(generator.target) if _is_store(n))
            scope.names.update(n.id for n in stores if isinstance(n, ast.Name))
        self.scopes.append(scope)
        for i, generator in enumerate(generators):
            if i:
                self.visit(generator.iter)
            for condition in generator.ifs:
                self.visit(condition)
        for part in parts:
            self.visit(part)
        self.scopes.pop()

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self.comprehension(node, node.elt)

    visit_SetComp = visit_GeneratorExp = visit_ListComp

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self.comprehension(node, node.key, node.value)


def _wrapping(value: ast.expr, paths: dict[str, str]) -> Iterator[ast.expr]:
    """The calls that only wrap a function: `jit(grad(f))`, but not `jit(f)(x)`."""
    if isinstance(value, ast.Call) and is_lazy(dotted(value.func, paths)):
        yield value
        for argument in value.args:
            yield from _wrapping(argument, paths)


def _is_store(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)


def _annotations(node: ast.FunctionDef) -> list[ast.expr]:
    args = node.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    found = [a.annotation for a in every if a and a.annotation]
    return [*found, node.returns] if node.returns else found
