"""Listens to JAX, and keeps what it hears by function."""

from __future__ import annotations

import inspect
import itertools
import operator
import sys
import threading
import types
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import _functions, _table
from .._internals import _events
from ._record import Compilation, Record, Trace
from ._show import named, names_of, parts
from ._signature import signature_of, weak_reference
from ._why import FIRST, UNKNOWN, Reason, why

Fun = Callable[..., Any]

# How many values of a call's static arguments are looked through for a function.
_LOOKED_THROUGH = 500


class RetraceError(_events.Veto, RuntimeError):
    """A function would be traced more often than `watch(max_traces=...)` allows.

    Raised before its body runs; `reasons` says why JAX had to trace it again.
    """

    def __init__(self, message: str, reasons: tuple[Reason, ...]):
        super().__init__(message)
        self.reasons = reasons


@dataclass(frozen=True)
class Identity:
    """What tells one function from others: its names and where it is defined."""

    name: str
    qualname: str
    module: str
    source: Any
    path: str = ""
    # The object that a method is bound to, or a function that closes over values; and
    # the code of functions closed over.
    owner: Any = None
    holds: tuple[Any, ...] = ()
    # Whether the reader's code calls it, and no library's.
    is_readers: bool = False

    @property
    def key(self) -> tuple[Any, ...]:
        return self.module, self.qualname, self.source, self.holds

    @property
    def place(self) -> tuple[str, int]:
        return self.path, getattr(self.source, "co_firstlineno", 0)

    def record(self, library: str = "") -> Record:
        """A record of this function, with nothing in it."""
        names = self.name, self.qualname, self.module
        return Record(*names, library=library, _place=self.place)

    @property
    def is_jax(self) -> bool:
        return self.module.partition(".")[0] in ("jax", "jaxlib")


def identity(fun: Any) -> Identity:
    """Find a function's names and where it is defined."""
    layers = list(_functions.layers(fun))
    plain = layers[-1]
    code = getattr(plain, "__code__", None)
    if code is None:  # a builtin, or an object without Python code
        is_named = inspect.isbuiltin(plain) or isinstance(plain, type)
        kind = plain if is_named else type(plain)
        module = str(kind.__module__ or "")
        return Identity(kind.__name__, kind.__qualname__, module, kind)
    objects = list(filter(_is_object, layers))
    label = next((one for one in layers if hasattr(one, "__name__")), plain)
    if label is plain and objects:
        label = type(objects[0])
    # The object whose method a function is, so that no other object's is meant.
    owners = [one.__self__ for one in layers if isinstance(one, types.MethodType)]
    owners += [one for one in objects if not _functions.is_jitted(one)]
    # A wrapper without a name of its own goes by the functions that it calls.
    cells = getattr(plain, "__closure__", None) or ()
    held = (getattr(cell, "cell_contents", None) for cell in cells)
    return Identity(
        label.__name__,
        getattr(label, "__qualname__", label.__name__),
        str(getattr(plain, "__module__", "") or ""),
        code,
        code.co_filename,
        next(iter(owners), plain if cells else None),
        tuple(
            one.__code__
            for one in held
            if isinstance(one, types.FunctionType) and one is not plain
        ),
    )


def _is_object(fun: Any) -> bool:
    """Whether a callable is an object of a class with `__call__`, and no wrapper."""
    known = types.FunctionType | types.MethodType | types.BuiltinFunctionType
    is_wrapper = hasattr(fun, "func") or getattr(fun, "__wrapped__", None) is not None
    return not isinstance(fun, known) and not is_wrapper


def _is_alike(old: Any, new: Any) -> bool:
    """Whether a function of one code counts as one known before, by their owners.

    It does if that one is gone, or closes over the same objects: then it is made anew.
    """
    pairs = [getattr(one, "__closure__", None) or () for one in (old, new)]
    inside = [[getattr(cell, "cell_contents", cell) for cell in one] for one in pairs]
    is_anew = bool(inside[0]) and all(map(operator.is_, *inside))
    return old is new or old is None or is_anew


