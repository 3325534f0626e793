"""What the names of a page can hold, as far as programs depend on it.

A `Thing` is an object that can be told apart by where it is made, and that knows the
statements that made and changed it. What no statement can change, a number or a string,
is no thing, so the value of most expressions is `NOTHING`: the empty set of things.

An expression may give one thing or another, and a container holds them all alike, so a
value is a set. The sets only grow while a page is walked: a thing too many makes a
program longer, one too few makes it wrong.

Statements are numbered, and a set of them is an `int` with their bits.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from .scopes import Scope

Value: TypeAlias = "frozenset[Thing]"
Mask: TypeAlias = int

NOTHING: Value = frozenset()

#: The field of what a thing holds under no name, its elements say.
ITEMS = "*"
#: The field of the keys of a dictionary.
KEYS = "<keys>"


class Thing:
    """An object of the page.

    Attributes:
        history: the statements that made it and changed it; `made` the first of them.
        serial: its place in the order in which things were made.
        fields: what it holds, by attribute; its elements under `ITEMS`.
    """

    __slots__ = ("fields", "history", "made", "serial")

    #: Whether nothing can change it, apart from being donated.
    frozen = False

    def __init__(self, history: Mask, serial: int, items: Value = NOTHING) -> None:
        self.history = self.made = history
        self.serial = serial
        self.fields: dict[str, Value] = {ITEMS: items} if items else {}

    @property
    def items(self) -> Value:
        return self.fields.get(ITEMS, NOTHING)

    def links(self) -> Iterable[Value]:
        """What can be reached from it in one step."""
        return self.fields.values()


class Box(Thing):
    """A container or an array of a type whose methods are known.

    `kind` is the type's name; `parts` the elements one by one, for a tuple whose length
    is known.
    """

    __slots__ = ("kind", "parts")

    def __init__(
        self,
        history: Mask,
        serial: int,
        kind: str,
        items: Value = NOTHING,
        parts: tuple[Value, ...] | None = None,
    ) -> None:
        super().__init__(history, serial, items)
        self.kind = kind
        self.parts = parts

    @property
    def keys(self) -> Value:
        """The keys of a dictionary; of what is like one, all that it holds."""
        return self.fields.get(KEYS, NOTHING) if self.kind == "dict" else self.items

    @property
    def frozen(self) -> bool:  # type: ignore[override]
        return self.kind in ("tuple", "array")


class Library(Thing):
    """A module, or something in one: known by its dotted path alone."""

    __slots__ = ("path",)
    frozen = True

    def __init__(self, path: str) -> None:
        super().__init__(0, 0)
        self.path = path


class Made(Thing):
    """What a call of a library gave, of a type that is not known in detail.

    Args:
        path: what was called; it tells which methods are harmless.
        shares: what it may be, or be a part of: to change one changes the other.
    """

    __slots__ = ("_frozen", "path", "shares")

    def __init__(
        self,
        history: Mask,
        serial: int,
        path: str,
        items: Value = NOTHING,
        shares: Value = NOTHING,
        frozen: bool = False,
    ) -> None:
        super().__init__(history, serial, items)
        self.path = path
        self.shares = shares
        self._frozen = frozen

    @property
    def frozen(self) -> bool:  # type: ignore[override]
        return self._frozen

    def links(self) -> Iterable[Value]:
        return [*self.fields.values(), self.shares]


class Iterator_(Thing):
    """Something that is used up: `zip`, `map`, `iter(x)`, `itertools.count`.

    Going through it calls its functions and uses its sources up; `pairs` says that it
    gives a tuple of one element of each.
    """

    __slots__ = ("functions", "pairs", "sources")

    def __init__(
        self,
        history: Mask,
        serial: int,
        sources: tuple[Value, ...] = (),
        functions: Value = NOTHING,
        pairs: bool = False,
    ) -> None:
        super().__init__(history, serial)
        self.sources = sources
        self.functions = functions
        self.pairs = pairs

    def links(self) -> Iterable[Value]:
        return [*self.fields.values(), *self.sources, self.functions]


class Frame(Thing):
    """The variables of one call of a function, of a class body or a comprehension.

    Args:
        kind: "function", "class" or "comprehension".
        own: the names that live here.
        globals: the names declared to be the page's.
        parent: the frame around it; None for the page.
        function: the function whose call it is.
    """

    __slots__ = ("branches", "function", "globals", "kind", "own", "parent")

    def __init__(
        self,
        history: Mask,
        serial: int,
        kind: str,
        own: frozenset[str] = frozenset(),
        globals: frozenset[str] = frozenset(),
        parent: Frame | None = None,
        function: Function | None = None,
    ) -> None:
        super().__init__(history, serial)
        self.kind = kind
        self.own = own
        self.globals = globals
        self.parent = parent
        self.function = function
        #: How many branches and loops of the body the walk is inside of.
        self.branches = 0

    def links(self) -> Iterable[Value]:
        outer = [frozenset((self.parent,))] if self.parent else []
        return [*self.fields.values(), *outer]


class Function(Thing):
    """A function of the page.

    Attributes:
        frame: the variables around it; None for those of the page.
        body: walks what a call of it does, given the walk and the call's variables.
        scopes: those of its cell.
        defaults: by parameter.
        owner: the class in whose body it stands.
    """

    __slots__ = (
        "body",
        "defaults",
        "frame",
        "globals",
        "locals",
        "node",
        "owner",
        "scopes",
    )

    def __init__(
        self,
        history: Mask,
        serial: int,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
        locals: frozenset[str],
        globals: frozenset[str],
        frame: Frame | None,
        body: Callable[[Any, Frame], Value],
        scopes: Mapping[ast.AST, Scope],
    ) -> None:
        super().__init__(history, serial)
        self.node = node
        self.locals = locals
        self.globals = globals
        self.frame = frame
        self.body = body
        self.scopes = scopes
        self.defaults: dict[str, Value] = {}
        self.owner: Class | None = None

    @property
    def name(self) -> str:
        return getattr(self.node, "name", "<lambda>")

    def links(self) -> Iterable[Value]:
        outer = [frozenset((self.frame,))] if self.frame else []
        return [*self.fields.values(), *self.defaults.values(), *outer]


class Later(Thing):
    """A generator or a coroutine: its body runs when it is gone through or awaited.

    `run` walks it, given the walk; `node` is where it is written.
    """

    __slots__ = ("node", "run", "sources")

    def __init__(
        self,
        history: Mask,
        serial: int,
        node: ast.AST,
        run: Callable[[Any], Value],
        sources: Value,
    ) -> None:
        super().__init__(history, serial)
        self.node = node
        self.run = run
        self.sources = sources

    def links(self) -> Iterable[Value]:
        return [*self.fields.values(), self.sources]


class Class(Thing):
    """A class of the page; its fields are its namespace.

    `bases` are classes of the page, `libraries` the paths of the others, those of its
    bases included.
    """

    __slots__ = ("bases", "libraries", "metaclasses", "name")

    def __init__(
        self,
        history: Mask,
        serial: int,
        name: str,
        bases: tuple[Class, ...],
        libraries: Iterable[str] = (),
        metaclasses: tuple[Class, ...] = (),
    ) -> None:
        super().__init__(history, serial)
        self.name = name
        self.bases = bases
        self.libraries: frozenset[str] = frozenset(libraries).union(
            *(b.libraries for b in bases)
        )
        self.metaclasses = metaclasses

    def links(self) -> Iterable[Value]:
        return [*self.fields.values(), frozenset(self.bases + self.metaclasses)]

    def find(self, name: str) -> Value:
        """What the class or its bases define under a name."""
        own = self.fields.get(name)
        if own is not None:
            return own
        return frozenset[Thing]().union(*(base.find(name) for base in self.bases))

    def hierarchy(self) -> Iterator[Class]:
        """The class, its bases, theirs, and so on."""
        yield self
        for base in self.bases:
            yield from base.hierarchy()


class Instance(Thing):
    """An object of a class of the page."""

    __slots__ = ("of",)

    def __init__(self, history: Mask, serial: int, of: Class) -> None:
        super().__init__(history, serial)
        self.of = of

    def links(self) -> Iterable[Value]:
        return [*self.fields.values(), frozenset((self.of,))]


class Method(Thing):
    """Something bound to an object: a function, or a built-in method by its name."""

    __slots__ = ("function", "of")

    def __init__(
        self, history: Mask, serial: int, function: Thing | str, of: Thing
    ) -> None:
        super().__init__(history, serial)
        self.function = function
        self.of = of

    def links(self) -> Iterable[Value]:
        function = self.function
        held = () if isinstance(function, str) else (frozenset((function,)),)
        return [*self.fields.values(), frozenset((self.of,)), *held]


class Super(Thing):
    """`super()` in a method of a class of the page, or a class asked for its bases'."""

    __slots__ = ("of", "owner")

    def __init__(self, history: Mask, serial: int, owner: Class, of: Value) -> None:
        super().__init__(history, serial)
        self.owner = owner
        self.of = of

    def links(self) -> Iterable[Value]:
        return [self.of]


