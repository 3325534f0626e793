"""watch: how often, and why, a function was traced and compiled."""

from __future__ import annotations

import functools
import threading
import types
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax

from . import _internals
from ._watch_show import as_html, as_text, names_of, shortest
from ._watch_why import Placement, Reason, Signature, placements, signature_of, why

_LIBRARY = ("jax", "jaxlib")


@dataclass(frozen=True, slots=True)
class Trace:
    """One run of a function's Python body under tracing.

    Attributes:
        number: 1 for the function's first trace in this log.
        call: the call as JAX saw it, such as ``x: float32[3], n=2``.
        why: the reasons; the first trace has the reason "first call".
        seconds: the time it took, the traces inside it included.
        raised: the name of the exception it ended in, or None.
    """

    number: int
    call: str
    why: tuple[Reason, ...]
    seconds: float = field(compare=False)
    raised: str | None = None


@dataclass(frozen=True, slots=True)
class Compilation:
    """One compilation by XLA, or one load from JAX's persistent cache.

    Attributes:
        number: 1 for the function's first compilation in this log.
        why: the reasons of the trace it belongs to, or its own.
        seconds: the time it took.
    """

    number: int
    why: tuple[Reason, ...]
    seconds: float = field(compare=False)


@dataclass(slots=True)
class Record:
    """What a log knows of one function.

    Attributes:
        name: the function's ``__name__``.
        qualname: its ``__qualname__``.
        module: its ``__module__``.
        history: the traces, in order.
        compiled: the compilations, in order.
    """

    name: str
    qualname: str
    module: str
    history: list[Trace] = field(default_factory=list)
    compiled: list[Compilation] = field(default_factory=list)
    _signatures: list[Signature] = field(default_factory=list, repr=False)
    _placements: list[tuple[Placement, ...]] = field(default_factory=list, repr=False)
    _uncompiled: list[tuple[Reason, ...]] = field(default_factory=list, repr=False)

    @property
    def traces(self) -> int:
        """How often the body ran under tracing."""
        return len(self.history)

    @property
    def compilations(self) -> int:
        """How often XLA compiled a program of this name."""
        return len(self.compiled)

    @property
    def why(self) -> tuple[str, ...]:
        """The kinds of reason, one tuple entry a retrace, in order."""
        return tuple(
            ", ".join(reason.kind for reason in trace.why) for trace in self.history[1:]
        )


def _chain(fun: Any) -> Iterator[Any]:
    """`fun` and what it wraps: partials, methods, transformations."""
    while fun is not None:
        yield fun
        if isinstance(fun, functools.partial):
            fun = fun.func
        else:
            fun = getattr(fun, "__wrapped__", None)


def _root(fun: Callable) -> Any:
    """The Python function that a jitted function hands to JAX."""
    while isinstance(fun, jax.stages.Wrapped) and hasattr(fun, "__wrapped__"):
        fun = fun.__wrapped__
    return fun


def _same(a: Any, b: Any) -> bool:
    methods = isinstance(a, types.MethodType) and isinstance(b, types.MethodType)
    return a is b or (methods and a == b)


def _identity(fun: Callable) -> tuple[str, str, str, Any]:
    """Name, qualified name, module, and what makes two functions the same source."""
    *_, innermost = _chain(fun)
    plain = getattr(innermost, "__func__", innermost)
    if not hasattr(plain, "__code__"):  # an object with __call__
        kind = type(plain)
        return kind.__name__, kind.__qualname__, kind.__module__, kind
    outer = next((f for f in _chain(fun) if hasattr(f, "__name__")), plain)
    code = getattr(getattr(outer, "__func__", outer), "__code__", None)
    return outer.__name__, outer.__qualname__, plain.__module__, (plain.__code__, code)


