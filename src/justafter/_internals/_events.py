"""Who traces, who compiles, and when: what `watch` listens to inside JAX."""

from __future__ import annotations

import contextlib
import inspect
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax
from jax._src import config as _config
from jax._src import pjit as _pjit
from jax._src import util as _util
from jax._src.interpreters import partial_eval as _partial_eval

from .. import _functions

_COMPILE_EVENT = "/jax/core/compile/backend_compile_duration"
_TRACE_PARAMETERS = ("fun", "ji", "ctx_mesh", "dbg", "avals", "args", "kwargs")
_RUN_PARAMETERS = ("p", "args_flat", "fun", "args", "kwargs")

Fun = Callable[..., Any]
# Returns who listens, or None once it is gone. It has methods `tracing(call)`, when a
# body is about to run; `traced(call, error)`, when it has, or ended in an error; and
# `compiled(name, run)`, when XLA compiled a program or loaded one.
Reference = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class JitCall:
    """What `jax.jit` knows about a call that its caches did not answer."""

    fun: Fun
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    avals: tuple[Any, ...]
    arg_names: tuple[str, ...]
    static_argnums: tuple[int, ...]
    static_argnames: tuple[str, ...]
    signature: inspect.Signature | None
    context: dict[str, Any]


@dataclass(frozen=True, slots=True)
class JitRun:
    """A jitted function, or a derivative of one, on its way to the compiler.

    `fun` is None where JAX runs a program that it made of a traced function, such as
    a backward pass; `place` says then where that function is defined.
    """

    name: str
    fun: Fun | None
    leaves: tuple[Any, ...]
    arg_names: tuple[str, ...] = ()
    args: tuple[Any, ...] = ()
    place: tuple[str, int] | None = None


class Veto(Exception):
    """What a listener raises to stop a trace before the function's body runs."""


class _Here(threading.local):
    """What is going on in this thread; no slots, which all threads would share."""

    def __init__(self) -> None:
        # Calls that JAX may trace: how to describe each, then what it is.
        self.pending: list[Callable[[], JitCall] | JitCall] = []
        self.runs: list[JitRun] = []


# Re-entrant: a log that is collected takes itself off the list, at any moment.
_lock = threading.RLock()
_listeners: tuple[Reference, ...] = ()
# How to undo each change of JAX; noted before it is made, and run until all are undone.
_undo: list[Callable[[], Any]] = []
_here = _Here()


def moved(what: str) -> RuntimeError:
    """The error for an internal that this JAX does not have where we know it."""
    return RuntimeError(
        f"justafter cannot {what} with JAX {jax.__version__}, which has moved an "
        "internal that it needs. It works with JAX 0.10.2 to 0.12: install one of "
        "these, or a newer justafter."
    )


def listen(listener: Reference) -> None:
    """Tell `listener()` of each trace and compilation from now on, on any thread."""
    global _listeners
    with _lock:
        try:
            if not _listeners:
                _install()
            _listeners = (*_listeners, listener)
        finally:
            if not _listeners:
                _restore()


def unlisten(
    listener: Reference, is_ending: Callable[[], bool] = sys.is_finalizing
) -> None:
    """Stop telling `listener`; the last one to go leaves JAX as it was."""
    global _listeners
    # A log may be collected when Python ends, and this module's names are gone.
    if is_ending():
        return
    with _lock:
        _listeners = tuple(known for known in _listeners if known is not listener)
        if not _listeners:
            _restore()


def _restore() -> None:
    """Leave JAX as it was. What interrupts it is raised when all is undone."""
    interrupt: BaseException | None = None
    while _undo:
        try:
            _undo[-1]()
            _undo.pop()
        except BaseException as raised:
            interrupt = raised
            if isinstance(raised, Exception):  # it would fail again
                _undo.pop()
    if interrupt is not None:
        raise interrupt


def _install() -> None:
    _restore()  # what an interrupt left
    names = ("_trace_for_jit", "_run_python_pjit", "_pjit_call_impl_python")
    trace, run, program = (getattr(_pjit, name, None) for name in names)
    if (
        _functions.parameters(trace) != _TRACE_PARAMETERS
        or _functions.parameters(run) != _RUN_PARAMETERS
        or not {"jaxpr", "name"} <= {*_functions.parameters(program)}
        or not hasattr(_util, "test_event_listener")
    ):
        raise moved("watch traces")
    for place, name, around in (
        (_pjit, names[0], _tell_trace),
        (_pjit, names[1], _remember_run),
        (_pjit, names[2], _remember_program),
        (_util, "test_event_listener", _mark_body),
    ):
        _replace(place, name, around(getattr(place, name)))
    _undo.append(_hear_no_more)
    jax.monitoring.register_event_duration_secs_listener(_tell_compilation)


def _hear_no_more() -> None:
    with contextlib.suppress(AssertionError, ValueError):  # it is not registered
        jax.monitoring.unregister_event_duration_listener(_tell_compilation)


def _replace(module: Any, name: str, new: Any) -> None:
    old = getattr(module, name)

    def put_back() -> None:
        if getattr(module, name) is new:
            setattr(module, name, old)

    _undo.append(put_back)
    setattr(module, name, new)


