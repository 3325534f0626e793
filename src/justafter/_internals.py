"""The one module that touches JAX's internals.

Everything here is tested on the oldest and the newest supported JAX. What the
lens needs degrades: each function says what its caller gets where an internal
is not as expected. What `watch` needs is checked before it is used, and the
error says which JAX has moved it.
"""

from __future__ import annotations

import copy
import inspect
import re
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import jax
from jax._src import config as _config
from jax._src import pjit as _pjit
from jax._src import traceback_util as _traceback_util
from jax._src import util as _util
from jax.extend import core as _core

try:
    from jax._src import source_info_util as _source_info
except ImportError:  # pragma: no cover - a JAX newer than any tested one
    _source_info = None

# A user's error, raised while we pass a call on, shows the user's frames and not ours.
_traceback_util.register_exclusion(__file__)


# --- lens: where an equation came from, and how to follow it into HLO ---------

# A scope no user would write. MLIR cuts names at "@", so none of that.
_TAG = "ja_eqn"
_TAG_PATTERN = re.compile(rf"{_TAG}(\d+)\.")

# Their inner jaxprs say how to combine two numbers, or are a kernel of their
# own; lowering rules match on them, so they stay untouched.
_LEAVES = {"pallas_call", "reduce", "reduce_window", "select_and_scatter", "sort"}


def user_span(eqn: Any) -> tuple[str, str, int, int, int, int] | None:
    """Give the user's expression that an equation came from.

    Returns:
        ``(file, function, line, column, end_line, end_column)``, lines from 1,
        columns in bytes from 0; None where JAX kept no frame of the user's.
    """
    try:
        frame = _source_info.user_frame(eqn.source_info.traceback)
        return None if frame is None else tuple(frame_fields(frame))
    except (AttributeError, TypeError):
        return None


def frame_fields(frame: Any) -> tuple[Any, ...]:
    """Give the fields of JAX's frame in the order of :func:`user_span`."""
    return (
        frame.file_name,
        frame.function_name,
        frame.start_line,
        frame.start_column,
        frame.end_line,
        frame.end_column,
    )


def is_user_file(path: str) -> bool:
    """Say whether JAX counts a file as the user's (True where it cannot tell)."""
    try:
        return _source_info.is_user_filename(path)
    except AttributeError:
        return True


def sub_jaxprs(eqn: Any) -> list[tuple[str, Any]]:
    """List the jaxprs that an equation runs, each with its parameter's name."""
    if is_leaf(eqn):
        return []
    return [
        (f"{key} {i}" if isinstance(value, (tuple, list)) else key, one)
        for key, value in eqn.params.items()
        for i, one in enumerate(value if isinstance(value, (tuple, list)) else [value])
        if isinstance(one, (_core.ClosedJaxpr, _core.Jaxpr))
    ]


def is_leaf(eqn: Any) -> bool:
    """Say whether an equation's inner jaxprs are details of one operation."""
    name = eqn.primitive.name
    return name in _LEAVES or name.startswith("scatter")


def scope(eqn: Any) -> str:
    """Give an equation's name stack, such as ``transpose(jvp())``."""
    return str(getattr(getattr(eqn, "source_info", None), "name_stack", ""))


def tagged(traced: Any) -> Any | None:
    """Copy a traced function so that each equation carries a number.

    The number is one more scope in the equation's name stack, so XLA keeps it in
    the metadata of every instruction made from it. Metadata only: the compiled
    program is the same.

    Returns:
        The copy, to lower and compile; None where this JAX does not allow it.
    """
    try:
        twin = copy.copy(traced)
        jaxpr = _tag_value(traced._params["jaxpr"], {}, [0])
        twin._params = {**traced._params, "jaxpr": jaxpr}
    except (AttributeError, KeyError, TypeError):
        return None
    return twin


def tags(path: str) -> tuple[int, ...]:
    """Read the numbers that :func:`tagged` put into a scope, outermost first."""
    return tuple(int(number) for number in _TAG_PATTERN.findall(path))


def untagged(path: str) -> str:
    """Give a scope as it was before :func:`tagged`."""
    return re.sub(rf"/?{_TAG}\d+\./?", "", path)


def plain_names(text: str) -> str:
    """Take the numbers of :func:`tagged` out of HLO's names for values.

    XLA names a value after the last part of its scope, and that may be a number.
    """
    return re.sub(rf"(%[\w\-.]*?){_TAG}(?=\d)", r"\1value", text)


