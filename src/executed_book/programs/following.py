"""What one statement needs of those above it, found by following its operations.

What names hold are `Thing`s. Each remembers the statements that made it what it is, as
the bits of a number. Whatever a statement looks at adds these to its needs; whatever it
makes or changes remembers the statement, with all that it needed.

Calls of the page's own functions are followed into their bodies. What libraries do is
told by the tables in `libraries`.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from . import libraries
from .names import (
    Bind,
    Block,
    Call,
    Change,
    Code,
    Import,
    Make,
    Names,
    Op,
    Part,
    Read,
    Unbind,
    Use,
    block_of,
    method,
)

#: Statements, as the bits of a number.
Mask = int

#: Calls within calls are followed this far.
_DEEPEST = 12

_SERIALS = itertools.count(1)


@dataclass(eq=False)
class Thing:
    """Something that names of the page may hold.

    Attributes:
        kind: "module" for what an import gave, "wrapper" for what a library made of a
            function, "library" for another object of one, "iterator" for what is used
            up, "list" for what has parts, "instance" for one of a class of the page.
        path: the dotted path of what made it, if that is a library's.
        parts: what it holds or shares data with.
        code: what it runs when it is called, and `scope` where that looks up names.
        history: the statements that made it what it is.
        traces: those that may have traced it; `versions` are the statements that had
            made what it looks up each time. JAX goes on using an old trace.
    """

    kind: str = ""
    path: str = ""
    parts: set[Thing] = field(default_factory=set)
    code: Code | None = None
    scope: Scope | None = None
    history: Mask = 0
    traces: Mask = 0
    versions: set[Mask] = field(default_factory=set)
    donates: bool = False
    serial: int = field(default_factory=lambda: next(_SERIALS))


Things = frozenset[Thing]
NOTHING: Things = frozenset()


@dataclass
class Scope:
    """Names and what they hold; `histories` are the statements that bound them.

    `cell` changes when a function inside of another binds one of the outer's names.
    """

    names: dict[str, Things] = field(default_factory=dict)
    outer: Scope | None = None
    own: Names = frozenset()
    histories: dict[str, Mask] = field(default_factory=dict)
    cell: Thing = field(default_factory=Thing)

    def home(self, name: str) -> Scope | None:
        """The scope that a name is looked up in; None if nothing defines it."""
        scope: Scope | None = self
        while scope is not None and name not in scope.names:
            if name in scope.own and not scope.is_page:
                return scope
            scope = scope.outer
        return scope

    @property
    def is_page(self) -> bool:
        return self.outer is None


def page_scope() -> Scope:
    """The scope of a page on which nothing has run yet."""
    names = {name: frozenset((Thing(),)) for name in libraries.HIDDEN}
    return Scope(names, histories=dict.fromkeys(names, 0))


@dataclass
class Followed:
    """What a statement was found to need, and what it does besides."""

    needs: Mask = 0
    missing: set[str] = field(default_factory=set)
    prints: bool = False
    prints_traced: bool = False
    prints_below: bool = False
    calls: bool = False
    sets_environment: bool = False
    writes_files: bool = False
    hides_names: bool = False
    made: list[Thing] = field(default_factory=list)
    changed: set[Thing] = field(default_factory=set)
    traced: set[Thing] = field(default_factory=set)
    bound: dict[str, bool] = field(default_factory=dict)


@dataclass
class _Frame:
    """What a call does besides: the oldest thing that it changes, and printing."""

    since: int
    oldest: float = math.inf
    prints: bool = False


class Follower:
    """Follows the operations of one statement over what the page has made."""

    def __init__(self, page: Scope, is_block: bool = False) -> None:
        self.page, self.found, self._is_block = page, Followed(), is_block
        self._seen: set[Thing] = set()
        self._seen_names: set[tuple[int, str]] = set()
        self._active: list[Code] = []
        self._frames: list[_Frame] = []
        self._observed = 0
        self._since = next(_SERIALS)
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
            self.found.needs |= thing.history
            queue += thing.parts
            if thing.code is not None and thing.scope is not None:
                self.found.needs |= thing.scope.cell.history
                for name in block_of(thing.code).free:
                    self.look_up(name, thing.scope)

    def look_up(self, name: str, scope: Scope) -> Things:
        """What a name holds, which is needed."""
        home = scope.home(name)
        if home is None:
            return NOTHING
        if (id(home), name) not in self._seen_names:
            self._seen_names.add((id(home), name))
            self.found.needs |= home.histories.get(name, 0)
        things = home.names.get(name, NOTHING)
        self.look(things)
        return things

    # -- operations

    def run(self, ops: Iterable[Op], scope: Scope) -> None:
        """Follow operations in their order."""
        for op in ops:
            match op:
                case Read(name):
                    self._read(name, scope)
                case Bind(name, value, certain):
                    self._bind(name, self._things(value, scope), certain, scope)
                case Unbind(name):
                    self._read(name, scope)
                    if scope.is_page:
                        scope.names.pop(name, None)
                case Import(name, path):
                    module = self._new("module", path)
                    self._bind(name, frozenset((module,)), True, scope)
                case Part(result, value, path):
                    scope.names[result] = self._part(self._things(value, scope))
                    root = scope.names.get(path.partition(".")[0], NOTHING)
                    if any(t.kind == "module" for t in root):
                        self._library_value(self._path(path, scope))
                case Make(result, parts, code, is_list):
                    scope.names[result] = frozenset(
                        (self._make(self._things(parts, scope), code, is_list, scope),)
                    )
                case Change():
                    self._assign(op, scope)
                case Use(value):
                    self._use_up(self._things(value, scope))
                case Call():
                    scope.names[op.result] = self._call(op, scope)

    def _things(self, names: Names, scope: Scope) -> Things:
        found = NOTHING
        for name in names:
            home = scope.home(name)
            if home is not None:
                found |= home.names.get(name, NOTHING)
        return found

    def _new(
        self, kind: str = "", path: str = "", parts: Iterable[Thing] = ()
    ) -> Thing:
        thing = Thing(kind, path, set(parts))
        self.found.made.append(thing)
        return thing

    def _make(
        self, parts: Things, code: Code | None, is_list: bool, scope: Scope
    ) -> Thing:
        thing = self._new("list" if is_list else "", parts=parts)
        if code is not None:
            thing.code, thing.scope = code, scope
        return thing

    def _read(self, name: str, scope: Scope) -> None:
        if scope.home(name) is None:
            if name not in libraries.BUILTINS and not name.startswith("$"):
                self.found.missing.add(name)
            return
        self.look_up(name, scope)

    def _bind(self, name: str, things: Things, certain: bool, scope: Scope) -> None:
        home = scope
        if not scope.is_page and name not in scope.own and name[:1] != "$":
            home = scope.home(name) or self.page  # declared global or nonlocal
            certain = False
        if not certain:
            things |= home.names.get(name, NOTHING)
            if home.is_page and name in home.names:
                self.found.needs |= home.histories.get(name, 0)
        home.names[name] = things
        if home.is_page:
            self.found.bound[name] = certain
            if certain:
                home.histories[name] = 0
        elif home is not scope:
            self.found.changed.add(home.cell)
        if home is not scope:
            self._differ(0)

    @staticmethod
    def _part(things: Things) -> Things:
        found = set(things)
        for thing in things:
            # An object does not hold its class in the way that it holds its values.
            found |= {p for p in thing.parts if not isinstance(p.code, ast.ClassDef)}
        return frozenset(found)

    def _assign(self, op: Change, scope: Scope) -> None:
        path = self._path(op.path, scope) if op.path else ""
        value = self._things(op.value, scope)
        if any(thing.kind == "module" for thing in value):
            if path:
                self._set(path)
            return
        self._change(value, self._things(op.stored, scope))

    def _path(self, written: str, scope: Scope) -> str:
        """The dotted path of what is written so; empty if it is no library's."""
        root, dot, rest = written.partition(".")
        home = scope.home(root)
        if home is None:
            return f"builtins.{written}" if root in libraries.BUILTINS else ""
        for thing in home.names.get(root, NOTHING):
            if thing.kind == "module":
                return f"{thing.path}{dot}{rest}"
        return ""

    # -- changing

    def _change(self, things: Things, stored: Things = NOTHING) -> None:
        for thing in things:
            if thing.kind == "module" or isinstance(thing.code, ast.FunctionDef):
                continue
            self.look((thing,))
            self.found.changed.add(thing)
            thing.parts |= stored - {thing}
            self._differ(thing.serial)

    def _change_deep(self, things: Things) -> None:
        """Change these and all that they hold, functions and classes apart."""
        self._change(frozenset(t for t in reach(things) if t.code is None))

    def _use_up(self, things: Things) -> None:
        iterators = [t for t in things if t.kind == "iterator"]
        while iterators:
            thing = iterators.pop()
            if thing not in self.found.changed:
                self._change(frozenset((thing,)))
                iterators += [t for t in thing.parts if t.kind == "iterator"]

    def _differ(self, serial: float) -> None:
        """Note that something has changed, for the calls around."""
        for frame in self._frames:
            frame.oldest = min(frame.oldest, serial)

    def _touch(self, state: str) -> None:
        """Change a hidden state; a file is written whatever was written before."""
        if state == libraries.FILES:
            self.found.writes_files = True
            self.found.changed |= self.page.names[state]
        else:
            self._change(self.look_up(state, self.page))

    def _set(self, path: str) -> None:
        inside = self._is_block or self._active
        if inside and path.startswith("warnings."):
            return  # of `catch_warnings`, at whose end it is undone
        self._touch(libraries.SETTINGS)
        self.found.sets_environment |= path.startswith(libraries.BEFORE_IMPORTS)

    # -- calls

    def _call(self, op: Call, scope: Scope) -> Things:
        self.found.calls = True
        function = self._things(op.function, scope)
        positional = [self._things(names, scope) for names in op.positional]
        keywords = {k: self._things(names, scope) for k, names in op.keywords}
        given = NOTHING.union(*positional, *keywords.values())
        self._use_up(given)
        path = self._path(op.path, scope) if op.path else ""
        if path:
            found = self._library(path, positional, keywords)
        elif op.method:
            found = self._method(function, op.method, positional, keywords)
        else:
            found = self._plain(function, positional, keywords)
        if any("donate" in name for name, _ in op.keywords):
            for thing in found:
                thing.donates = True
        return found

    def _plain(
        self,
        function: Things,
        positional: list[Things],
        keywords: dict[str, Things],
    ) -> Things:
        """Call what the page made: functions, classes, objects of these."""
        given = NOTHING.union(*positional, *keywords.values())
        found = NOTHING
        for thing in sorted(function, key=lambda one: one.serial):
            if thing.kind == "module":
                found |= self._library(thing.path, positional, keywords)
            elif isinstance(thing.code, ast.ClassDef):
                found |= self._instance(thing, positional, keywords)
            elif thing.code is not None:
                found |= self._body(thing, positional, keywords)
            elif thing.kind == "wrapper":
                found |= self._wrapped(thing, positional, keywords)
            elif thing.kind == "instance":
                called = self._methods(thing, "__call__")
                found |= self._bodies(called, thing, positional, keywords)
            elif thing.kind == "library":
                found |= self._plain(_callable(thing.parts), positional, keywords)
                found |= {self._new("library", thing.path, _callable(given))}
        return found or frozenset((self._new(),))

    def _wrapped(
        self, thing: Thing, positional: list[Things], keywords: dict[str, Things]
    ) -> Things:
        given = NOTHING.union(*positional, *keywords.values())
        if thing.donates:
            self._change_deep(given)
        if not _callable(thing.parts):  # a decorator that waits for its function
            if any(part.kind == "module" for part in thing.parts):  # of a `partial`
                return self._plain(frozenset(thing.parts), positional, keywords)
            waiting = self._library(thing.path, positional, {})
            for one in waiting:
                one.donates |= thing.donates
            return waiting
        watches = thing.path == "justafter.watch"
        if watches:
            self._change(frozenset((thing,)))
        self._observed += watches
        last = thing.path.rpartition(".")[2]
        bound = [t for t in thing.parts if not _callable((t,))]
        if last == "partial":
            positional = [frozenset(bound), *positional] if bound else positional
        found = self._traced(
            last in libraries.KEEPS_TRACES, _callable(thing.parts), positional, keywords
        )
        self._observed -= watches
        gives_functions = last in ("vjp", "make_jaxpr", "lens", "wraps")
        return found | (
            {self._new("library", "", thing.parts)} if gives_functions else set()
        )

    def _traced(
        self,
        is_kept: bool,
        functions: Things,
        positional: list[Things],
        keywords: dict[str, Things],
    ) -> Things:
        """Call functions where JAX may remember what it traced."""
        if not is_kept:
            return self._plain(functions, positional, keywords)
        with self._watched() as frame:
            found = self._plain(functions, positional, keywords)
        differs = frame.oldest < frame.since
        for thing in _coded(functions):
            looked = Follower(self.page)
            given = NOTHING.union(*positional)
            looked.look((thing, *(t for t in given if t.kind == "instance")))
            version = looked.found.needs
            stale = any(version != earlier for earlier in thing.versions)
            if frame.prints or differs or self._observed or stale:
                self.found.needs |= thing.traces
                self.look_up(libraries.TRACES, self.page)
            thing.versions.add(version)
            self.found.prints_traced |= frame.prints
            self.found.traced.add(thing)
        return found

    @contextmanager
    def _watched(self) -> Iterator[_Frame]:
        """Note what is done inside."""
        frame = _Frame(next(_SERIALS))
        self._frames.append(frame)
        printed, self.found.prints = self.found.prints, False
        yield frame
        frame.prints = self.found.prints
        self.found.prints |= printed
        self._frames.pop()

    def _body(
        self, thing: Thing, positional: list[Things], keywords: dict[str, Things]
    ) -> Things:
        """Follow a call into a function of the page."""
        code, scope = thing.code, thing.scope
        assert code is not None
        assert scope is not None
        given = NOTHING.union(*positional, *keywords.values())
        known = [*map(self._older, positional), *map(self._older, keywords.values())]
        key = (code, *known, *keywords, self._observed)
        if key in self._results:
            found, frame = self._results[key]
            self.found.prints |= frame.prints
            self._differ(frame.oldest)
            return found
        if code in self._active or len(self._active) >= _DEEPEST:
            return given
        self._results[key] = NOTHING, _Frame(0)
        self.look((thing,))
        block = block_of(code)
        inner = Scope(_bound_arguments(block, positional, keywords), scope, block.own)
        self._active.append(code)
        with self._watched() as frame:
            self.run(block.ops, inner)
        self._active.pop()
        found = self._things(block.returns, inner)
        if _yields(code):
            found = frozenset((self._new("iterator", "", found | given),))
        self._results[key] = found, frame
        return found

    def _older(self, things: Things) -> frozenset[object]:
        """What tells calls apart: what was there before, and what a new thing runs."""
        since = self._since
        found: set[object] = {t for t in things if t.serial < since}
        for thing in _callable(things):
            found |= {part.code for part in (thing, *thing.parts) if part.code}
        return frozenset(found)

    def _instance(
        self, thing: Thing, positional: list[Things], keywords: dict[str, Things]
    ) -> Things:
        given = NOTHING.union(*positional, *keywords.values())
        made = self._new("instance", parts={thing, *given})
        for name in ("__init__", "__post_init__", "setup", "__new__"):
            self._bodies(self._methods(made, name), made, positional, keywords)
        return frozenset((made,))

    def _bodies(
        self,
        methods: Iterable[Thing],
        owner: Thing,
        positional: list[Things],
        keywords: dict[str, Things],
    ) -> Things:
        found, first = NOTHING, frozenset((owner,))
        for one in methods:
            decorators = getattr(one.code, "decorator_list", [])
            is_static = any(getattr(d, "id", "") == "staticmethod" for d in decorators)
            places = positional if is_static else [first, *positional]
            is_kept = any("jit" in ast.unparse(d) for d in decorators)
            found |= self._traced(is_kept, frozenset((one,)), places, keywords)
        return found

    def _methods(self, thing: Thing, name: str) -> list[Thing]:
        """The methods of this name that an object of the page may have."""
        found, queue, seen = [], [thing], {thing}
        while queue:
            one = queue.pop()
            code = one.code
            if isinstance(code, ast.ClassDef):
                node = method(code, name)
                if node is not None:
                    inner = one.scope
                    found.append(_method_thing(one, node, inner))
                    continue
            elif one.kind not in ("instance", "wrapper") and one is not thing:
                continue
            for part in one.parts - seen:
                seen.add(part)
                queue.append(part)
        return found

    def _method(
        self,
        owner: Things,
        name: str,
        positional: list[Things],
        keywords: dict[str, Things],
    ) -> Things:
        """Call a method, of the page's class or of an object of a library."""
        given = NOTHING.union(*positional, *keywords.values())
        found, is_own = NOTHING, False
        for thing in owner:
            if thing.kind == "instance" or isinstance(thing.code, ast.ClassDef):
                methods = self._methods(thing, name)
                # A method that a library gave it may run its own `__call__`.
                methods = methods or self._methods(thing, "__call__")
                found |= self._bodies(methods, thing, positional, keywords)
                is_own |= bool(methods)
        used_up = frozenset(t for t in owner if t.kind == "iterator")
        self._change(used_up)
        if _mutates(name) and not is_own and not all(map(_is_frozen, owner)):
            stored = given if name in libraries.STORES else NOTHING
            self._change(owner, stored)
            if any(t.kind in ("library", "instance") for t in owner):
                self._change_deep(owner)
        self._file_method(name)
        functions = _callable(owner)
        if name in libraries.READS_TRACES:
            for thing in _coded(functions):
                self.found.needs |= thing.traces
        elif functions and not is_own and not isinstance_any(owner):
            found |= self._traced(
                name in libraries.KEEPS_TRACES, functions, positional, keywords
            )
        self._traced(True, _functions(given), [], {})
        holds = name in libraries.HOLDING
        parts = self._part(owner) if holds else functions | _callable(given)
        kind = "list" if holds else "library"
        if used_up:
            return frozenset((self._new("list", parts=self._part(used_up) - used_up),))
        return found | {self._new(kind, parts=parts)}

    def _file_method(self, name: str) -> None:
        if name in libraries.FILE_METHODS_WRITE:
            self._touch(libraries.FILES)
        elif name in libraries.FILE_METHODS_READ:
            self.look_up(libraries.FILES, self.page)

    # -- libraries

    def _library_value(self, path: str) -> None:
        """What is read of a library may be something that changes."""
        if path.startswith(libraries.READS_FILES):
            self.look_up(libraries.FILES, self.page)

    def _library(
        self, path: str, positional: list[Things], keywords: dict[str, Things]
    ) -> Things:
        """Call a library's function, as the tables say what it does."""
        given = NOTHING.union(*positional, *keywords.values())
        last = path.rpartition(".")[2]
        if positional and path.startswith(libraries.GIVES_FIRST):
            if "register" in path:
                self._change(positional[0])
            return positional[0]
        if libraries.wraps(path):
            return frozenset((self._new("wrapper", path, given),))
        below = path.startswith(libraries.PRINTS_BELOW)
        self.found.prints |= below or path.startswith(libraries.PRINTS)
        self.found.prints_below |= below
        state = libraries.changes_hidden(path)
        if state == libraries.SETTINGS:
            self._set(path)
        elif state is not None:
            self._touch(state)
        if path.startswith(libraries.READS_FILES):
            self.look_up(libraries.FILES, self.page)
        hides = path in ("builtins.exec", "builtins.globals", "builtins.eval")
        self.found.hides_names |= hides and len(positional) < 2
        if hides and len(positional) > 1:
            self._change(positional[1])
        if not libraries.is_known(path):
            self._change_deep(given)
        if path.startswith(libraries.CHANGES_FIRST) and positional:
            self._change(positional[0], NOTHING.union(*positional[1:]))
        functions, called = _functions(given), NOTHING
        if functions and libraries.calls_what_it_gets(path):
            rest = [p - functions for p in positional]
            called = self._traced(
                last in libraries.KEEPS_TRACES, functions, [p for p in rest if p], {}
            )
        if path.startswith(libraries.USED_UP):
            return frozenset((self._new("iterator", path, given | called),))
        if libraries.holds_given(path):
            kind = "library" if "." in path.removeprefix("builtins.") else "list"
            parts = self._part(given) | called
            return frozenset((self._new(kind, path, parts),))
        return frozenset((self._new("library", path, functions | called),))