def _same(a: Any, b: Any) -> bool:
    methods = isinstance(a, types.MethodType) and isinstance(b, types.MethodType)
    return a is b or (methods and bool(a == b))


def _at_home(fun: Any) -> list[Any]:
    """The layers of what JAX has under the name of one of its functions."""
    found = identity(fun)
    known: Any = sys.modules.get(found.module) if found.is_jax else None
    for name in found.qualname.split("."):
        known = getattr(known, name, None)
    return list(_functions.layers(known))


def _is_readers(fun: Any) -> bool:
    """Whether a function of JAX's was jitted by the reader, and not by JAX itself."""
    known = _at_home(fun)
    if any(one is fun for one in known):
        is_own = known[0] is not fun
    else:
        is_own = _functions.inner(fun) is None  # no transformation and no object
    return not is_own and _events.is_called_by_reader()


def _is_readers_jit(fun: Any) -> bool:
    return _functions.is_jitted(fun) and all(one is not fun for one in _at_home(fun))


def _root(fun: Any) -> Any:
    """The function whose runs count for a function: what its innermost jit is of."""
    jits = [one for one in _functions.layers(fun) if _is_readers_jit(one)]
    return getattr(jits[-1], "__wrapped__", None) or fun if jits else fun


def _is_wrapper(fun: Any) -> bool:
    """Whether a function is a library's that goes by the name of what it calls."""
    found = identity(fun)
    own_name = getattr(found.source, "co_name", found.name)
    is_library = bool(found.path) and _functions.is_library(found.path)
    return is_library and not found.is_jax and own_name != found.name


def _carried(fun: Fun, args: Sequence[Any]) -> Any | None:
    """The function that a library's wrapper of the same name calls, if it shows it.

    Libraries that sort arguments into arrays and the rest give `jax.jit` a function
    of their own, and pass the user's among the static arguments.
    """
    if not _is_wrapper(fun):
        return None
    name, queue = getattr(fun, "__name__", None), list(args)
    for value in itertools.islice(queue, _LOOKED_THROUGH):
        if isinstance(value, list | tuple):
            queue.extend(value)  # looked through in their turn
        elif callable(value) and value is not fun:
            is_named = _functions.name_of(value) == name
            if is_named and _functions.code_of(value) is not None:
                return value
    return None


def _place() -> str:
    """File and line of the reader's code that we are called from, or empty."""
    found = _functions.caller()
    return f"{_functions.file_label(found[0])}:{found[1]}" if found else ""


def _guarded(explain: Callable[[], Any]) -> Any:
    """What explains a count, or None: values of the reader's may refuse to be read."""
    try:
        return explain()
    except Exception:
        return None