def _tag_value(value: Any, seen: dict, counter: list[int]) -> Any:
    if isinstance(value, _core.ClosedJaxpr) and hasattr(value, "jaxpr"):
        inner = value.jaxpr
        if inner is not value:
            return value.replace(jaxpr=_tag_value(inner, seen, counter))
    if isinstance(value, (_core.ClosedJaxpr, _core.Jaxpr)):
        return _tag_jaxpr(value, seen, counter)
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        return type(value)(_tag_value(one, seen, counter) for one in value)
    return value


def _tag_jaxpr(jaxpr: Any, seen: dict, counter: list[int]) -> Any:
    # A jaxpr that two equations share stays shared, or the program would grow.
    if id(jaxpr) not in seen:
        eqns = [_tag_equation(eqn, seen, counter) for eqn in jaxpr.eqns]
        seen[id(jaxpr)] = (jaxpr, jaxpr.replace(eqns=eqns))
    return seen[id(jaxpr)][1]


def _tag_equation(eqn: Any, seen: dict, counter: list[int]) -> Any:
    stack = eqn.source_info.name_stack.extend(f"{_TAG}{counter[0]}.")
    counter[0] += 1
    params = eqn.params
    if not is_leaf(eqn):
        params = {k: _tag_value(v, seen, counter) for k, v in params.items()}
    return eqn.replace(
        params=params, source_info=eqn.source_info.replace(name_stack=stack)
    )


# --- watch and measure: who traces, who compiles, and when ---------------------


@dataclass(frozen=True, slots=True)
class JitCall:
    """What `jax.jit` knows about a call that its caches did not answer."""

    fun: Callable
    name: str
    args: tuple
    kwargs: dict[str, Any]
    avals: tuple
    arg_names: tuple[str, ...]
    static_argnums: tuple[int, ...]
    static_argnames: tuple[str, ...]
    signature: inspect.Signature | None


@dataclass(slots=True)
class JitRun:
    """A call of a jitted function on its way to the compiler."""

    fun: Callable
    name: str
    leaves: tuple
    arg_names: tuple[str, ...]


@dataclass(slots=True)
class _Pending:
    fun: Callable
    ran: bool = False


class Listener(Protocol):
    """Who wants to hear about traces and compilations."""

    def tracing(self, fun: Callable) -> None: ...

    def traced(self, call: JitCall, seconds: float, error: str | None) -> None: ...

    def compiled(self, name: str, run: JitRun | None, seconds: float) -> None: ...


_COMPILE_EVENT = "/jax/core/compile/backend_compile_duration"
_TRACE_PARAMETERS = ("fun", "ji", "ctx_mesh", "dbg", "avals", "args", "kwargs")
_RUN_PARAMETERS = ("p", "args_flat", "fun", "args", "kwargs")

# Re-entrant: a log that is collected takes itself off the list, at any moment.
_lock = threading.RLock()
_listeners: tuple[Callable[[], Listener | None], ...] = ()
_restore: list[Callable[[], None]] = []
_here = threading.local()


def moved(what: str) -> RuntimeError:
    """The error for an internal that this JAX does not have where we know it."""
    return RuntimeError(
        f"JAX {jax.__version__} has moved what justafter needs to {what}. "
        "It is known to work from JAX 0.10.2 to 0.12; install one of these, "
        "or a newer justafter."
    )


def _parameters(function: Any) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters) if function else ()


def listen(listener: Callable[[], Listener | None]) -> None:
    """Tell `listener()` of each trace and compilation from now on, on any thread.

    Args:
        listener: returns the listener, or None once it is gone (a weak reference).

    Raises:
        RuntimeError: this JAX hides what is needed.
    """
    global _listeners
    with _lock:
        if not _listeners:
            _install()
        _listeners = (*_listeners, listener)


def unlisten(listener: Callable[[], Listener | None]) -> None:
    """Stop telling `listener`; the last one to go leaves JAX as it was."""
    global _listeners
    with _lock:
        before = _listeners
        _listeners = tuple(known for known in before if known is not listener)
        if before and not _listeners:
            while _restore:
                _restore.pop()()