def isinstance_any(things: Things) -> bool:
    """Whether one of these is an object of a class of the page."""
    return any(thing.kind == "instance" for thing in things)


def _is_frozen(thing: Thing) -> bool:
    return thing.kind == "library" and thing.path.startswith(libraries.FROZEN)


def _mutates(name: str) -> bool:
    return name in libraries.MUTATORS or name.startswith(libraries.MUTATOR_PREFIXES)


def _yields(code: Code) -> bool:
    if isinstance(code, ast.Lambda | ast.ClassDef):
        return False
    return any(isinstance(n, ast.Yield | ast.YieldFrom) for n in ast.walk(code))


def _method_thing(owner: Thing, node: ast.FunctionDef, scope: Scope | None) -> Thing:
    """The same thing for the same method each time, so that its traces are kept."""
    methods = owner.__dict__.setdefault("methods", {})
    if node not in methods:
        methods[node] = Thing(code=node, scope=scope, history=owner.history)
    found: Thing = methods[node]
    return found


def _callable(things: Iterable[Thing]) -> Things:
    """What runs something of the page when it is called, among these and inside."""
    seen, queue, found = set(things), list(things), set[Thing]()
    while queue:
        thing = queue.pop()
        if thing.code is not None or thing.kind == "instance":
            found.add(thing)
        elif thing.kind == "wrapper":
            if _callable(thing.parts - seen):
                found.add(thing)
        else:
            parts = thing.parts - seen
            seen |= parts
            queue += parts
    return frozenset(found)


