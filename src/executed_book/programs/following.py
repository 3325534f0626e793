"""What one statement needs of those above it, found by following what it does.

What names hold are `Thing`s. Each remembers the statements that made it what it is, as
the bits of a number. Whatever a statement looks at adds these to its needs; whatever it
makes or changes remembers the statement, with all that it needed.

Calls of the page's own functions are followed into their bodies. The tables in
`libraries` say what libraries do. What JAX keeps from earlier calls, traces or donated
buffers, is not followed: there a cell says what it needs.
"""

import ast
from collections.abc import Iterable, Iterator

from ..names import (
    Code,
    Comprehension,
    Function,
    bound_by,
    bound_names,
    dotted,
    free_names,
    imports,
    is_generator,
    own_names,
    parameters,
)
from . import libraries
from .things import (
    NOTHING,
    Arguments,
    Effects,
    Scope,
    Thing,
    Things,
    callables,
    in_order,
    parts_of,
    reach,
)

#: Calls within calls are followed this far.
_DEEPEST = 12


class Follower:
    """Follows one statement over what the page has made."""

    def __init__(self, page: Scope) -> None:
        self.page, self.effects = page, Effects()
        self._seen: set[Thing] = set()
        self._depth = 0  # blocks around that may not run
        self._active: list[Thing] = []
        self._returns: list[Things] = []
        self._results: dict[object, Things] = {}

    # -- looking

    def look(self, things: Iterable[Thing]) -> None:
        """Need whatever made these, all that they hold, and all that they may run."""
        queue = list(things)
        while queue:
            thing = queue.pop()
            if thing in self._seen:
                continue
            self._seen.add(thing)
            self.effects.needs |= thing.history
            queue += thing.parts
            if thing.code is not None and thing.scope is not None:
                for name in free_names(thing.code):
                    self.look_up(name, thing.scope)

    def look_up(self, name: str, scope: Scope) -> Things:
        """What a name holds, which is needed."""
        home = scope.home(name)
        if home is None:
            return NOTHING
        self.effects.needs |= home.histories.get(name, 0)
        things = home.names.get(name, NOTHING)
        self.look(things)
        return things

    def _read(self, name: str, scope: Scope) -> Things:
        """What a name in the code holds."""
        if scope.home(name) is None and scope.home("*") is not None:
            self.look_up("*", scope)  # `from a import *` may have bound it
        elif scope.home(name) is None and name not in libraries.BUILTINS:
            self.effects.missing.add(name)
        return self.look_up(name, scope)

    # -- statements

    def statements(self, nodes: Iterable[ast.AST], scope: Scope) -> None:
        for node in nodes:
            if isinstance(node, ast.stmt):
                self.statement(node, scope)
            elif isinstance(node, ast.expr):
                self.value(node, scope)
            else:  # a handler, a case
                self.statements(ast.iter_child_nodes(node), scope)

    def _perhaps(self, nodes: Iterable[ast.AST], scope: Scope) -> None:
        """Statements that may or may not run."""
        self._depth += 1
        self.statements(nodes, scope)
        self._depth -= 1

    def statement(self, node: ast.stmt, scope: Scope) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                for name, path in imports(node):
                    module = frozenset((self._new("module", path),))
                    self._bind(name, module, scope, certain=name != "*")
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self._define(node, scope)
            case ast.Assign(targets=targets):
                value = self.value(node.value, scope)
                for target in targets:
                    self._assign(target, value, scope)
            case ast.AugAssign(target=ast.Name(id=name)):
                added, old = self.value(node.value, scope), self._read(name, scope)
                self._change(old, added)
                self._bind(name, old, scope, certain=False)
            case ast.AugAssign():
                self._assign(node.target, self.value(node.value, scope), scope)
            case ast.Delete(targets=targets):
                for target in targets:
                    if isinstance(target, ast.Name):
                        self._bind(target.id, NOTHING, scope, certain=False)
                    else:
                        self._assign(target, NOTHING, scope)
            case ast.For() | ast.AsyncFor():
                self._assign(node.target, self._items(node.iter, scope), scope)
                self._perhaps([*node.body, *node.orelse], scope)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    manager = self.value(item.context_expr, scope)
                    if item.optional_vars is not None:
                        self._assign(item.optional_vars, parts_of(manager), scope)
                self.statements(node.body, scope)
            case ast.Return(value=ast.expr() as result):
                self._return(self.value(result, scope))
            case _:
                for name in sorted(bound_by(node)):  # of handlers and cases, too
                    thing = frozenset((self._new(),))
                    self._bind(name, thing, scope, certain=False)
                for child in ast.iter_child_nodes(node):
                    may_run = not isinstance(child, ast.expr)
                    (self._perhaps if may_run else self.statements)([child], scope)

    def _define(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, scope: Scope
    ) -> None:
        if isinstance(node, ast.ClassDef):
            bases = [*node.bases, *(keyword.value for keyword in node.keywords)]
            things = self._function(node, self._values(bases, scope), scope)
            self.look(things)  # its body runs now
        else:
            things = self._function(node, self._defaults(node.args, scope), scope)
        for decorator in reversed(node.decorator_list):
            things = self._call(decorator, Arguments((things,)), scope)
        self._bind(node.name, things, scope)

    def _defaults(self, of: ast.arguments, scope: Scope) -> Things:
        """Follow the defaults of parameters, and their annotations."""
        nodes = (of, *ast.iter_child_nodes(of))
        inside = (child for node in nodes for child in ast.iter_child_nodes(node))
        return self._values((n for n in inside if isinstance(n, ast.expr)), scope)

    def _function(self, code: Code, parts: Things, scope: Scope) -> Things:
        thing = self._new(parts=parts)
        thing.code, thing.scope = code, scope
        return frozenset((thing,))

    def _return(self, value: Things) -> None:
        if self._returns:
            self._returns[-1] |= value

    # -- what is assigned to

    def _assign(self, target: ast.expr, value: Things, scope: Scope) -> None:
        match target:
            case ast.Name(id=name):
                self._bind(name, value, scope)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                for inner in targets:
                    self._assign(inner, parts_of(value), scope)
            case ast.Starred(value=inner):
                self._assign(inner, self._list(value), scope)
            case ast.Attribute(value=base):
                self._store(base, value, scope)
            case ast.Subscript(value=base, slice=index):
                self.value(index, scope)
                self._store(base, value, scope)

    def _store(self, base: ast.expr, value: Things, scope: Scope) -> None:
        """Put something into an object, or set something that a module holds."""
        owner = self.value(base, scope)
        if self._path(dotted(base), scope):
            owner = self.look_up(libraries.SETTINGS, self.page)
        self._change(owner, value)

    def _bind(
        self, name: str, things: Things, scope: Scope, certain: bool = True
    ) -> None:
        """Give a name a value; if not `certain`, it may also keep its old value."""
        certain, home = certain and not self._depth, scope
        if not scope.is_page and name not in scope.own:
            home = scope.home(name) or self.page  # declared global or nonlocal
            certain = False
        if not certain:
            things |= home.names.get(name, NOTHING)
            if home.is_page and name in home.names:
                self.effects.needs |= home.histories.get(name, 0)
        home.names[name] = things
        if home.is_page:
            self.effects.bound[name] = certain
            if certain:
                home.histories[name] = 0
        elif home is not scope:
            self.effects.changed.add(self._active[-1])

    # -- expressions

    def _values(self, nodes: Iterable[ast.expr], scope: Scope) -> Things:
        return NOTHING.union(*[self.value(node, scope) for node in nodes])

    def value(self, node: ast.expr, scope: Scope) -> Things:
        """Follow an expression; what its value may be."""
        match node:
            case ast.Name(id=name):
                return self._read(name, scope)
            case ast.Constant():
                return NOTHING
            case ast.Attribute(value=base):
                return parts_of(self.value(base, scope))
            case ast.Subscript(value=base, slice=index):
                self.value(index, scope)
                return parts_of(self.value(base, scope))
            case ast.Call():
                positional = tuple([self.value(a, scope) for a in node.args])
                named = {k.arg or "": self.value(k.value, scope) for k in node.keywords}
                return self._call(node.func, Arguments(positional, named), scope)
            case ast.Lambda():
                return self._function(node, self._defaults(node.args, scope), scope)
            case ast.NamedExpr(target=target):
                value = self.value(node.value, scope)
                self._bind(target.id, value, scope)
                return value
            case ast.Starred(value=inner):
                return self._items(inner, scope)
            case ast.Yield() | ast.YieldFrom():
                value = self._values(filter(None, [node.value]), scope)
                self._return(self._list(value))
                return value
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node, scope)
            case _:
                children = ast.iter_child_nodes(node)
                inside = (child for child in children if isinstance(child, ast.expr))
                parts = self._values(inside, scope)
                if isinstance(node, ast.IfExp | ast.BoolOp | ast.Await):
                    return parts
                holds = isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict)
                return self._list(parts if holds else NOTHING)

    def _list(self, parts: Things) -> Things:
        return frozenset((self._new("list", parts=parts),))

    def _items(self, node: ast.expr, scope: Scope) -> Things:
        """Follow an expression whose elements are taken; what an element may be."""
        value = self.value(node, scope)
        self._use_up(value)
        return parts_of(value)

    def _comprehension(self, node: Comprehension, scope: Scope) -> Things:
        inside = Scope(outer=scope)
        for part in node.generators:
            items = self._items(part.iter, inside)
            inside.own |= frozenset(bound_names([part.target]))
            self._assign(part.target, items, inside)
            self._values(part.ifs, inside)
        element = node.value if isinstance(node, ast.DictComp) else node.elt
        return self._list(self.value(element, inside))

    def _new(
        self, kind: str = "", path: str = "", parts: Iterable[Thing] = ()
    ) -> Thing:
        thing = Thing(kind, path, set(parts))
        self.effects.made.append(thing)
        return thing

    def _path(self, written: str, scope: Scope) -> str:
        """The dotted path of what is written so; empty if it is no library's."""
        root, dot, rest = written.partition(".")
        home = scope.home(root)
        if home is None:
            return f"builtins.{written}" if root in libraries.BUILTINS else ""
        modules = [t for t in home.names.get(root, ()) if t.kind == "module"]
        return f"{modules[0].path}{dot}{rest}" if modules else ""

    # -- changing

    def _change(self, things: Things, stored: Things = NOTHING) -> None:
        for thing in things:
            if thing.kind != "module" and not isinstance(thing.code, ast.FunctionDef):
                self.look((thing,))
                self.effects.changed.add(thing)
                thing.parts |= stored - {thing}

    def _use_up(self, things: Things) -> None:
        """Change the iterators among these, and those that they read from."""
        self._change(frozenset(t for t in reach(things) if t.kind == "iterator"))

    # -- calls

    def _call(self, function: ast.expr, arguments: Arguments, scope: Scope) -> Things:
        self.effects.calls = True
        is_method = isinstance(function, ast.Attribute)
        called = self.value(function.value if is_method else function, scope)  # type: ignore[attr-defined]
        self._use_up(arguments.every)
        if path := self._path(dotted(function), scope):
            return self._library(path, arguments)
        if isinstance(function, ast.Attribute):
            return self._method(called, function.attr, arguments)
        return self._plain(called, arguments)

    def _plain(self, called: Things, arguments: Arguments) -> Things:
        """Call what the page made: functions, classes, objects of these."""
        results = NOTHING
        for thing in in_order(called):
            if isinstance(thing.code, ast.ClassDef):
                instance = self._new("instance", parts={thing, *arguments.every})
                self._own_method(instance, "__init__", arguments)
                results |= {instance}
            elif thing.code is not None:
                results |= self._body(thing, thing.code, arguments)
            elif thing.kind == "wrapper" and not callables(thing.parts):
                # a decorator that waits for its function
                parts = thing.parts | arguments.every
                results |= {self._new("wrapper", thing.path, parts)}
            elif thing.kind == "wrapper":
                results |= self._plain(callables(thing.parts), arguments)
            elif thing.kind == "instance":
                results |= self._own_method(thing, "__call__", arguments) or NOTHING
            elif thing.kind == "library":
                results |= self._plain(callables(thing.parts), arguments)
                functions = callables(arguments.every)
                results |= {self._new("library", thing.path, functions)}
        return results or frozenset((self._new(),))

    def _body(self, thing: Thing, code: Function, arguments: Arguments) -> Things:
        """Follow a call into a function of the page."""
        # Calls differ by the functions that they are given.
        key = code, frozenset(t.code for t in reach(callables(arguments.every)))
        if key in self._results:
            return self._results[key]
        if len(self._active) >= _DEEPEST:
            return arguments.every
        self._results[key] = NOTHING
        self.look((thing,))
        inside = Scope(_bound_arguments(code, arguments), thing.scope, own_names(code))
        self._active.append(thing)
        self._returns.append(NOTHING)
        depth, self._depth = self._depth, 0
        if isinstance(code, ast.Lambda):
            self._return(self.value(code.body, inside))
        else:
            self.statements(code.body, inside)
        self._depth = depth
        self._active.pop()
        results = self._returns.pop()
        if is_generator(code):
            results = frozenset((self._new("iterator", "", results | arguments.every),))
        self._results[key] = results
        return results

    def _own_method(
        self, owner: Thing, name: str, arguments: Arguments
    ) -> Things | None:
        """Call a method of the page; None if the object has none of this name."""
        methods = list(_methods_named(owner, name))
        positional = frozenset((owner,)), *arguments.positional
        places = Arguments(positional, arguments.keywords)
        results = NOTHING.union(*[self._body(m, m.code, places) for m in methods])  # type: ignore[arg-type]
        return results if methods else None

    def _method(self, owners: Things, name: str, arguments: Arguments) -> Things:
        """Call a method, of the page's class or of an object of a library.

        A method that the page defines is followed. Of any other its name tells whether
        it changes its object; and it may call the functions that its object holds.
        """
        results, is_own = NOTHING, False
        for thing in in_order(owners):
            if thing.kind == "instance" or isinstance(thing.code, ast.ClassDef):
                own = self._own_method(thing, name, arguments)
                results |= own or NOTHING
                is_own |= own is not None
        self._use_up(owners)
        if libraries.mutates(name) and not is_own and not all(map(_is_frozen, owners)):
            stored = arguments.every if name in libraries.STORES else NOTHING
            self._change(owners, stored)
            if any(t.kind in ("library", "instance") for t in owners):
                # with all that they hold, functions and classes apart
                self._change(frozenset(t for t in reach(owners) if t.code is None))
        called = callables(owners)
        if called and not is_own and all(t.kind != "instance" for t in owners):
            results |= self._plain(called, arguments)
        parts = (t for t in parts_of(owners) if t.kind != "iterator")
        return results | self._list(frozenset(parts))

    # -- libraries

    def _library(self, path: str, arguments: Arguments) -> Things:
        """Call a library's function, as the tables say what it does."""
        every, positional = arguments.every, arguments.positional
        if positional and path.startswith(libraries.GIVES_FIRST):
            if "register" in path:
                self._change(positional[0])
            return positional[0]
        if path.rpartition(".")[2] in libraries.WRAPPERS:
            return frozenset((self._new("wrapper", path, every),))
        self.effects.prints |= path.startswith(libraries.PRINTS)
        if state := libraries.changes_hidden(path):
            self._change(self.look_up(state, self.page))
        functions = frozenset(
            t for t in every if isinstance(t.code, Function) or t.kind == "wrapper"
        )
        called = self._plain(functions, arguments) if functions else NOTHING
        if path.startswith(libraries.USED_UP):
            return frozenset((self._new("iterator", path, every | called),))
        if not path.startswith(libraries.FRESH):
            functions |= parts_of(every)
        return frozenset((self._new("library", path, functions | called),))


def _is_frozen(thing: Thing) -> bool:
    return thing.kind == "library" and thing.path.startswith(libraries.FROZEN)


def _methods_named(owner: Thing, name: str) -> Iterator[Thing]:
    """The methods of this name that an object or a class of the page may have."""
    for thing in in_order(reach((owner,))):
        if isinstance(thing.code, ast.ClassDef):
            for node in thing.code.body:
                if isinstance(node, Function) and getattr(node, "name", "") == name:
                    yield Thing(code=node, scope=thing.scope, history=thing.history)


def _bound_arguments(code: Function, arguments: Arguments) -> dict[str, Things]:
    """What each parameter holds."""
    places, others = parameters(code)
    by_name = arguments.keywords
    names = {name: by_name.get(name, by_name.get("", NOTHING)) for name in places}
    names |= {name: by_name.get(name, parts_of(arguments.every)) for name in others}
    return names | dict(zip(places, arguments.positional, strict=False))
