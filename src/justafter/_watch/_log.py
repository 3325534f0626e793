"""Listens to JAX, and keeps what it hears by function."""

from __future__ import annotations

import inspect
import sys
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
from ._show import as_html, as_text, named, names_of
from ._signature import signature_of, weak_reference
from ._why import FIRST, UNKNOWN, Reason, why

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
    # The object that a method is bound to, and the code of functions closed over.
    owner: Any = None
    holds: tuple[Any, ...] = ()
    # Whether the reader's code calls it, and no library's.
    is_readers: bool = False

    @property
    def key(self) -> tuple[Any, ...]:
        return self.module, self.qualname, self.source, self.holds

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
    path, owner, holds = code.co_filename, _owner(fun), _held(plain)
    return Identity(name, qualname, module, code, path, owner=owner, holds=holds)


def _owner(fun: Any) -> Any:
    """The object whose method a function is, so that no other object's is meant."""
    for layer in _functions.layers(fun):
        if isinstance(layer, types.MethodType):
            return layer.__self__
        if _is_object(layer) and not _functions.is_jitted(layer):
            return layer
    return None


def _held(plain: Any) -> tuple[Any, ...]:
    """The code of the functions that a wrapper without a name of its own calls."""
    cells = getattr(plain, "__closure__", None) or ()
    held = (getattr(cell, "cell_contents", None) for cell in cells)
    functions = (one for one in held if isinstance(one, types.FunctionType))
    return tuple(one.__code__ for one in functions if one is not plain)


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


def _is_made_of_a_jit(fun: Any) -> bool:
    """Whether a jitted function is inside, which JAX tells of when its body runs."""
    return any(map(_functions.is_jitted, _functions.layers(fun)))


def _is_readers(fun: Any) -> bool:
    """Whether a function of JAX's was jitted by the reader, and not by JAX itself."""
    plain = _functions.unjitted(fun)
    known: Any = sys.modules.get(getattr(plain, "__module__", ""))
    for name in getattr(plain, "__qualname__", "").split("."):
        known = getattr(known, name, None)
    is_own = known is not fun and known is not plain
    return not is_own and _internals.is_called_by_reader()


def _is_wrapper(fun: Any) -> bool:
    """Whether a function is a library's that goes by the name of what it calls."""
    found = identity(fun)
    named = getattr(found.source, "co_name", found.name)
    is_library = bool(found.path) and _functions.is_library(found.path)
    return is_library and not found.is_jax and named != found.name


