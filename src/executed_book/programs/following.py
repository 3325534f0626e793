"""What one statement needs of those above it, found by following what it does.

What names hold are `Thing`s. Each remembers the statements that made it what it is, as
the bits of a number. Whatever a statement looks at adds these to its needs; whatever it
makes or changes remembers the statement, with all that it needed.

Calls of the page's own functions are followed into their bodies. What libraries do is
told by the tables in `libraries`.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from . import libraries
from .names import (
    DEFINITIONS,
    Code,
    Comprehension,
    Function,
    bound_names,
    dotted,
    free_names,
    imports,
    own_names,
    parameters,
)
from .things import (
    NOTHING,
    SERIALS,
    Arguments,
    Effects,
    Mask,
    Scope,
    Thing,
    Things,
    callables,
    functions,
    parts_of,
    reach,
    wrapped,
)

#: Calls within calls are followed this far.
_DEEPEST = 12


@dataclass
class _Frame:
    """What a call does besides: the oldest thing that it changes, and printing."""

    since: int
    oldest: float = math.inf
    prints: bool = False


class Follower:
    """Follows one statement over what the page has made."""

    def __init__(self, page: Scope, is_block: bool = False) -> None:
        self.page, self.effects, self._is_block = page, Effects(), is_block
        self._seen: set[Thing] = set()
        self._seen_names: set[tuple[int, str]] = set()
        self._depth = 0  # blocks around that may not run
        self._active: list[Code] = []
        self._returns: list[Things] = []
        self._frames: list[_Frame] = []
        self._observed = 0
        self._since = next(SERIALS)
        self._results: dict[object, tuple[Things, _Frame]] = {}

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
                self.effects.needs |= thing.scope.cell.history
                for name in free_names(thing.code):
                    self.look_up(name, thing.scope)

    def look_up(self, name: str, scope: Scope) -> Things:
        """What a name holds, which is needed."""
        home = scope.home(name)
        if home is None:
            return NOTHING
        if (id(home), name) not in self._seen_names:
            self._seen_names.add((id(home), name))
            self.effects.needs |= home.histories.get(name, 0)
        things = home.names.get(name, NOTHING)
        self.look(things)
        return things

    def read(self, name: str, scope: Scope) -> Things:
        """What a name in the code holds."""
        if scope.home(name) is None and name not in libraries.BUILTINS:
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
                    self._bind(name, module, scope, certain=True)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self._define(node, scope)
            case ast.Assign(targets=targets):
                value = self.value(node.value, scope)
                for target in targets:
                    self._assign(target, value, scope)
            case ast.AnnAssign():
                self.value(node.annotation, scope)
                if node.value is not None:
                    value = self.value(node.value, scope)
                    self._assign(node.target, value, scope)
            case ast.AugAssign(target=ast.Name(id=name)):
                added, old = self.value(node.value, scope), self.read(name, scope)
                self._store(old, "", added, scope)
                self._bind(name, old, scope, certain=False)
            case ast.AugAssign():
                self._assign(node.target, self.value(node.value, scope), scope)
            case ast.Delete(targets=targets):
                for target in targets:
                    if not isinstance(target, ast.Name):
                        self._assign(target, NOTHING, scope)
                        continue
                    self.read(target.id, scope)
                    if scope.is_page:
                        scope.names.pop(target.id, None)
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
            case ast.Try() | ast.TryStar():
                for handler in node.handlers:
                    if handler.type is not None:
                        self.value(handler.type, scope)
                    if handler.name:
                        error = frozenset((self._new(),))
                        self._bind(handler.name, error, scope)
                self._perhaps(node.body, scope)
                for handler in node.handlers:
                    self._perhaps(handler.body, scope)
                self._perhaps([*node.orelse, *node.finalbody], scope)
            case ast.Match():
                parts = parts_of(self.value(node.subject, scope))
                for name in bound_names(node.cases):
                    self._bind(name, parts, scope, certain=False)
                self._perhaps(node.cases, scope)
            case _:
                for child in ast.iter_child_nodes(node):
                    may_run = isinstance(child, ast.stmt)
                    (self._perhaps if may_run else self.statements)([child], scope)

    def _define(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, scope: Scope
    ) -> None:
        if isinstance(node, ast.ClassDef):
            bases = [*node.bases, *(keyword.value for keyword in node.keywords)]
            made = self._function(node, self._values(bases, scope), scope)
            # The body runs now; its names are those of the class.
            inside = Scope(outer=scope, own=frozenset(bound_names(node.body)))
            for expression in _evaluated(node.body):
                self._store(made, "", self.value(expression, inside), scope)
        else:
            made = self._function(node, self._defaults(node.args, scope), scope)
            if node.returns is not None:
                self.value(node.returns, scope)
        for decorator in reversed(node.decorator_list):
            made = self._call(decorator, Arguments((made,)), scope)
        self._bind(node.name, made, scope)

    def _defaults(self, of: ast.arguments, scope: Scope) -> Things:
        places = [*of.posonlyargs, *of.args, *of.kwonlyargs, of.vararg, of.kwarg]
        annotations = [a.annotation for a in places if a and a.annotation]
        self._values(annotations, scope)
        return self._values(filter(None, [*of.defaults, *of.kw_defaults]), scope)

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
                self._assign(inner, frozenset((self._new(parts=value),)), scope)
            case ast.Attribute(value=base):
                self._store(self.value(base, scope), dotted(target), value, scope)
            case ast.Subscript(value=base, slice=index):
                self.value(index, scope)
                self._store(self.value(base, scope), dotted(base), value, scope)

    def _store(self, owner: Things, written: str, value: Things, scope: Scope) -> None:
        """Put something into an object, or set something that a module holds."""
        if not any(thing.kind == "module" for thing in owner):
            self._change(owner, value)
        elif path := self._path(written, scope):
            self._set(path)

    def _bind(
        self, name: str, things: Things, scope: Scope, certain: bool | None = None
    ) -> None:
        """Give a name a value; not `certain` where it may keep the one that it had."""
        certain, home = not self._depth if certain is None else certain, scope
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
            self.effects.changed.add(home.cell)
        if home is not scope:
            self._differ(0)

    # -- expressions

    def _values(self, nodes: Iterable[ast.expr], scope: Scope) -> Things:
        return NOTHING.union(*[self.value(node, scope) for node in nodes])

    def value(self, node: ast.expr, scope: Scope) -> Things:
        """Follow an expression; what its value may be."""
        match node:
            case ast.Name(id=name):
                return self.read(name, scope)
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
            case ast.List() | ast.Tuple() | ast.Set():
                return self._list(self._values(node.elts, scope))
            case ast.Dict():
                self._values(filter(None, node.keys), scope)
                return self._list(self._values(node.values, scope))
            case ast.Lambda():
                return self._function(node, self._defaults(node.args, scope), scope)
            case ast.IfExp():
                self.value(node.test, scope)
                return self._values([node.body, node.orelse], scope)
            case ast.BoolOp(values=values):
                return self._values(values, scope)
            case ast.NamedExpr(target=target):
                value = self.value(node.value, scope)
                while scope.is_comprehension and scope.outer:
                    scope = scope.outer
                self._bind(target.id, value, scope)
                return value
            case ast.Starred(value=inner):
                return self._items(inner, scope)
            case ast.Await(value=inner):
                return self.value(inner, scope)
            case ast.Yield():
                given = self.value(node.value, scope) if node.value else NOTHING
                self._return(frozenset((self._new(parts=given),)))
                return given
            case ast.YieldFrom(value=inner):
                self._return(self._items(inner, scope))
                return NOTHING
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node, scope)
            case ast.BinOp(left=left, right=right):
                parts = self._values([left, right], scope)
                holds = any(isinstance(n, ast.List | ast.Tuple) for n in (left, right))
                return self._list(parts if holds else NOTHING)
            case _:
                children = ast.iter_child_nodes(node)
                self._values((c for c in children if isinstance(c, ast.expr)), scope)
                return NOTHING

    def _list(self, parts: Things) -> Things:
        return frozenset((self._new("list", parts=parts),))

    def _items(self, node: ast.expr, scope: Scope) -> Things:
        """Follow an expression whose elements are taken; what an element may be."""
        value = self.value(node, scope)
        self._use_up(value)
        return parts_of(value)

    def _comprehension(self, node: Comprehension, scope: Scope) -> Things:
        inside = Scope(outer=scope, is_comprehension=True)
        for part in node.generators:
            items = self._items(part.iter, inside)
            inside.own |= frozenset(bound_names([part.target]))
            self._assign(part.target, items, inside)
            self._values(part.ifs, inside)
        if isinstance(node, ast.DictComp):
            self.value(node.key, inside)
            return self._list(self.value(node.value, inside))
        return self._list(self.value(node.elt, inside))

    def _new(
        self, kind: str = "", path: str = "", parts: Iterable[Thing] = ()
    ) -> Thing:
        thing = Thing(kind, path, set(parts))
        self.effects.made.append(thing)
        return thing

    def _path(self, written: str, scope: Scope) -> str:
        """The dotted path of what is written so; empty if it is no library's."""
        root, dot, rest = written.partition(".")
        if scope.home(root) is None:
            return f"builtins.{written}" if root in libraries.BUILTINS else ""
        for thing in scope.held(root):
            if thing.kind == "module":
                return f"{thing.path}{dot}{rest}"
        return ""

    # -- changing

    def _change(self, things: Things, stored: Things = NOTHING) -> None:
        for thing in things:
            if thing.kind == "module" or isinstance(thing.code, ast.FunctionDef):
                continue
            self.look((thing,))
            self.effects.changed.add(thing)
            thing.parts |= stored - {thing}
            self._differ(thing.serial)

    def _change_deep(self, things: Things) -> None:
        """Change these and all that they hold, functions and classes apart."""
        self._change(frozenset(t for t in reach(things) if t.code is None))

    def _use_up(self, things: Things) -> None:
        iterators = [t for t in things if t.kind == "iterator"]
        while iterators:
            thing = iterators.pop()
            if thing not in self.effects.changed:
                self._change(frozenset((thing,)))
                iterators += [t for t in thing.parts if t.kind == "iterator"]

    def _differ(self, serial: float) -> None:
        """Note that something has changed, for the calls around."""
        for frame in self._frames:
            frame.oldest = min(frame.oldest, serial)

    def _touch(self, state: str) -> None:
        """Change a hidden state; a file is written whatever was written before."""
        if state == libraries.FILES:
            self.effects.writes_files = True
            self.effects.changed |= self.page.names[state]
        else:
            self._change(self.look_up(state, self.page))

    def _set(self, path: str) -> None:
        inside = self._is_block or self._active
        if inside and path.startswith("warnings."):
            return  # of `catch_warnings`, at whose end it is undone
        self._touch(libraries.SETTINGS)
        self.effects.sets_environment |= path.startswith(libraries.BEFORE_IMPORTS)

    # -- calls

    def _call(self, function: ast.expr, given: Arguments, scope: Scope) -> Things:
        self.effects.calls = True
        path = dotted(function)
        name = function.attr if isinstance(function, ast.Attribute) else ""
        base = function.value if isinstance(function, ast.Attribute) else function
        called = self.value(base, scope)
        self._use_up(given.every)
        if path := self._path(path, scope):
            results = self._library(path, given)
        elif name:
            results = self._method(called, name, given)
        else:
            results = self._plain(called, given)
        if any("donate" in keyword for keyword in given.keywords):
            for thing in results:
                thing.donates = True
        return results

    def _plain(self, called: Things, given: Arguments) -> Things:
        """Call what the page made: functions, classes, objects of these."""
        results = NOTHING
        for thing in sorted(called, key=lambda one: one.serial):
            if thing.kind == "module":
                results |= self._library(thing.path, given)
            elif isinstance(thing.code, ast.ClassDef):
                results |= self._instance(thing, given)
            elif thing.code is not None:
                results |= self._body(thing, thing.code, given)
            elif thing.kind == "wrapper":
                results |= self._wrapper(thing, given)
            elif thing.kind == "instance":
                results |= self._methods(thing, "__call__", given) or NOTHING
            elif thing.kind == "library":
                results |= self._plain(callables(thing.parts), given)
                results |= {self._new("library", thing.path, callables(given.every))}
        return results or frozenset((self._new(),))

    def _wrapper(self, thing: Thing, given: Arguments) -> Things:
        """Call what a library made of a function."""
        if thing.donates:
            self._change_deep(given.every)
        if not callables(thing.parts):  # a decorator that waits for its function
            if any(part.kind == "module" for part in thing.parts):  # of a `partial`
                return self._plain(frozenset(thing.parts), given)
            waiting = self._library(thing.path, Arguments(given.positional))
            for one in waiting:
                one.donates |= thing.donates
            return waiting
        watches = thing.path == "justafter.watch"
        if watches:
            self._change(frozenset((thing,)))
        self._observed += watches
        last = thing.path.rpartition(".")[2]
        bound = frozenset(t for t in thing.parts if not callables((t,)))
        if last == "partial" and bound:
            given = given.after(bound)
        is_kept = last in libraries.KEEPS_TRACES
        results = self._traced(is_kept, callables(thing.parts), given)
        self._observed -= watches
        if last in ("vjp", "make_jaxpr", "lens", "wraps"):  # they give functions
            results |= {self._new("library", "", thing.parts)}
        return results

    def _traced(self, is_kept: bool, called: Things, given: Arguments) -> Things:
        """Call functions where JAX may remember what it traced."""
        if not is_kept:
            return self._plain(called, given)
        with self._watched() as frame:
            results = self._plain(called, given)
        differs = frame.oldest < frame.since
        for thing in wrapped(called):
            version = self._version(thing, given)
            stale = any(version != earlier for earlier in thing.versions)
            if frame.prints or differs or self._observed or stale:
                self.effects.needs |= thing.traces
                self.look_up(libraries.TRACES, self.page)
            thing.versions.add(version)
            self.effects.prints_traced |= frame.prints
            self.effects.traced.add(thing)
        return results

    def _version(self, thing: Thing, given: Arguments) -> Mask:
        """The statements that made what a function looks up when it is traced."""
        follower = Follower(self.page)
        places = NOTHING.union(*given.positional)
        follower.look((thing, *(t for t in places if t.kind == "instance")))
        return follower.effects.needs

    @contextmanager
    def _watched(self) -> Iterator[_Frame]:
        """Note what is done inside."""
        frame = _Frame(next(SERIALS))
        self._frames.append(frame)
        printed, self.effects.prints = self.effects.prints, False
        yield frame
        frame.prints = self.effects.prints
        self.effects.prints |= printed
        self._frames.pop()

    def _body(self, thing: Thing, code: Function, given: Arguments) -> Things:
        """Follow a call into a function of the page."""
        kinds = map(self._kind, (*given.positional, *given.keywords.values()))
        key = (code, *kinds, *given.keywords, self._observed)
        if key in self._results:
            results, frame = self._results[key]
            self.effects.prints |= frame.prints
            self._differ(frame.oldest)
            return results
        if code in self._active or len(self._active) >= _DEEPEST:
            return given.every
        self._results[key] = NOTHING, _Frame(0)
        self.look((thing,))
        inside = Scope(_bound_arguments(code, given), thing.scope, own_names(code))
        self._active.append(code)
        self._returns.append(NOTHING)
        depth, self._depth = self._depth, 0
        with self._watched() as frame:
            if isinstance(code, ast.Lambda):
                self._return(self.value(code.body, inside))
            else:
                self.statements(code.body, inside)
        self._depth = depth
        self._active.pop()
        results = self._returns.pop()
        if _yields(code):
            results = frozenset((self._new("iterator", "", results | given.every),))
        self._results[key] = results, frame
        return results

    def _kind(self, things: Things) -> frozenset[object]:
        """What tells calls apart: what was there before, and what a new thing runs."""
        kind: set[object] = {t for t in things if t.serial < self._since}
        for thing in callables(things):
            kind |= {part.code for part in (thing, *thing.parts) if part.code}
        return frozenset(kind)

    # -- classes of the page

    def _instance(self, thing: Thing, given: Arguments) -> Things:
        made = self._new("instance", parts={thing, *given.every})
        for name in ("__init__", "__post_init__", "setup", "__new__"):
            self._methods(made, name, given)
        return frozenset((made,))

    def _methods(self, owner: Thing, name: str, given: Arguments) -> Things | None:
        """Call a method of the page; None if the object has none of this name."""
        results, has_any = NOTHING, False
        for method in _methods_named(owner, name):
            has_any = True
            decorators = getattr(method.code, "decorator_list", [])
            is_static = any(getattr(d, "id", "") == "staticmethod" for d in decorators)
            is_kept = any("jit" in ast.unparse(d) for d in decorators)
            places = given if is_static else given.after(frozenset((owner,)))
            results |= self._traced(is_kept, frozenset((method,)), places)
        return results if has_any else None

    def _method(self, owners: Things, name: str, given: Arguments) -> Things:
        """Call a method, of the page's class or of an object of a library."""
        results, is_own = NOTHING, False
        for thing in owners:
            if thing.kind == "instance" or isinstance(thing.code, ast.ClassDef):
                own = self._methods(thing, name, given)
                if own is None:  # one that a library gave it may run its `__call__`
                    own = self._methods(thing, "__call__", given)
                results |= own or NOTHING
                is_own |= own is not None
        used_up = frozenset(t for t in owners if t.kind == "iterator")
        self._change(used_up)
        if _mutates(name) and not is_own and not all(map(_is_frozen, owners)):
            self._change(owners, given.every if name in libraries.STORES else NOTHING)
            if any(t.kind in ("library", "instance") for t in owners):
                self._change_deep(owners)
        if name in libraries.FILE_METHODS_WRITE:
            self._touch(libraries.FILES)
        elif name in libraries.FILE_METHODS_READ:
            self.look_up(libraries.FILES, self.page)
        called = callables(owners)
        if name in libraries.READS_TRACES:
            for thing in wrapped(called):
                self.effects.needs |= thing.traces
        elif called and not is_own and all(t.kind != "instance" for t in owners):
            results |= self._traced(name in libraries.KEEPS_TRACES, called, given)
        self._traced(True, functions(given.every), Arguments())
        if used_up:
            return self._list(parts_of(used_up) - used_up)
        if name in libraries.HOLDING:
            return results | self._list(parts_of(owners))
        return results | {self._new("library", "", called | callables(given.every))}

    # -- libraries

    def _library(self, path: str, given: Arguments) -> Things:
        """Call a library's function, as the tables say what it does."""
        every, positional = given.every, given.positional
        last = path.rpartition(".")[2]
        if positional and path.startswith(libraries.GIVES_FIRST):
            if "register" in path:
                self._change(positional[0])
            return positional[0]
        if libraries.wraps(path):
            return frozenset((self._new("wrapper", path, every),))
        below = path.startswith(libraries.PRINTS_BELOW)
        self.effects.prints |= below or path.startswith(libraries.PRINTS)
        self.effects.prints_below |= below
        state = libraries.changes_hidden(path)
        if state == libraries.SETTINGS:
            self._set(path)
        elif state is not None:
            self._touch(state)
        if path.startswith(libraries.READS_FILES):
            self.look_up(libraries.FILES, self.page)
        hides = path in ("builtins.exec", "builtins.globals", "builtins.eval")
        self.effects.hides_names |= hides and len(positional) < 2
        if hides and len(positional) > 1:
            self._change(positional[1])
        if not libraries.is_known(path):
            self._change_deep(every)
        if path.startswith(libraries.CHANGES_FIRST) and positional:
            self._change(positional[0], NOTHING.union(*positional[1:]))
        taken, called = functions(every), NOTHING
        if taken and libraries.calls_what_it_gets(path):
            rest = tuple(p - taken for p in positional if p - taken)
            is_kept = last in libraries.KEEPS_TRACES
            called = self._traced(is_kept, taken, Arguments(rest))
        if path.startswith(libraries.USED_UP):
            return frozenset((self._new("iterator", path, every | called),))
        if libraries.holds_given(path):
            kind = "library" if "." in path.removeprefix("builtins.") else "list"
            return frozenset((self._new(kind, path, parts_of(every) | called),))
        return frozenset((self._new("library", path, taken | called),))


