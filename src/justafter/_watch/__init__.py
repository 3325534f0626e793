"""watch: how often, and why, a function was traced and compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from .. import _functions
from ._log import Log, RetraceError
from ._record import Compilation, Record, Trace
from ._why import Reason

__all__ = ["Compilation", "Log", "Reason", "Record", "RetraceError", "Trace", "watch"]

P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class Watched(Protocol[P, R]):
    """A function that carries its log; all else it has as before."""

    log: Log

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call it."""

    def __getattr__(self, name: str) -> Any:
        """What the function has besides, such as `lower`."""


Fun = Callable[..., Any]
Ignored = str | ModuleType | Fun


@overload
def watch(fn: Callable[P, R], /) -> Watched[P, R]: ...


@overload
def watch(
    fn: None = None,
    /,
    *,
    only: Fun | Sequence[Fun] | None = None,
    ignore: Ignored | Sequence[Ignored] = (),
    max_traces: int | None = None,
    times: bool = False,
) -> Log: ...


def watch(
    fn: Any = None,
    /,
    *,
    only: Fun | Sequence[Fun] | None = None,
    ignore: Ignored | Sequence[Ignored] = (),
    max_traces: int | None = None,
    times: bool = False,
) -> Any:
    """Count how often functions are traced and compiled, and say why.

    As a context manager, ``with watch() as log:`` counts every function that is
    traced or compiled inside, on any thread. As a call, ``log = watch()`` counts from
    here on, until ``log.stop()``. As a decorator, ``@watch`` above or below
    ``@jax.jit`` counts one function for good, in ``fn.log``.

    A decorated function comes back as the same object: a call that hits JAX's cache
    costs what it cost before. Functions may be jitted by ``jax.jit`` or by a library
    around it, such as ``equinox.filter_jit`` and ``flax.nnx.jit``.

    Args:
        fn: the function to decorate, jitted or to be jitted.
        only: count these functions and no other.
        ignore: do not count these: functions, modules, or names of modules such as
            ``"diffrax"``, with all that is in them.
        max_traces: raise :class:`RetraceError`, with the reason, in the call that
            would trace a function more often than this.
        times: show seconds in the table: of each trace, and of compiling.

    Returns:
        `fn` itself, with a `log` attribute; or a `Log`.

    Raises:
        TypeError: `fn`, `only` or `ignore` is no function, or cannot carry a log.
        ValueError: `max_traces` is no whole number of at least 1, or `only` is empty.
        RuntimeError: this version of JAX hides what is needed.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from justafter import watch
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
    if fn is not None:
        return _decorated(fn, only, ignore, max_traces)
    if max_traces is not None and not (type(max_traces) is int and max_traces >= 1):
        raise ValueError(f"max_traces must be 1 or more, got {max_traces!r}")
    return Log(
        _chosen(only), times, ignore=_ignored(ignore), max_traces=max_traces
    ).start()


def _decorated(fn: Any, only: Any, ignore: Any, max_traces: Any) -> Any:
    if not callable(fn):
        raise TypeError(
            f"watch needs a function, got {type(fn).__name__}. Decorate a function, or "
            "write `with watch() as log:` around the calls"
        )
    if only is not None or ignore != () or max_traces is not None:
        raise TypeError(
            "watch takes a function to decorate, or options such as `only`, not both"
        )
    log = Log([fn])
    try:
        _attach(fn, log)
    except AttributeError:
        raise TypeError(
            f"a {type(fn).__name__} cannot carry a log: write "
            "`with watch(only=fn) as log:` around the calls"
        ) from None
    log.start()
    return fn


def _attach(fn: Any, log: Log) -> None:
    try:
        fn.log = log
    except AttributeError:
        # A frozen wrapper of a library: its fields stay, and the log is added.
        if not _functions.is_jitted(fn):
            raise
        object.__setattr__(fn, "log", log)


def _chosen(only: Any) -> list[Fun] | None:
    if only is None:
        return None
    is_many = isinstance(only, Iterable) and not callable(only)
    functions = list(only) if is_many else [only]
    if not functions:
        raise ValueError(
            "only is empty: nothing would be counted. Leave it out to watch everything"
        )
    for fun in functions:
        if not callable(fun):
            raise TypeError(f"watch needs functions, got {type(fun).__name__} in only")
    return functions


def _ignored(ignore: Any) -> list[str | Fun]:
    items = ignore if isinstance(ignore, list | tuple | set | frozenset) else [ignore]
    found = [one.__name__ if isinstance(one, ModuleType) else one for one in items]
    for one in found:
        if not (isinstance(one, str) or callable(one)):
            kind = type(one).__name__
            raise TypeError(
                f"watch ignores functions, modules and their names, got a {kind}"
            )
    return found