def _functions(things: Things) -> Things:
    """The functions of the page among these, wrapped or not."""
    plain = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    kinds = ("wrapper",)
    return frozenset(t for t in things if isinstance(t.code, plain) or t.kind in kinds)


def reach(things: Iterable[Thing]) -> set[Thing]:
    """These, and all that they hold."""
    found, queue = set(things), list(things)
    while queue:
        parts = queue.pop().parts - found
        found |= parts
        queue += parts
    return found


def _coded(things: Iterable[Thing]) -> Iterator[Thing]:
    """The functions inside of what was made of them."""
    seen, queue = set(things), list(things)
    while queue:
        thing = queue.pop()
        if thing.code is not None or thing.kind == "instance":
            yield thing
        if thing.kind in ("wrapper", "library"):
            queue += thing.parts - seen
            seen |= thing.parts


def _bound_arguments(
    block: Block, positional: list[Things], keywords: dict[str, Things]
) -> dict[str, Things]:
    names = dict.fromkeys((*block.parameters, *block.extra), NOTHING)
    for name, value in zip(block.parameters, positional, strict=False):
        names[name] = value
    left = NOTHING.union(*positional[len(block.parameters) :])
    for name, value in keywords.items():
        if name in names:
            names[name] |= value
        else:
            left |= value
    for name in block.extra if left else ():
        names[name] |= left | left.union(*(t.parts for t in left))
    return names


def remember(found: Followed, page: Scope, index: int) -> None:
    """Have all that a statement made, changed, traced and bound remember it."""
    bit = 1 << index
    for thing in (*found.made, *found.changed):
        thing.history |= bit
    for thing in found.traced:
        thing.traces |= bit
    for name, certain in found.bound.items():
        old = 0 if certain else page.histories.get(name, 0)
        page.histories[name] = old | bit