def _evaluated(body: Iterable[ast.stmt]) -> Iterator[ast.expr]:
    """The expressions in a class's body that run when the class is made."""
    for node in body:
        inside = list(ast.iter_child_nodes(node))
        if isinstance(node, DEFINITIONS):
            inside = [*node.decorator_list]
            if not isinstance(node, ast.ClassDef):
                defaults = [*node.args.defaults, *node.args.kw_defaults]
                inside += [default for default in defaults if default is not None]
        for child in inside:
            is_target = isinstance(getattr(child, "ctx", None), ast.Store)
            if isinstance(child, ast.expr) and not is_target:
                yield child


def _is_frozen(thing: Thing) -> bool:
    return thing.kind == "library" and thing.path.startswith(libraries.FROZEN)


def _mutates(name: str) -> bool:
    return name in libraries.MUTATORS or name.startswith(libraries.MUTATOR_PREFIXES)


def _yields(code: Function) -> bool:
    if isinstance(code, ast.Lambda):
        return False
    return any(isinstance(n, ast.Yield | ast.YieldFrom) for n in ast.walk(code))


def _methods_named(owner: Thing, name: str) -> Iterator[Thing]:
    """The methods of this name that an object or a class of the page may have."""
    queue, seen = [owner], {owner}
    while queue:
        thing = queue.pop()
        if isinstance(thing.code, ast.ClassDef):
            own = [node for node in thing.code.body if isinstance(node, DEFINITIONS)]
            named = [n for n in own if n.name == name and isinstance(n, Function)]
            if named:
                new = Thing(code=named[-1], scope=thing.scope, history=thing.history)
                yield thing.methods.setdefault(named[-1], new)
                continue
        elif thing.kind not in ("instance", "wrapper") and thing is not owner:
            continue
        queue += thing.parts - seen
        seen |= thing.parts


def _bound_arguments(code: Function, given: Arguments) -> dict[str, Things]:
    """What each parameter holds."""
    places, others = parameters(code)
    names = dict.fromkeys([*places, *others], NOTHING)
    names.update(zip(places, given.positional, strict=False))
    left = NOTHING.union(*given.positional[len(places) :])
    for name, value in given.keywords.items():
        if name in names:
            names[name] |= value
        else:
            left |= value
    for name in others if left else ():
        names[name] |= left.union(*(t.parts for t in left))
    return names
