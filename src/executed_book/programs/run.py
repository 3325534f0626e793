"""What one statement needs and changes, noted while it is walked.

`State` is what the page holds so far, `Run` the walk of one statement over it. A run
notes needs at once: whatever is read adds the statements in its history, whatever is
changed adds them too and gets this statement in its own.

State that no name of the page holds, a random generator hidden in a library, the files,
the settings, is a thing like others, under a name in angle brackets.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar, cast

from . import known
from .objects import (
    KEYS,
    NOTHING,
    Box,
    Class,
    Instance,
    Iterator_,
    Library,
    Made,
    Mask,
    Thing,
    Value,
    reach,
)

T = TypeVar("T", bound=Thing)


@dataclass(frozen=True)
class Binding:
    """What a name of the page may be, and the statements that made it so."""

    value: Value = NOTHING
    history: Mask = 0


@dataclass
class Cache:
    """What JAX keeps of a function that it has traced.

    `filled` are the statements that may have traced it; `versions` tell, for each of
    these calls, which statements had made what the function reads.
    """

    filled: Mask = 0
    versions: list[dict[object, Mask]] = field(default_factory=list)


@dataclass
class Watch:
    """What a part of a walk does beyond the things made in it.

    Attributes:
        since: the serial number of the first thing made in it.
        reads: what it read, and the statements that had made that.
        names: the names of the page that it looked up.
        oldest: the serial number of the oldest thing that it changed.
        prints: whether it did.
    """

    since: int
    reads: dict[object, Mask] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    oldest: float = math.inf
    prints: bool = False

    @property
    def changes(self) -> bool:
        """Whether it changed something that was there before."""
        return self.oldest < self.since

    def add(self, inner: Watch) -> None:
        """What a part of it does, it does."""
        self.names |= inner.names
        if inner.changes:
            self.oldest = min(self.oldest, inner.oldest)
        self.prints |= inner.prints


@dataclass
class Walked:
    """A walk through a function's body, which need not be repeated while it holds.

    It holds as long as nothing has changed that was there when it began.

    Attributes:
        watch: what it did.
        value: what it gave.
        grown, bound: how much had changed in this statement when it began, or when it
            was last found to hold.
    """

    watch: Watch
    value: Value
    grown: int
    bound: int


class TooMuch(Exception):
    """A statement takes too long to be followed in detail."""


class State:
    """What a page holds after the statements walked so far."""

    def __init__(self, donates: bool = False) -> None:
        self.names: dict[str, Binding] = {}
        self.hidden: dict[str, Thing] = {
            name: Thing(0, 0) for name in known.HIDDEN_STATES
        }
        self.caches: dict[object, Cache] = {}
        self.libraries: dict[str, Library] = {}
        self.serials = itertools.count(1)
        self.deep: dict[Value, Mask] = {}
        #: What refers to things weakly, and may be told when they are gone.
        self.weak: list[Made] = []
        #: How often a thing came to hold something more.
        self.kept = 0
        #: The dotted path behind each imported name.
        self.paths: dict[str, str] = {}
        #: Whether the page donates or deletes arrays: only then are they followed.
        self.donates = donates
        #: Whether annotations are not evaluated.
        self.lazy_annotations = False
        #: The names that were ever bound to a figure or axes.
        self.drawing_names: set[str] = set()
        #: What counts traces from now on.
        self.observers: Value = NOTHING
        #: What this cell draws on.
        self.canvas: Thing | None = None

    def library(self, path: str) -> Value:
        """The thing that stands for a library's module, function or object."""
        found = self.libraries.get(path)
        if found is None:
            found = self.libraries[path] = Library(path)
        return frozenset((found,))


