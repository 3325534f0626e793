"""What names of a page may hold, and which statements made it so."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from . import libraries
from .names import Code, Function

#: Statements, as the bits of a number.
Mask = int

SERIALS = itertools.count(1)


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
        donates: whether calling it uses up what it is given.
        methods: those of a class, so that each is the same thing every time.
        serial: its place in the order in which things were made.
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
    methods: dict[Function, Thing] = field(default_factory=dict)
    serial: int = field(default_factory=lambda: next(SERIALS))


Things = frozenset[Thing]
NOTHING: Things = frozenset()


@dataclass
class Scope:
    """Names and what they hold.

    Attributes:
        outer: the scope around it; None for the page's own.
        own: the names that are looked up here even before they are bound.
        histories: the statements that bound each name; the page's scope alone has them.
        cell: changes when a function inside of another binds one of the outer's names.
        is_comprehension: whether `:=` in it binds a name of the scope around it.
    """

    names: dict[str, Things] = field(default_factory=dict)
    outer: Scope | None = None
    own: frozenset[str] = frozenset()
    histories: dict[str, Mask] = field(default_factory=dict)
    cell: Thing = field(default_factory=Thing)
    is_comprehension: bool = False

    @property
    def is_page(self) -> bool:
        return self.outer is None

    def home(self, name: str) -> Scope | None:
        """The scope that a name is looked up in; None if nothing defines it."""
        scope: Scope | None = self
        while scope is not None and name not in scope.names:
            if name in scope.own and not scope.is_page:
                return scope
            scope = scope.outer
        return scope

    def held(self, name: str) -> Things:
        """What a name holds."""
        home = self.home(name)
        return NOTHING if home is None else home.names.get(name, NOTHING)


def page_scope() -> Scope:
    """The scope of a page on which nothing has run yet."""
    names = {name: frozenset((Thing(),)) for name in libraries.HIDDEN}
    return Scope(names, histories=dict.fromkeys(names, 0))


@dataclass(frozen=True)
class Arguments:
    """What a call is given."""

    positional: tuple[Things, ...] = ()
    keywords: dict[str, Things] = field(default_factory=dict)

    @property
    def every(self) -> Things:
        return NOTHING.union(*self.positional, *self.keywords.values())

    def after(self, first: Things) -> Arguments:
        """The same with another argument before them."""
        return Arguments((first, *self.positional), self.keywords)


@dataclass
class Effects:
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

    def remember(self, page: Scope, index: int) -> None:
        """Have all that a statement made, changed, traced and bound remember it."""
        bit = 1 << index
        for thing in (*self.made, *self.changed):
            thing.history |= bit
        for thing in self.traced:
            thing.traces |= bit
        for name, certain in self.bound.items():
            old = 0 if certain else page.histories.get(name, 0)
            page.histories[name] = old | bit


def parts_of(things: Things) -> Things:
    """These, and what they hold."""
    parts = set(things)
    for thing in things:
        # An object does not hold its class in the way that it holds its values.
        parts |= {p for p in thing.parts if not isinstance(p.code, ast.ClassDef)}
    return frozenset(parts)


def reach(things: Iterable[Thing]) -> set[Thing]:
    """These, and all that they hold, and what that holds."""
    reached, queue = set(things), list(things)
    while queue:
        parts = queue.pop().parts - reached
        reached |= parts
        queue += parts
    return reached


def callables(things: Iterable[Thing]) -> Things:
    """What runs something of the page when it is called, among these and inside."""
    seen, queue, runs = set(things), list(things), set[Thing]()
    while queue:
        thing = queue.pop()
        if thing.code is not None or thing.kind == "instance":
            runs.add(thing)
        elif thing.kind == "wrapper":
            if callables(thing.parts - seen):
                runs.add(thing)
        else:
            parts = thing.parts - seen
            seen |= parts
            queue += parts
    return frozenset(runs)


def functions(things: Things) -> Things:
    """The functions of the page among these, wrapped or not."""
    return frozenset(
        t for t in things if isinstance(t.code, Function) or t.kind == "wrapper"
    )


def wrapped(things: Iterable[Thing]) -> Iterator[Thing]:
    """The functions inside of what was made of them."""
    seen, queue = set(things), list(things)
    while queue:
        thing = queue.pop()
        if thing.code is not None or thing.kind == "instance":
            yield thing
        if thing.kind in ("wrapper", "library"):
            queue += thing.parts - seen
            seen |= thing.parts