class Log(Mapping):
    """Traces and compilations, function by function.

    Looks up by name (``log["step"]``, ``log["Model.step"]``,
    ``log["package.module.Model.step"]``) or by the function itself (``log[step]``).
    Shows a table in a notebook and plain text in a terminal.

    Attributes:
        eager: how often JAX compiled an operation called outside any jitted
            function, by name. Empty for a log of chosen functions.
    """

    def __init__(self, only: Sequence[Callable] | None = None, times: bool = False):
        self._lock = threading.RLock()
        self._records: dict[Any, Record] = {}
        self._only = None if only is None else [_root(fun) for fun in only]
        self._times = times
        self._reference: Callable[[], Any] | None = None
        self.eager: Counter[str] = Counter()
        for fun in self._only or ():
            self._record(fun)

    def start(self) -> Log:
        """Watch from here on. Returns the log."""
        if self._reference is None:
            self._reference = weakref.ref(self, _internals.unlisten)
            _internals.listen(self._reference)
        return self

    def stop(self) -> Log:
        """Watch no more; what was counted stays. Returns the log."""
        if self._reference is not None:
            _internals.unlisten(self._reference)
            self._reference = None
        return self

    def __enter__(self) -> Log:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # What JAX tells, on whichever thread it happens.

    def tracing(self, fun: Callable) -> None:
        if self._wanted(fun):
            self._record(fun)

    def traced(
        self, call: _internals.JitCall, seconds: float, error: str | None
    ) -> None:
        if not self._wanted(call.fun):
            return
        signature = signature_of(call, raised=error is not None)
        with self._lock:
            record = self._record(call.fun)
            reasons = why(signature, record._signatures)
            number = record.traces + 1
            record._signatures.append(signature)
            record.history.append(
                Trace(number, str(signature), reasons, seconds, error)
            )
            if error is None:
                record._uncompiled.append(reasons)

    def compiled(
        self, name: str, run: _internals.JitRun | None, seconds: float
    ) -> None:
        with self._lock:
            record = self._compiled_record(name, run)
            if record is None:
                if self._only is None:
                    self.eager[name] += 1
                return
            reasons = _why_compiled(record, run)
            number = record.compilations + 1
            record.compiled.append(Compilation(number, reasons, seconds))

    def _compiled_record(
        self, name: str, run: _internals.JitRun | None
    ) -> Record | None:
        if run is not None:
            return self._record(run.fun) if self._wanted(run.fun) else None
        # Ahead of time, or the backward pass: only the name is known. The latest
        # function of that name to be traced is the one.
        named = [r for r in self._records.values() if r.name == name and r.history]
        return named[-1] if named else None

    def _wanted(self, fun: Callable) -> bool:
        if self._only is not None:
            links = list(_chain(fun))
            return any(_same(root, link) for root in self._only for link in links)
        return _identity(fun)[2].partition(".")[0] not in _LIBRARY

    def _record(self, fun: Callable) -> Record:
        with self._lock:
            name, qualname, module, source = _identity(self._chosen(fun))
            key = (module, qualname, source)
            if key not in self._records:
                self._records[key] = Record(name, qualname, module)
            return self._records[key]

    def _chosen(self, fun: Callable) -> Callable:
        for root in self._only or ():
            if any(_same(root, link) for link in _chain(fun)):
                return root
        return fun

    # What a reader asks.

    @property
    def records(self) -> tuple[Record, ...]:
        """One record a function, in the order in which they were first seen."""
        with self._lock:
            return tuple(self._records.values())

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

    def __getitem__(self, key: str | Callable) -> Record:
        if callable(key):
            return self._of_function(key)
        found = [record for record in self.records if key in names_of(record)]
        if len(found) == 1:
            return found[0]
        if found:
            full = ", ".join(sorted(f"{r.module}.{r.qualname}" for r in found))
            raise KeyError(f"{key!r} names {len(found)} functions: {full}")
        seen = ", ".join(record.name for record in self.records) or "none"
        raise KeyError(
            f"no function named {key!r} was traced or compiled while this log watched "
            f"(seen: {seen}). A function that only hit the cache is not seen: ask with "
            "the function itself, log[fn]"
        )

    def _of_function(self, fun: Callable) -> Record:
        name, qualname, module, source = _identity(_root(fun))
        with self._lock:
            known = self._records.get((module, qualname, source))
        return known or Record(name, qualname, module)

    def __contains__(self, key: object) -> bool:
        return any(key in names_of(record) for record in self.records)

    def __iter__(self) -> Iterator[str]:
        return iter([shortest(record, self.records) for record in self.records])

    def __len__(self) -> int:
        return len(self.records)

    def table(self, *, times: bool | None = None) -> str:
        """The log as aligned text.

        Args:
            times: also show how long each trace took, in milliseconds.
        """
        return as_text(self, self._times if times is None else times)

    def __repr__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        return as_html(self, self._times)