@dataclass
class Arguments:
    """The arguments of a call.

    Attributes:
        positional, keywords: their values.
        rest: values that may be any argument, from `*args` or unknown callers.
        constants: those that are written as constants, by place or name.
    """

    positional: list[Value] = field(default_factory=list)
    keywords: dict[str, Value] = field(default_factory=dict)
    rest: Value = NOTHING
    constants: dict[int | str, object] = field(default_factory=dict)

    @property
    def all(self) -> Value:
        return self.rest.union(*self.positional, *self.keywords.values())

    @property
    def key(self) -> object:
        """What tells these arguments from others."""
        constants = [(k, type(c), repr(c)) for k, c in self.constants.items()]
        named = frozenset(self.keywords.items())
        return tuple(self.positional), named, self.rest, frozenset(constants)

    def at(self, place: int) -> Value:
        """The argument at a place, or what may be there."""
        if place < len(self.positional):
            return self.positional[place]
        return self.rest

    def without(self, count: int) -> Arguments:
        """The arguments after the first ones."""
        return Arguments(
            self.positional[count:], self.keywords, self.rest, self._moved(-count)
        )

    def _moved(self, by: int) -> dict[int | str, object]:
        return {
            place if isinstance(place, str) else place + by: constant
            for place, constant in self.constants.items()
            if isinstance(place, str) or place + by >= 0
        }

    def after(self, first: Arguments) -> Arguments:
        """The arguments with others before them."""
        return Arguments(
            [*first.positional, *self.positional],
            {**first.keywords, **self.keywords},
            first.rest | self.rest,
            {**first.constants, **self._moved(len(first.positional))},
        )