class Log(_table.Shown, Mapping[str, Record]):
    """Traces and compilations, function by function.

    Looks up by name (``log["step"]``, ``log["Model.step"]``,
    ``log["package.module.Model.step"]``) or by the function itself (``log[step]``).

    Attributes:
        eager: how often JAX compiled an operation called outside any jitted
            function, by name. Empty for a log of chosen functions.
    """

    def __init__(
        self, only: Sequence[Fun] | None = None, max_traces: int | None = None
    ) -> None:
        self._lock = threading.RLock()
        # Of one code, a record for each living object whose method it is.
        self._records: dict[Any, list[tuple[Callable[[], Any], Record]]] = {}
        self._only = None if only is None else [*map(_root, only)]
        self._max_traces = max_traces
        self._order: list[Record] = []
        self._clock = itertools.count()
        self._reference: Callable[[], Any] | None = None
        self.eager: Counter[str] = Counter()
        for fun in self._only or ():
            self._record(identity(fun))

    def start(self) -> Log:
        """Watch from here on. Returns the log."""
        if self._reference is None:
            self._reference = weakref.ref(self, _events.unlisten)
            _events.listen(self._reference)
        return self

    def stop(self) -> Log:
        """Watch no more; what was counted stays. Returns the log."""
        if self._reference is not None:
            _events.unlisten(self._reference)
            self._reference = None
        return self

    def __enter__(self) -> Log:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # What JAX tells, on whichever thread it happens.

    def tracing(self, call: _events.JitCall) -> None:
        """A body is about to run."""
        if (found := self._counted(call)) is None:
            return
        with self._lock:
            record = self._record(found)
            # What JAX traced of this function before the log began.
            if not any(old.fun() is call.fun for old in record._signatures):
                earlier = _guarded(
                    lambda: [*map(signature_of, _events.earlier_calls(call))]
                )
                record._signatures.extend(earlier or ())
            is_bound = self._only is not None or not record.library
            count = record.traces + record._running
            record._running += 1
            if is_bound and self._max_traces and count >= self._max_traces:
                reasons = self._explained(record, call, False)[1]
                where = _place()
                raise RetraceError(
                    f"{record.qualname} would be traced again"
                    f"{f' by {where}' if where else ''}, after "
                    f"{'once' if count == 1 else f'{count} times'}: "
                    f"{'; '.join(map(str, reasons))}",
                    reasons,
                )

    def traced(self, call: _events.JitCall, error: type[BaseException] | None) -> None:
        """A body has run, or was stopped before it."""
        if (found := self._counted(call)) is None:
            return
        with self._lock:
            record = self._record(found)
            # A log that began while it ran has not counted it.
            record._running = max(0, record._running - 1)
            if error is not None and issubclass(error, _events.Veto):
                return
            text, reasons = self._explained(record, call, error is not None)
            name = None if error is None else error.__name__
            record.history.append(Trace(text, reasons, name, _place()))

    def _counted(self, call: _events.JitCall) -> Identity | None:
        """What a run of a body counts for; None for what is not watched.

        Where a jitted function is inside, the log counts that function's runs alone.
        """
        is_around = any(map(_is_readers_jit, _functions.layers(call.fun)))
        return None if is_around else self._wanted(call.fun, call.args)

    def _explained(
        self, record: Record, call: _events.JitCall, raised: bool
    ) -> tuple[str, tuple[Reason, ...]]:
        """A call in words, and why it was traced. What fails here loses no count."""

        def explain() -> tuple[str, tuple[Reason, ...]]:
            signature = signature_of(call, raised)
            reasons = why(signature, record._signatures)
            record._signatures.append(replace(signature, reasons=reasons))
            return str(signature), reasons

        return _guarded(explain) or ("", (FIRST if not record.traces else UNKNOWN,))

    def compiled(self, name: str, run: _events.JitRun | None) -> None:
        """XLA compiled a program, or loaded it."""
        with self._lock:
            record = self._compiled_record(name, run)
            if record is not None:
                reasons = _guarded(lambda: record._why_compiled(run)) or (UNKNOWN,)
                record.compiled.append(Compilation(reasons, _place()))

    def _compiled_record(self, name: str, run: _events.JitRun | None) -> Record | None:
        if run is not None and run.fun is not None:
            found = self._wanted(run.fun, run.args)
            if found is None and self._only is None and identity(run.fun).is_jax:
                self.eager[name] += 1
            return None if found is None else self._record(found)
        # A backward pass, or ahead of time: only the name is known, and the place.
        same = [r for r in self.records if r.name == name]
        path, line = run.place if run is not None and run.place else ("", 0)
        defined = [r for r in same if r._place == (path, line)]
        traced = [r for r in same if r.history or self._only is not None]
        if defined or traced:
            return max(defined or traced, key=lambda record: record._seen)
        if self._only is not None:
            return None
        package = _functions.package_of(path)
        is_jaxs = _functions.is_library(path) and package in ("", "jax", "jaxlib")
        if run is not None and (is_jaxs or not path):
            self.eager[name] += 1
            return None
        found = Identity(name, name, "", (path, line, name), path)
        return self._record(found)

    def _wanted(self, fun: Fun, args: Sequence[Any]) -> Identity | None:
        """The identity to count a function under; None if it is not watched."""
        hidden = _carried(fun, args)
        links = list(_functions.layers(fun if hidden is None else hidden))
        if self._only is None:
            found = identity(links[0])
            # An object is made anew by the library that hides it; a function is not.
            is_known = hidden is None or isinstance(found.owner, types.FunctionType)
            owner = found.owner if is_known else None
            is_readers = _events.is_called_by_reader()
            found = replace(found, owner=owner, is_readers=is_readers)
            return None if found.is_jax and not _is_readers(fun) else found

        def is_around(root: Fun) -> bool:
            if hidden is not None:  # a gradient, say, that the library jits
                return any(_same(links[-1], one) for one in _functions.layers(root))
            # It does not show what it calls, and has its name.
            name = getattr(fun, "__qualname__", None)
            return _is_wrapper(fun) and identity(root).qualname == name

        roots = [one for one in self._only if any(_same(one, link) for link in links)]
        roots = roots or list(filter(is_around, self._only))
        return identity(roots[0]) if roots else None

    def _record(self, found: Identity) -> Record:
        with self._lock:
            entries = self._records.setdefault(found.key, [])
            for i, (owner, record) in enumerate(entries):
                if _is_alike(owner(), found.owner):
                    entries[i] = (weak_reference(found.owner), record)
                    break
            else:
                library = "" if found.is_readers else _functions.package_of(found.path)
                record = found.record(library)
                entries.append((weak_reference(found.owner), record))
                self._order.append(record)
            record._seen = next(self._clock)
            return record

    # What a reader asks.

    @property
    def records(self) -> tuple[Record, ...]:
        """One record a function, in the order in which they were first seen."""
        with self._lock:
            return tuple(self._order)

    @property
    def traces(self) -> int:
        """Traces of all watched functions together."""
        return sum(record.traces for record in self.records)

    @property
    def compilations(self) -> int:
        """Compilations of all watched functions together."""
        return sum(record.compilations for record in self.records)

    # A log is itself, not its contents: it is compared and hashed by identity.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __getitem__(self, key: str | Fun) -> Record:
        if callable(key):
            return self._of_function(key)
        known = named(self.records)
        found = [known[key]] if key in known else []
        found = found or [record for record in self.records if key in names_of(record)]
        if len(found) == 1:
            return found[0]
        if found:
            places = Counter(record._described for record in found)
            listed = sorted(
                place if count == 1 else f"{place}, made {count} times"
                for place, count in places.items()
            )
            raise KeyError(
                f"{key!r} names {len(found)} functions: {'; '.join(listed)}. "
                "Ask with the function itself, log[fn]"
            )
        seen = ", ".join(record.name for record in self.records) or "none"
        raise KeyError(
            f"no function named {key!r} was traced or compiled while this log watched "
            f"(seen: {seen}). A function that only hit the cache is not seen: ask with "
            "the function itself, log[fn]"
        )

    def _of_function(self, fun: Fun) -> Record:
        mine = identity(_root(fun))
        with self._lock:
            entries = self._records.get(mine.key, [])
        same = [r for owner, r in entries if owner() is mine.owner]
        is_any = mine.owner is None
        same = same or [r for o, r in entries if is_any or _is_alike(o(), mine.owner)]
        known = [r for r in same if r.traces or r.compilations]
        if len(known) > 1:
            raise KeyError(
                f"{mine.qualname} was called on {len(known)} objects: ask with the "
                "function that was jitted, such as log[object.method]"
            )
        if not known and self._only is None and mine.is_jax:
            raise KeyError(
                f"{mine.qualname} is one of JAX's own functions, which this log "
                "leaves out: count it with watch(only=fn)"
            )
        # A library's wrapper of a callable object has the object's name.
        alike = [r for r in self.records if r.library and r.qualname == mine.qualname]
        found = known or (alike if len(alike) == 1 and not entries else [])
        return found[0] if found else mine.record()

    def __contains__(self, key: object) -> bool:
        return any(key in names_of(record) for record in self.records)

    def __iter__(self) -> Iterator[str]:
        return iter(named(self.records))

    def __len__(self) -> int:
        return len(self.records)

    _to_left = frozenset({0, 3})

    def _parts(self) -> tuple[str, list[_table.Row], list[str]]:
        return parts(self.records, self.eager)

    def _fixed(self, head: _table.Row) -> Sequence[int]:
        return range(len(head))