def _why_compiled(record: Record, run: _internals.JitRun | None) -> tuple[Reason, ...]:
    placed = () if run is None else placements(run)
    earlier = record._placements[-1] if record._placements else ()
    if placed:
        record._placements.append(placed)
    if record._uncompiled:
        return record._uncompiled.pop(0)
    traced = run is None or any(isinstance(x, jax.core.Tracer) for x in run.leaves)
    if traced:
        text = "a derivative or another transformation, or .compile() ahead of time"
        return (Reason("transformation", text),)
    moved = [
        (name, dict(earlier).get(name, ""), place)
        for name, place in placed
        if dict(earlier).get(name, place) != place
    ]
    if moved:
        name, before, now = moved[0]
        text = f"{name} was {before or 'on the host'}, now {now or 'on the host'}"
        return (Reason("sharding", text),)
    if not record.compiled:
        return (Reason("first call", ""),)
    text = "the same trace was compiled before: its entry was cleared or dropped"
    return (Reason("cache emptied", text),)


def watch(
    fn: Callable | None = None,
    /,
    *,
    only: Callable | Sequence[Callable] | None = None,
    times: bool = False,
) -> Any:
    """Count how often functions are traced and compiled, and say why.

    As a context manager, ``with watch() as log:`` counts every function that is
    traced or compiled inside, on any thread. As a call, ``log = watch()`` counts from
    here on, until ``log.stop()``. As a decorator, ``@watch`` above or below
    ``@jax.jit`` counts one function for good, in ``fn.log``.

    A decorated function comes back as the same object: a call that hits JAX's cache
    costs what it cost before.

    Args:
        fn: the function to decorate, jitted or to be jitted.
        only: count these functions and no other.
        times: show the time of each trace in the table.

    Returns:
        `fn` itself, with a `log` attribute; or a `Log`.

    Raises:
        TypeError: `fn` or `only` is not callable, or cannot carry a log.
        RuntimeError: this version of JAX hides what is needed.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> @jax.jit
        ... def double(x):
        ...     return 2 * x
        >>> with watch() as log:
        ...     for n in (3, 4, 4):
        ...         _ = double(jnp.ones(n))
        >>> log["double"].traces
        2
        >>> log["double"].history[1].why[0]
        Reason(kind='new shape', text='x was float32[3], now float32[4]')
    """
    if fn is None:
        chosen = [only] if callable(only) else only
        return Log(_checked(chosen), times).start()
    if not callable(fn):
        raise TypeError(
            f"watch needs a function, got {type(fn).__name__}. Decorate a function, or "
            "write `with watch() as log:` around the calls"
        )
    if only is not None:
        raise TypeError("watch takes a function to decorate or `only`, not both")
    log = Log([fn], times)
    try:
        fn.log = log
    except AttributeError:
        raise TypeError(
            f"a {type(fn).__name__} cannot carry a log: write "
            "`with watch(only=fn) as log:` around the calls"
        ) from None
    log.start()
    return fn


def _checked(only: Sequence[Callable] | None) -> Sequence[Callable] | None:
    for fun in only or ():
        if not callable(fun):
            raise TypeError(f"watch needs functions, got {type(fun).__name__} in only")
    return only