def _tell_trace(trace: Fun) -> Fun:
    # JAX comes here when the call is new to this jit. The trace cache below may still
    # answer, for another jit of the same function: only then does no body run.
    def _trace_for_jit(
        fun: Any, ji: Any, ctx_mesh: Any, dbg: Any, avals: Any, args: Any, kwargs: Any
    ) -> Any:
        def describe() -> JitCall:
            return JitCall(
                fun=fun,
                args=args,
                kwargs=kwargs,
                avals=tuple(avals),
                arg_names=tuple(dbg.safe_arg_names(len(avals))),
                static_argnums=tuple(ji.static_argnums),
                static_argnames=tuple(ji.static_argnames),
                signature=ji.fun_signature,
                context=_named(_config.trace_context()),
            )

        _here.pending.append(describe)
        error: type[BaseException] | None = None
        try:
            return trace(fun, ji, ctx_mesh, dbg, avals, args, kwargs)
        except BaseException as raised:
            error = type(raised)
            raise
        finally:
            call = _here.pending.pop()
            if isinstance(call, JitCall):
                _tell(lambda listener: listener.traced(call, error))

    return _trace_for_jit


def _mark_body(before: Fun | None) -> Fun:
    # JAX's own tests count traces by this event: it fires when a body is about to run.
    def listener(name: str, *args: Any) -> None:
        pending = _here.pending
        if name == "trace_to_jaxpr" and pending and callable(pending[-1]):
            call = pending[-1] = pending[-1]()
            _tell(lambda listener: listener.tracing(call))
        if before is not None:
            before(name, *args)

    return listener


def _remember_run(run: Fun) -> Fun:
    def _run_python_pjit(
        p: Any, args_flat: Any, fun: Any, args: Any, kwargs: Any
    ) -> Any:
        name, names = _util.fun_name(fun), tuple(p.arg_names or ())
        _here.runs.append(JitRun(name, fun, tuple(args_flat), names, tuple(args)))
        try:
            return run(p, args_flat, fun, args, kwargs)
        finally:
            _here.runs.pop()

    return _run_python_pjit


def _remember_program(program: Fun) -> Fun:
    def _pjit_call_impl_python(*args: Any, **params: Any) -> Any:
        runs = _here.runs
        runs.append(_own_run(args, params, runs[-1] if runs else None))
        try:
            return program(*args, **params)
        finally:
            runs.pop()

    return _pjit_call_impl_python


def _own_run(args: Any, params: dict[str, Any], around: JitRun | None) -> JitRun:
    """The run of a program: the call around it, or what its jaxpr remembers."""
    name, jaxpr = str(params["name"]), params["jaxpr"]
    if around is not None and around.fun is not None and around.name == name:
        return around
    debug = getattr(getattr(jaxpr, "jaxpr", jaxpr), "debug_info", None)
    path, line = (getattr(debug, f"func_{key}", None) for key in ("filename", "lineno"))
    known = (path, line) if isinstance(path, str) and isinstance(line, int) else None
    return JitRun(name, None, tuple(args), place=known)


def _tell_compilation(event: str, duration_secs: float, **details: Any) -> None:
    if event != _COMPILE_EVENT:
        return
    # `step` of the compiler's `jit(step)`.
    name = re.sub(r"^\w+\((.*)\)$", r"\1", str(details.get("fun_name", "")))
    runs = _here.runs
    run = runs[-1] if runs else None
    if run is not None and run.name != name:
        run = JitRun(name, None, ())
    _tell(lambda listener: listener.compiled(name, run))


def _tell(news: Callable[[Any], None]) -> None:
    # We stand inside the user's call: what fails here must not fail the call.
    for reference in _listeners:
        if (listener := reference()) is None:
            continue
        try:
            news(listener)
        except Veto:
            raise
        except Exception as error:
            text = f"justafter could not record a trace or compilation: {error!r}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)


def _named(values: tuple[Any, ...]) -> dict[str, Any]:
    """The settings that are part of a trace's identity, by name."""
    names = getattr(_config, "trace_context_names", None)
    if names is None or len(names()) != len(values):
        return {f"setting {i}": value for i, value in enumerate(values)}
    return dict(zip(names(), values, strict=True))


# Between a call of a jitted function and what JAX tells us of it.
_MACHINERY = re.compile(
    r"[\\/]jax[\\/]_src[\\/](?:interpreters[\\/]|(?:api|api_util|pjit|traceback_util|"
    r"linear_util|dispatch|core|compiler|profiler|util|monitoring)\.py$)"
)


def is_called_by_reader() -> bool:
    """Whether no library is between the reader's code and the jit that runs."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith(_functions.PACKAGE) and not _MACHINERY.search(path):
            return not _functions.is_library(path)
        frame = frame.f_back
    return False


def earlier_calls(call: JitCall) -> Iterator[JitCall]:
    """The calls of the same function that JAX still has traces of, if it shows them."""
    keys = getattr(_partial_eval.trace_to_jaxpr, "cache_keys", None)
    for key in keys() if keys is not None else ():
        try:
            reference, context, (flat, debug, *_), _ = key
            if reference() is not call.fun or debug.traced_for != "jit":
                continue
            (args, kwargs), avals = flat.unflatten(), tuple(flat)
            names = tuple(debug.safe_arg_names(len(avals)))
        except (AttributeError, TypeError, ValueError):
            continue
        yield replace(
            call,
            args=args,
            kwargs=kwargs,
            avals=avals,
            arg_names=names,
            context=_named(context),
        )
