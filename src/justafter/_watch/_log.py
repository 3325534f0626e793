"""Listens to JAX, and keeps what it hears by function."""

from __future__ import annotations

import inspect
import threading
import types
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import _functions, _internals
from ._passed import joined, passed
from ._record import Compilation, Record, Trace
from ._show import as_html, as_text, names_of, shortest
from ._signature import signature_of, weak_reference
from ._why import Reason, why

Fun = Callable[..., Any]

# How many values of a call's static arguments are looked through for a function.
_LOOKED_THROUGH = 500


class RetraceError(_internals.Veto, RuntimeError):
    """A watched function was traced more often than `watch(max_traces=...)` allows.

    Raised from the call that would have traced it again, before its body runs.

    Attributes:
        reasons: why JAX had to trace again.

    Example:
        >>> import jax
        >>> from justafter import RetraceError, watch
        >>> double = jax.jit(lambda x: 2 * x)
        >>> with watch(only=double, max_traces=1):
        ...     _ = double(1.0)
        ...     try:
        ...         double(1)
        ...     except RetraceError as error:
        ...         print(*error.reasons)
        new dtype: x was float32[], now int32[]
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
    path: str
    is_hidden: bool = False

    @property
    def key(self) -> tuple[str, str, Any]:
        return self.module, self.qualname, self.source

    @property
    def is_jax(self) -> bool:
        return self.module.partition(".")[0] in ("jax", "jaxlib")


def identity(fun: Any) -> Identity:
    """Find a function's names and where it is defined."""
    *_, plain = _functions.layers(fun)
    code = getattr(plain, "__code__", None)
    if inspect.isbuiltin(plain):
        module = str(plain.__module__ or "")
        return Identity(plain.__name__, plain.__qualname__, module, plain, "")
    if code is None:  # an object without Python code
        kind = plain if isinstance(plain, type) else type(plain)
        return Identity(
            kind.__name__, kind.__qualname__, str(kind.__module__), kind, ""
        )
    named = next((f for f in _functions.layers(fun) if hasattr(f, "__name__")), plain)
    name, qualname = named.__name__, getattr(named, "__qualname__", named.__name__)
    if named is plain and not isinstance(fun, types.FunctionType | types.MethodType):
        owner = next((f for f in _functions.layers(fun) if _is_object(f)), None)
        if owner is not None:
            name, qualname = type(owner).__name__, type(owner).__qualname__
    module = str(getattr(plain, "__module__", "") or "")
    return Identity(name, qualname, module, code, code.co_filename)


def _is_object(fun: Any) -> bool:
    """Whether a callable is an object of a class with `__call__`, and no wrapper."""
    known = types.FunctionType | types.MethodType | types.BuiltinFunctionType
    return (
        not isinstance(fun, known)
        and not hasattr(fun, "func")
        and getattr(fun, "__wrapped__", None) is None
    )


def _same(a: Any, b: Any) -> bool:
    methods = isinstance(a, types.MethodType) and isinstance(b, types.MethodType)
    return a is b or (methods and bool(a == b))


def _is_wrapper(fun: Any) -> bool:
    """Whether a function is a library's that goes by the name of what it calls."""
    found = identity(fun)
    named = getattr(found.source, "co_name", found.name)
    is_library = bool(found.path) and _functions.is_library(found.path)
    return is_library and not found.is_jax and named != found.name


def carried(fun: Fun, args: Sequence[Any]) -> Any | None:
    """The function that a library's wrapper of the same name calls, if it shows it.

    Libraries that sort arguments into arrays and the rest give `jax.jit` a function
    of their own, and hand over the user's among the static arguments. `jax.pmap` does
    the same with what it maps.
    """
    if (mapped := _internals.mapped(fun)) is not None:
        return mapped
    if not _is_wrapper(fun):
        return None
    name, queue = getattr(fun, "__name__", None), list(args)
    for _ in range(_LOOKED_THROUGH):
        if not queue:
            break
        value = queue.pop(0)
        if isinstance(value, list | tuple):
            queue.extend(value)
        elif (
            callable(value)
            and value is not fun
            and _functions.name_of(value) == name
            and _functions.code_of(value) is not None
        ):
            return value
    return None


def place() -> str:
    """File and line of the reader's code that we are called from, or empty."""
    found = _functions.caller()
    return f"{_functions.file_label(found[0])}:{found[1]}" if found else ""