class Wrapped(Thing):
    """What a library made of a function, to be called like it: `jax.jit(f)`, `partial`.

    Args:
        path: what made it.
        functions: what a call of it may call.
        given: arguments that stand before those of a call.
    """

    __slots__ = ("functions", "given", "path")

    def __init__(
        self,
        history: Mask,
        serial: int,
        path: str,
        functions: Value,
        given: Arguments | None = None,
    ) -> None:
        super().__init__(history, serial)
        self.path = path
        self.functions = functions
        self.given = given or Arguments()

    def links(self) -> Iterable[Value]:
        return [*self.fields.values(), self.functions, self.given.all]


def reach(value: Value) -> set[Thing]:
    """All things that can be reached from a value, its own included."""
    found = set(value)
    queue = list(value)
    while queue:
        for linked in queue.pop().links():
            for thing in linked:
                if thing not in found:
                    found.add(thing)
                    queue.append(thing)
    return found


def contents(value: Value) -> set[Thing]:
    """What can be reached through containers and library objects alone."""
    found = set(value)
    queue = list(value)
    while queue:
        thing = queue.pop()
        if isinstance(thing, Box | Made | Iterator_):
            for linked in thing.links():
                for inner in linked:
                    if inner not in found:
                        found.add(inner)
                        queue.append(inner)
    return found
