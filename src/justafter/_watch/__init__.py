"""watch: how often, and why, a function was traced and compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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


@overload
def watch(fn: Callable[P, R], /) -> Watched[P, R]: ...


@overload
def watch(
    fn: None = None,
    /,
    *,
    only: Fun | Sequence[Fun] | None = None,
    max_traces: int | None = None,
) -> Log: ...


def watch(
    fn: Any = None,
    /,
    *,
    only: Fun | Sequence[Fun] | None = None,
    max_traces: int | None = None,
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
        max_traces: raise :class:`RetraceError`, with the reason, in the call that
            would trace a function more often than this.

    Returns:
        `fn` itself, with a `log` attribute; or a `Log`.

    Raises:
        TypeError: `fn` or `only` is no function, or cannot carry a log.
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
        if only is not None or max_traces is not None:
            raise TypeError("watch takes a function to decorate, or options, not both")
        return _decorated(fn)
    if max_traces is not None and not (type(max_traces) is int and max_traces >= 1):
        raise ValueError(f"max_traces must be 1 or more, got {max_traces!r}")
    chosen = None
    if only is not None:
        many: Any = only if isinstance(only, Iterable) else [only]
        chosen = [only] if callable(only) else list(many)
    if chosen == []:
        raise ValueError(
            "only is empty: nothing would be counted. Leave it out to watch everything"
        )
    for one in chosen or ():
        if not callable(one):
            raise TypeError(f"watch needs functions, got {type(one).__name__} in only")
    return Log(chosen, max_traces).start()


def _decorated(fn: Any) -> Any:
    if not callable(fn):
        raise TypeError(
            f"watch needs a function, got {type(fn).__name__}. Decorate a function, or "
            "write `with watch() as log:` around the calls"
        )
    log = Log([fn])
    try:
        # Fields of a library's frozen wrapper stay, and the log is added.
        put = object.__setattr__ if _functions.is_jitted(fn) else setattr
        put(fn, "log", log)
    except AttributeError:
        raise TypeError(
            f"a {type(fn).__name__} cannot carry a log: write "
            "`with watch(only=fn) as log:` around the calls"
        ) from None
    log.start()
    return fn