def carried(fun: Fun, args: Sequence[Any]) -> Any | None:
    """The function that a library's wrapper of the same name calls, if it shows it.

    Libraries that sort arguments into arrays and the rest give `jax.jit` a function
    of their own, and pass the user's among the static arguments. `jax.pmap` does
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
        # Of one code, a record for each living object whose method it is.
        self._records: dict[Any, list[tuple[Callable[[], Any], Record]]] = {}
        self._only = None if only is None else [_functions.unjitted(f) for f in only]
        self._ignored = tuple(one for one in ignore if isinstance(one, str))
        self._ignored_functions = [
            _functions.unjitted(one) for one in ignore if not isinstance(one, str)
        ]
        self._max_traces = max_traces
        self._times = times
        self._order: list[Record] = []
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

    def tracing(self, call: _internals.JitCall) -> None:
        """A body is about to run."""
        found = self._counted(call)
        if found is None:
            return
        with self._lock:
            record = self._record(found)
            _guarded(lambda: self._remember(record, call))
            if self._max_traces is not None and record.traces >= self._max_traces:
                reasons = self._explained(record, call, False)[1]
                raise RetraceError(_too_often(record, reasons), reasons)

    def _remember(self, record: Record, call: _internals.JitCall) -> None:
        """Know what JAX traced of this function before the log began."""
        if not any(old.fun() is call.fun for old in record._signatures):
            record._signatures.extend(
                signature_of(old, arguments=joined(old.args))
                for old in _internals.earlier_calls(call)
            )

    def traced(
        self, call: _internals.JitCall, seconds: float, error: str | None
    ) -> None:
        """A body has run."""
        if (found := self._counted(call)) is None:
            return
        with self._lock:
            record = self._record(found)
            text, reasons = self._explained(record, call, error is not None)
            number = record.traces + 1
            record.history.append(Trace(number, text, reasons, seconds, error, place()))

    def _counted(self, call: _internals.JitCall) -> Identity | None:
        """What a run of a body counts for; None for what is not watched.

        Where a jitted function is inside, the log counts that function's runs alone.
        """
        found = self._wanted(call.fun, call.args)
        if found is None or (found.is_jax and self._only is None):
            return found
        return None if _is_made_of_a_jit(call.fun) else found

    def _explained(
        self, record: Record, call: _internals.JitCall, raised: bool
    ) -> tuple[str, tuple[Reason, ...]]:
        """A call in words, and why it was traced. What fails here loses no count."""

        def explain() -> tuple[str, tuple[Reason, ...]]:
            signature = signature_of(call, raised, passed(call.fun))
            reasons = why(signature, record._signatures)
            text = str(signature)
            record._signatures.append(replace(signature, reasons=reasons))
            return text, reasons

        return _guarded(explain) or ("", (FIRST if not record.traces else UNKNOWN,))

    def compiled(
        self, name: str, run: _internals.JitRun | None, seconds: float, loaded: bool
    ) -> None:
        """XLA compiled a program, or loaded it."""
        with self._lock:
            record = self._compiled_record(name, run)
            if record is not None:
                number = record.compilations + 1
                reasons = _guarded(lambda: record._why_compiled(run)) or (UNKNOWN,)
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
        named = [r for r in self.records if r.name == name]
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
            is_readers = _internals.is_called_by_reader()
            owner = found.owner if hidden is None else None
            found = replace(found, owner=owner, is_readers=is_readers)
            if found.is_jax and not _is_readers(fun):
                return None
            return None if self._is_ignored(found, links) else found
        for root in self._only:
            if any(_same(root, link) for link in links):
                return identity(root)
        if hidden is not None:  # a gradient, say, that the library jits
            for root in self._only:
                if any(_same(links[-1], layer) for layer in _functions.layers(root)):
                    return identity(root)
        elif _is_wrapper(fun):  # it does not show what it calls, and has its name
            name = getattr(fun, "__qualname__", None)
            return next(
                (i for i in map(identity, self._only) if i.qualname == name), None
            )
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
            entries = self._records.setdefault(found.key, [])
            for i, (owner, record) in enumerate(entries):
                # An entry whose object is gone is that of the next one like it.
                if owner() is found.owner or owner() is None:
                    entries[i] = (weak_reference(found.owner), record)
                    return record
            line = getattr(found.source, "co_firstlineno", 0)
            record = Record(
                found.name,
                found.qualname,
                found.module,
                library="" if found.is_readers else _functions.package_of(found.path),
                _place=(found.path, line),
            )
            entries.append((weak_reference(found.owner), record))
            self._order.append(record)
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
        found = [r for name, r in named(self.records).items() if name == key]
        found = found or [record for record in self.records if key in names_of(record)]
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
        with self._lock:
            entries = self._records.get(mine.key, [])
            same = [r for owner, r in entries if owner() is mine.owner]
            known = [
                r for r in same or [r for _, r in entries] if r.traces or r.compilations
            ]
        if len(known) == 1:
            return known[0]
        if known:
            raise KeyError(
                f"{mine.qualname} was called on {len(known)} objects: ask with the "
                "bound method, log[object.method]"
            )
        if self._only is None and mine.is_jax:
            raise KeyError(
                f"{mine.qualname} is one of JAX's own functions, which this log leaves "
                "out unless you jit them: count it with watch(only=fn)"
            )
        # A library's wrapper of a callable object has the object's name.
        alike = [r for r in self.records if r.library and r.qualname == mine.qualname]
        if len(alike) == 1:
            return alike[0]
        line = getattr(mine.source, "co_firstlineno", 0)
        return Record(mine.name, mine.qualname, mine.module, _place=(mine.path, line))

    def __contains__(self, key: object) -> bool:
        return any(key in names_of(record) for record in self.records)

    def __iter__(self) -> Iterator[str]:
        return iter(named(self.records))

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


def _guarded(explain: Callable[[], Any]) -> Any:
    """What explains a count, or None: values of the reader's may refuse to be read."""
    try:
        return explain()
    except Exception:
        return None


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