class Log(Mapping[str, Record]):
    """Traces and compilations, function by function.

    Looks up by name (``log["step"]``, ``log["Model.step"]``,
    ``log["package.module.Model.step"]``) or by the function itself (``log[step]``).
    Shows a table in a notebook and plain text in a terminal.

    Attributes:
        eager: how often JAX compiled an operation called outside any jitted
            function, by name. Empty for a log of chosen functions.
    """

    def __init__(
        self,
        only: Sequence[Fun] | None = None,
        times: bool = False,
        *,
        ignore: Sequence[str | Fun] = (),
        max_traces: int | None = None,
    ):
        self._lock = threading.RLock()
        self._records: dict[Any, Record] = {}
        self._only = None if only is None else [_functions.unjitted(f) for f in only]
        self._ignored = tuple(one for one in ignore if isinstance(one, str))
        self._ignored_functions = [
            _functions.unjitted(one) for one in ignore if not isinstance(one, str)
        ]
        self._max_traces = max_traces
        self._times = times
        self._known: dict[int, Callable[[], Any]] = {}
        self._inside: set[int] = set()
        self._opaque: Counter[str] = Counter()
        self._reference: Callable[[], Any] | None = None
        self.eager: Counter[str] = Counter()
        for fun in self._only or ():
            self._record(identity(fun))

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

    def tracing(self, call: _internals.JitCall, outer: tuple[Fun, ...]) -> None:
        """A body is about to run."""
        found = self._wanted(call.fun, call.args)
        if found is None:
            return
        with self._lock:
            record = self._record(found)
            self._remember(record, call)
            if _is_inside(call, outer):
                self._inside.add(id(call))
            elif self._max_traces is not None and record.traces >= self._max_traces:
                new = signature_of(call, arguments=passed(call.fun))
                reasons = why(new, record._signatures)
                raise RetraceError(_too_often(record, reasons), reasons)

    def _remember(self, record: Record, call: _internals.JitCall) -> None:
        """Know what JAX traced of this function before the log began."""
        # Not kept alive: a function that is gone takes its traces with it.
        known = self._known.get(id(call.fun))
        if known is not None and known() is call.fun:
            return
        self._known[id(call.fun)] = weak_reference(call.fun)
        if not any(old.fun() is call.fun for old in record._signatures):
            record._signatures.extend(
                signature_of(old, arguments=joined(old.args))
                for old in _internals.earlier_calls(call)
            )

    def traced(
        self, call: _internals.JitCall, seconds: float, error: str | None
    ) -> None:
        """A body has run."""
        found = self._wanted(call.fun, call.args)
        if found is None:
            return
        signature = signature_of(call, error is not None, passed(call.fun))
        with self._lock:
            if id(call) in self._inside:
                self._inside.discard(id(call))
                return
            record = self._record(found)
            reasons = why(signature, record._signatures)
            record._signatures.append(signature)
            number, text = record.traces + 1, str(signature)
            trace = Trace(number, text, reasons, seconds, error, place())
            record.history.append(trace)
            if error is None:
                record._uncompiled.append(reasons)

    def compiled(
        self, name: str, run: _internals.JitRun | None, seconds: float, loaded: bool
    ) -> None:
        """XLA compiled a program, or loaded it."""
        with self._lock:
            record = self._compiled_record(name, run)
            if record is not None:
                number, reasons = record.compilations + 1, record._why_compiled(run)
                record.compiled.append(
                    Compilation(number, reasons, seconds, loaded, place())
                )

    def _compiled_record(
        self, name: str, run: _internals.JitRun | None
    ) -> Record | None:
        if run is not None and run.fun is not None:
            found = self._wanted(run.fun, run.args)
            if found is None:
                self._count_eager(name, run.fun)
            return None if found is None else self._record(found)
        # A backward pass, or ahead of time: only the name is known, and the place.
        named = [r for r in self._records.values() if r.name == name]
        path, line = run.place if run is not None and run.place else ("", 0)
        defined = [r for r in named if r._place == (path, line)]
        traced = [r for r in named if r.history or self._only is not None]
        if defined or traced:
            return (defined or traced)[-1]
        if path and _functions.is_library(path) and not _functions.package_of(path):
            path = ""
        if self._only is not None or (run is not None and not path):
            if self._only is None:
                self.eager[name] += 1
            return None
        found = Identity(name, name, "", (path, line, name), path)
        return None if self._is_ignored(found, None) else self._record(found)

    def _count_eager(self, name: str, fun: Fun) -> None:
        if self._only is None and identity(fun).is_jax:
            self.eager[name] += 1

    def _wanted(self, fun: Fun, args: Sequence[Any]) -> Identity | None:
        """The identity to count a function under; None if it is not watched."""
        hidden = carried(fun, args)
        links = list(_functions.layers(fun if hidden is None else hidden))
        if self._only is None:
            found = identity(links[0])
            found = replace(found, is_hidden=hidden is None and _is_wrapper(fun))
            return None if found.is_jax or self._is_ignored(found, links) else found
        for root in self._only:
            if any(_same(root, link) for link in links):
                return identity(root)
        if hidden is not None:  # a gradient, say, that the library jits
            for root in self._only:
                if any(_same(links[-1], layer) for layer in _functions.layers(root)):
                    return identity(root)
        if hidden is None and _is_wrapper(fun):
            return self._by_name(fun)
        return None

    def _by_name(self, fun: Fun) -> Identity | None:
        # The wrapper does not show what it calls; it has its name.
        for root in self._only or ():
            mine = identity(root)
            if mine.qualname == getattr(fun, "__qualname__", None):
                return mine
        self._opaque[getattr(fun, "__qualname__", str(fun))] += 1
        return None

    def _is_ignored(self, found: Identity, links: Sequence[Any] | None) -> bool:
        modules = {found.module, _functions.package_of(found.path)}
        by_name = any(
            module == one or module.startswith(f"{one}.")
            for module in modules
            for one in self._ignored
        )
        return by_name or any(
            _same(one, link) for one in self._ignored_functions for link in links or ()
        )

    def _record(self, found: Identity) -> Record:
        with self._lock:
            if found.key not in self._records:
                library = _functions.package_of(found.path)
                line = getattr(found.source, "co_firstlineno", 0)
                self._records[found.key] = Record(
                    found.name,
                    found.qualname,
                    found.module,
                    library=library,
                    _is_hidden=found.is_hidden,
                    _place=(found.path, line),
                )
            return self._records[found.key]

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

    def __getitem__(self, key: str | Fun) -> Record:
        if callable(key):
            return self._of_function(key)
        found = [record for record in self.records if key in names_of(record)]
        if len(found) == 1:
            return found[0]
        if found:
            places = sorted({_described(record) for record in found})
            raise KeyError(
                f"{key!r} names {len(found)} functions: {', '.join(places)}. "
                "Ask with the function itself, log[fn]"
            )
        seen = ", ".join(record.name for record in self.records) or "none"
        raise KeyError(
            f"no function named {key!r} was traced or compiled while this log watched "
            f"(seen: {seen}). A function that only hit the cache is not seen: ask with "
            "the function itself, log[fn]"
        )

    def _of_function(self, fun: Fun) -> Record:
        mine = identity(_functions.unjitted(fun))
        if self._only is None and mine.is_jax:
            raise KeyError(
                f"{mine.qualname} is one of JAX's own functions, which this log leaves "
                "out: count it with watch(only=fn)"
            )
        with self._lock:
            known = self._records.get(mine.key)
        if known is not None and (known.traces or known.compilations):
            return known
        hidden = [
            record
            for record in self.records
            if record._is_hidden and record.qualname == mine.qualname
        ]
        if len(hidden) == 1:
            return hidden[0]
        self._check_told(fun, mine)
        line = getattr(mine.source, "co_firstlineno", 0)
        return known or Record(
            mine.name, mine.qualname, mine.module, _place=(mine.path, line)
        )

    def _check_told(self, fun: Fun, mine: Identity) -> None:
        """Refuse to say zero of a function that a library may hide from us."""
        is_plain = _functions.is_jax_jitted(fun) or not _functions.is_jitted(fun)
        seen = [*self._opaque, *(r.qualname for r in self.records if r._is_hidden)]
        if not is_plain and seen:
            raise KeyError(
                f"cannot tell whether {mine.qualname} was traced: the library that "
                f"jitted it calls it by another name. Ask by name; seen from "
                f"libraries: {', '.join(dict.fromkeys(seen))}"
            )

    def __contains__(self, key: object) -> bool:
        return any(key in names_of(record) for record in self.records)

    def __iter__(self) -> Iterator[str]:
        return iter([shortest(record, self.records) for record in self.records])

    def __len__(self) -> int:
        return len(self.records)

    def table(self, *, times: bool | None = None) -> str:
        """The log as aligned text.

        Args:
            times: also show how long each trace took, and all compilations.
        """
        return as_text(self, self._times if times is None else times)

    def __repr__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        return as_html(self, self._times)


def _is_inside(call: _internals.JitCall, outer: tuple[Fun, ...]) -> bool:
    """Whether a trace is a part of that of a jit around the same jitted function."""
    return (
        bool(outer)
        and _functions.is_jitted(outer[-1])
        and getattr(outer[-1], "__wrapped__", None) is call.fun
    )


def _described(record: Record) -> str:
    path, line = record._place
    where = f" ({_functions.file_label(path)}:{line})" if path else ""
    return f"{record.module}.{record.qualname}{where}"


def _too_often(record: Record, reasons: tuple[Reason, ...]) -> str:
    where, count = place(), record.traces
    seen = "once" if count == 1 else f"{count} times"
    return (
        f"{record.qualname} would be traced again{f' by {where}' if where else ''}, "
        f"after {seen}: {'; '.join(map(str, reasons))}"
    )