def _install() -> None:
    trace = getattr(_pjit, "_trace_for_jit", None)
    run = getattr(_pjit, "_run_python_pjit", None)
    if (
        _parameters(trace) != _TRACE_PARAMETERS
        or _parameters(run) != _RUN_PARAMETERS
        or not hasattr(_util, "test_event_listener")
    ):
        raise moved("watch traces")
    _replace(_pjit, "_trace_for_jit", _tell_trace(trace))
    _replace(_pjit, "_run_python_pjit", _remember_run(run))
    _replace(_util, "test_event_listener", _mark_body(_util.test_event_listener))
    jax.monitoring.register_event_duration_secs_listener(_tell_compilation)
    _restore.append(
        lambda: jax.monitoring.unregister_event_duration_listener(_tell_compilation)
    )


def _replace(module: Any, name: str, new: Any) -> None:
    old = getattr(module, name)
    setattr(module, name, new)

    def put_back() -> None:
        if getattr(module, name) is new:
            setattr(module, name, old)

    _restore.append(put_back)


def _stack(kind: str) -> list:
    if not hasattr(_here, kind):
        setattr(_here, kind, [])
    return getattr(_here, kind)


def _tell_trace(trace: Callable) -> Callable:
    # JAX comes here when the call is new to this jit. The trace cache below may still
    # answer, for another jit of the same function: only then does no body run.
    def _trace_for_jit(fun, ji, ctx_mesh, dbg, avals, args, kwargs):
        pending = _stack("pending")
        pending.append(_Pending(fun))
        start, error = time.perf_counter(), None
        try:
            return trace(fun, ji, ctx_mesh, dbg, avals, args, kwargs)
        except BaseException as raised:
            error = type(raised).__name__
            raise
        finally:
            seconds = time.perf_counter() - start
            if pending.pop().ran:
                call = _jit_call(fun, ji, dbg, avals, args, kwargs)
                _tell(lambda listener: listener.traced(call, seconds, error))

    return _trace_for_jit


def _jit_call(fun, ji, dbg, avals, args, kwargs) -> JitCall:
    return JitCall(
        fun=fun,
        name=_util.fun_name(fun),
        args=args,
        kwargs=kwargs,
        avals=tuple(avals),
        arg_names=tuple(dbg.safe_arg_names(len(avals))),
        static_argnums=tuple(ji.static_argnums),
        static_argnames=tuple(ji.static_argnames),
        signature=ji.fun_signature,
    )


def _mark_body(before: Callable | None) -> Callable:
    # JAX's own tests count traces by this event: it fires when a body is about to run.
    def listener(name: str, *args) -> None:
        if name == "trace_to_jaxpr" and (pending := _stack("pending")):
            top = pending[-1]
            if not top.ran:
                top.ran = True
                _tell(lambda listener: listener.tracing(top.fun))
        if before is not None:
            before(name, *args)

    return listener


def _remember_run(run: Callable) -> Callable:
    def _run_python_pjit(p, args_flat, fun, args, kwargs):
        runs = _stack("runs")
        runs.append(
            JitRun(fun, _util.fun_name(fun), tuple(args_flat), tuple(p.arg_names))
        )
        try:
            return run(p, args_flat, fun, args, kwargs)
        finally:
            runs.pop()

    return _run_python_pjit


def _tell_compilation(event: str, seconds: float, **details: Any) -> None:
    if event != _COMPILE_EVENT:
        return
    name = _function_name(str(details.get("fun_name", "")))
    runs = _stack("runs")
    run = runs[-1] if runs and runs[-1].name == name else None
    _tell(lambda listener: listener.compiled(name, run, seconds))


def _tell(news: Callable[[Listener], None]) -> None:
    # We stand inside the user's call: what fails here must not fail the call.
    for reference in _listeners:
        if (listener := reference()) is None:
            continue
        try:
            news(listener)
        except Exception as error:
            text = f"justafter could not record a trace or compilation: {error!r}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)


def _function_name(module_name: str) -> str:
    """`step` of the compiler's `jit(step)`."""
    return re.sub(r"^\w+\((.*)\)$", r"\1", module_name)


def trace_context() -> dict[str, Any]:
    """The settings that are part of a trace's identity, by name."""
    values = _config.trace_context()
    names = getattr(_config, "trace_context_names", None)
    if names is None or len(names()) != len(values):
        return {f"setting {i}": value for i, value in enumerate(values)}
    return dict(zip(names(), values, strict=True))


def jit_again(fun: Callable, jitted: Any) -> Any | None:
    """Jit `fun` with the options that `jitted` was made with; None if unknown."""
    again = getattr(_pjit, "_cpp_pjit", None)
    info = getattr(jitted, "_jit_info", None)
    if info is None or _parameters(again) != ("fun", "jit_info"):
        return None
    return again(fun, info)
