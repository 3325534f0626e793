"""What names of a page may hold, and which statements made it so."""

import ast
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..names import Code

#: Statements, as the bits of a number.
Mask = int


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
        serial: its place in the order in which things were made.
    """

    kind: str = ""
    path: str = ""
    parts: set["Thing"] = field(default_factory=set)
    code: Code | None = None
    scope: "Scope | None" = None
    history: Mask = 0
    serial: int = field(default_factory=itertools.count(1).__next__)


Things = frozenset[Thing]
NOTHING: Things = frozenset()


@dataclass
class Scope:
    """Names and what they hold.

    Attributes:
        outer: the scope around it; None for the page's own.
        own: the names that are looked up here even before they are bound.
        histories: the statements that bound each name; the page's scope alone has them.
    """

    names: dict[str, Things] = field(default_factory=dict)
    outer: "Scope | None" = None
    own: frozenset[str] = frozenset()
    histories: dict[str, Mask] = field(default_factory=dict)

    @property
    def is_page(self) -> bool:
        return self.outer is None

    def home(self, name: str) -> "Scope | None":
        """The scope that a name is looked up in; None if nothing defines it."""
        scope: Scope | None = self
        while scope is not None and name not in scope.names:
            if name in scope.own and not scope.is_page:
                return scope
            scope = scope.outer
        return scope


@dataclass(frozen=True)
class Arguments:
    """What a call is given."""

    positional: tuple[Things, ...] = ()
    keywords: dict[str, Things] = field(default_factory=dict)

    @property
    def every(self) -> Things:
        return NOTHING.union(*self.positional, *self.keywords.values())


@dataclass
class Effects:
    """What a statement was found to need, and what it does besides."""

    needs: Mask = 0
    missing: set[str] = field(default_factory=set)
    prints: bool = False
    calls: bool = False
    made: list[Thing] = field(default_factory=list)
    changed: set[Thing] = field(default_factory=set)
    bound: dict[str, bool] = field(default_factory=dict)

    def remember(self, page: Scope, index: int) -> None:
        """Have all that a statement made, changed and bound remember it."""
        bit = 1 << index
        for thing in (*self.made, *self.changed):
            thing.history |= bit
        for name, certain in self.bound.items():
            old = 0 if certain else page.histories.get(name, 0)
            page.histories[name] = old | bit


def parts_of(things: Things) -> Things:
    """These, and what they hold."""
    # An object does not hold its class in the way that it holds its values.
    parts = (part for thing in things for part in thing.parts)
    return things.union(p for p in parts if not isinstance(p.code, ast.ClassDef))


def reach(things: Iterable[Thing]) -> set[Thing]:
    """These, and all that they hold, and what that holds."""
    reached, queue = set(things), list(things)
    while queue:
        parts = queue.pop().parts - reached
        reached |= parts
        queue += parts
    return reached


def in_order(things: Iterable[Thing]) -> list[Thing]:
    """These, the oldest first: sets of objects have another order each time."""
    return sorted(things, key=lambda thing: thing.serial)


def callables(things: Iterable[Thing]) -> Things:
    """What runs code of the page when it is called, among these and inside."""
    seen, queue, runs = set(things), list(things), set[Thing]()
    while queue:
        thing = queue.pop()
        if thing.code is not None or thing.kind == "instance":
            runs.add(thing)
        else:
            queue += thing.parts - seen
            seen |= thing.parts
    return frozenset(runs)