class Run:
    """The walk of one statement.

    Attributes:
        bit: the statement, as a set of statements.
        needs: the earlier statements that it depends on directly.
        prints: whether it may print; `prints_traced` whether it may do so only because
            something is traced or computed for the first time; `prints_below` whether
            another process may print for it.
        missing: the names that it reads and that nothing defines.
        hidden: what hides which names are used: (line, words).
        environment: whether it sets what a later import may read.
        touched: the hidden states that it changes.
        runs_libraries: whether it calls libraries.
    """

    #: So many calls of functions are followed in one statement.
    LIMIT = 2_000
    #: And so much else is done: a method called counts ten, an object that is looked at
    #: counts one.
    WORK = 300_000
    #: So many containers of a kind are told apart in one statement, and so many objects
    #: of a class.
    MANY = 40
    OBJECTS = 8

    def __init__(self, state: State, index: int) -> None:
        self.state = state
        self.bit: Mask = 1 << index
        self.needs: Mask = 0
        self.prints = self.prints_traced = self.prints_below = False
        self.missing: set[str] = set()
        self.hidden: list[tuple[int, str]] = []
        self.environment = False
        self.touched: set[str] = set()
        self.runs_libraries = False
        self.traces: list[Watch] = []
        self.watches: list[Watch] = []
        self.filled: list[Cache] = []
        self.redirects: list[Value] = []
        self.sites: dict[tuple[object, ...], Thing] = {}
        self.boxes: defaultdict[tuple[object, ...], int] = defaultdict(int)
        self.calls = self.worked = 0
        #: Walks that have been made, by function and arguments.
        self.walked: dict[object, Walked] = {}
        #: The serial numbers of all that changed, or came to hold more, so far; the
        #: names of the page that were bound anew.
        self.grown: list[int] = []
        self.names_bound: list[str] = []
        #: The functions and things that a walk left out, since it was inside of them.
        self.left_out: list[object] = []
        #: How many calls of a function, by its node, the walk is inside of.
        self.active = Counter[object]()
        #: What a library that was given it is calling just now.
        self.calling: set[object] = set()
        #: The journal of the branch being walked: each name's binding before it.
        self.journal: dict[str, Binding | None] | None = None

    def work(self, amount: int) -> None:
        """Counts what the walk costs.

        Raises:
            TooMuch: it has become more than the statement is worth.
        """
        self.worked += amount
        if self.worked > self.WORK:
            raise TooMuch

    # -- making things

    def make(self, kind: Callable[..., T], *arguments: object, **options: object) -> T:
        """A new thing of this statement."""
        return kind(self.bit, next(self.state.serials), *arguments, **options)

    def make_few(
        self, site: tuple[object, ...], many: int, kind: Callable[..., T], *of: object
    ) -> T:
        """A new thing; a statement that makes many of this site makes one of them."""
        self.boxes[site] += 1
        if self.boxes[site] < many:
            return self.make(kind, *of)
        if site not in self.sites:
            self.sites[site] = self.make(kind, *of)
        return cast(T, self.sites[site])

    def box(self, kind: str, items: Value = NOTHING, keys: Value = NOTHING) -> Value:
        """A container or array."""
        made = self.make_few((kind,), self.MANY, Box, kind, items)
        self.keep(made, items)
        self.keep(made, keys, KEYS)
        return frozenset((made,))

    def make_object(
        self,
        path: str,
        items: Value = NOTHING,
        shares: Value = NOTHING,
        frozen: bool = False,
    ) -> Made:
        """What a library gives."""
        given = path, items, shares, frozen
        made = self.make_few((path, frozen), self.OBJECTS, Made, *given)
        self.keep(made, items - {made})
        more = shares - made.shares - {made}
        if more:
            made.shares |= more
            self.state.deep.clear()
            self.grown.append(made.serial)
        return made

    def instance(self, of: Class) -> Instance:
        """An object of a class of the page."""
        return self.make_few((of,), self.OBJECTS, Instance, of)

    def row(self, *parts: Value) -> Value:
        """A tuple of known length."""
        items = NOTHING.union(*parts)
        site = ("tuple",)
        if self.boxes[site] > self.MANY:
            return self.box("tuple", items)
        self.boxes[site] += 1
        return frozenset((self.make(Box, "tuple", items, parts),))

    def array(self) -> Value:
        """An array of JAX: nothing, unless the page donates some."""
        return self.box("array") if self.state.donates else NOTHING

    # -- reading

    def deep(self, value: Value) -> Mask:
        """The statements that made and changed what can be reached from a value."""
        if not value:
            return 0
        found = self.state.deep.get(value)
        if found is None:
            found = 0
            reached = reach(value)
            self.work(len(reached))
            for thing in reached:
                found |= thing.history
            self.state.deep[value] = found
        return found

    def read(self, value: Value) -> None:
        self.needs |= self.deep(value)

    def look(self, name: str) -> None:
        """Reads a hidden state."""
        self.needs |= self.deep(frozenset((self.state.hidden[name],)))

    # -- changing

    def change(self, thing: Thing) -> None:
        """Notes that a thing is changed, and what it shares with others."""
        for one in _with_shares(thing):
            if isinstance(one, Library):
                self.touch(known.SETTINGS)
                self.environment |= one.path.startswith(known.BEFORE_IMPORTS)
            elif not one.frozen:
                self.spend(one)

    def spend(self, thing: Thing) -> None:
        """The same for one thing that may be frozen: a donated array is gone."""
        self.needs |= thing.history
        if thing.history & self.bit == 0:
            thing.history |= self.bit
            self.state.deep.clear()
            self.grown.append(thing.serial)
        self.note_change(thing.serial)

    def empty(self, thing: Thing) -> None:
        """Takes all out of a container: what put it there counts no longer."""
        self.needs |= thing.made
        thing.history = thing.made | self.bit
        self.state.deep.clear()
        self.grown.append(thing.serial)
        self.note_change(thing.serial)

    def note_change(self, serial: float) -> None:
        """Tells who is watching of a change to the thing with this number."""
        if self.watches:
            watch = self.watches[-1]
            watch.oldest = min(watch.oldest, serial)

    def change_all(self, value: Value) -> None:
        for thing in value:
            self.change(thing)

    def touch(self, name: str, given: Value = NOTHING) -> None:
        """Changes a hidden state, which may keep what it is given."""
        state = self.state.hidden.get(name)
        if state is None:
            state = self.state.hidden[name] = Thing(0, 0)
        self.touched.add(name)
        self.look(name)
        self.spend(state)
        if given:
            self.keep(state, given)

    def keep(self, thing: Thing, value: Value, name: str = "*") -> None:
        """Lets a thing hold a value, besides what it holds already."""
        held = thing.fields.get(name, NOTHING)
        if value and not value <= held:
            thing.fields[name] = held | value
            self.state.kept += 1
            self.state.deep.clear()
            self.grown.append(thing.serial)

    # -- printing

    def print(self) -> None:
        if self.redirects:
            self.change_all(self.redirects[-1])
        else:
            self.prints = True
            self.prints_traced |= bool(self.traces)
            if self.watches:
                self.watches[-1].prints = True

    # -- names

    def look_up(self, name: str) -> Binding | None:
        """What a name of the page is bound to."""
        if self.watches:
            self.watches[-1].names.add(name)
        return self.state.names.get(name)

    def bind_name(self, name: str, binding: Binding | None) -> None:
        """Binds a name of the page, or takes its binding back."""
        names = self.state.names
        if names.get(name) != binding:
            self.names_bound.append(name)
        if binding is None:
            names.pop(name, None)
        else:
            names[name] = binding

    def observe_with(self, observers: Value) -> None:
        """Lets these, and nothing else, count traces from now on."""
        if self.state.observers != observers:
            self.state.observers = observers
            self.grown.append(0)

    # -- walks that need not be repeated

    def walk(self, key: object, body: Callable[[], Value]) -> Value:
        """Walks through a function's body, and keeps what it did."""
        grown, bound, left_out = (
            len(self.grown),
            len(self.names_bound),
            len(self.left_out),
        )
        with self.watched() as watch:
            if self.traces:
                self.traces.append(watch)
            try:
                value = body()
            finally:
                if self.traces:
                    self.traces.pop()
                    self.traces[-1].reads |= watch.reads
        if not any(map(self._is_inside, self.left_out[left_out:])):
            self.walked[key] = Walked(watch, value, grown, bound)
        return value

    def _is_inside(self, left_out: object) -> bool:
        """Whether the walk is still inside of what it left out there."""
        return self.active[left_out] > 0 or left_out in self.calling

    def walk_again(self, key: object) -> Walked | None:
        """A walk that was made before, if it would do the same again."""
        walked = self.walked.get(key)
        if walked is None:
            return None
        since = walked.watch.since
        for serial in itertools.islice(self.grown, walked.grown, None):
            if serial < since:
                return None
        for name in itertools.islice(self.names_bound, walked.bound, None):
            if name in walked.watch.names:
                return None
        walked.grown, walked.bound = len(self.grown), len(self.names_bound)
        if self.watches:
            self.watches[-1].add(walked.watch)
        if self.traces:
            self.traces[-1].reads |= walked.watch.reads
        if walked.watch.prints:
            self.print()
        return walked

    def print_below(self) -> None:
        """Prints where Python's `sys.stdout` has no say, or to one kept before."""
        self.prints_below = True
        self.print()

    # -- traces

    @contextmanager
    def watched(self) -> Iterator[Watch]:
        """Notes what happens inside."""
        watch = Watch(next(self.state.serials))
        self.watches.append(watch)
        try:
            yield watch
        finally:
            self.watches.pop()
            if self.watches:
                self.watches[-1].add(watch)

    @contextmanager
    def traced(self, key: object) -> Iterator[None]:
        """What happens inside may happen once for many calls under this key."""
        with self.watched() as trace:
            self.traces.append(trace)
            try:
                yield
            finally:
                self.traces.pop()
        if self.traces:
            self.traces[-1].reads |= trace.reads
        cache = self.state.caches.setdefault(key, Cache())
        observed = bool(self.state.observers)
        differs = trace.changes or trace.prints or observed
        if differs or _conflicts(cache, trace.reads):
            self.needs |= cache.filled
        self.observe()
        cache.versions.append(trace.reads)
        self.filled.append(cache)

    def observe(self) -> None:
        """Tells what counts traces of one more."""
        self.change_all(self.state.observers)

    def clear_traces(self) -> None:
        """All that was traced will be traced again."""
        for cache in self.state.caches.values():
            if self.is_certain:
                cache.filled = 0
                cache.versions.clear()
            cache.filled |= self.bit
        self.filled.clear()

    @property
    def is_certain(self) -> bool:
        """Whether what is walked now is sure to run."""
        return True

    def note_read(self, key: object, history: Mask) -> None:
        """A call that is kept depends on this."""
        if self.traces:
            self.traces[-1].reads[key] = history

    def end(self) -> None:
        """Fills the caches, once all of the statement has been walked."""
        for cache in self.filled:
            cache.filled |= self.bit


def _with_shares(thing: Thing) -> list[Thing]:
    if not isinstance(thing, Made) or not thing.shares:
        return [thing]
    ordered: list[Thing] = [thing]
    found, queue = {thing, *ordered}, [*ordered]
    while queue:
        one = queue.pop()
        for shared in getattr(one, "shares", NOTHING):
            if shared not in found:
                found.add(shared)
                ordered.append(shared)
                queue.append(shared)
    return ordered


def _conflicts(cache: Cache, reads: dict[object, Mask]) -> bool:
    return any(
        version[key] != reads[key]
        for version in cache.versions
        for key in version.keys() & reads.keys()
    )


def is_used_up(thing: Thing) -> bool:
    """Whether a thing changes by being used at all: a generator, an open file."""
    if isinstance(thing, Iterator_):
        return True
    path = thing.path if isinstance(thing, Made) else ""
    return bool(path) and path.startswith(known.USED_UP)
