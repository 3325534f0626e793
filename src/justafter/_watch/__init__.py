"""watch: how often, and why, a function was traced and compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ._log import Log, RetraceError
from ._record import Compilation, Record, Trace
from ._why import Reason

__all__ = ["Compilation", "Log", "Reason", "Record", "RetraceError", "Trace", "watch"]

Fun = Callable[..., Any]


def watch(
    *, only: Fun | Sequence[Fun] | None = None, max_traces: int | None = None
) -> Log:
    """Count how often functions are traced and compiled, and say why.

    ``with watch() as log:`` counts your jitted functions that are traced or compiled
    inside, on any thread; ``log = watch()`` counts from here on, until ``log.stop()``.
    A call that hits JAX's cache does not reach the log. Functions may be jitted by
    ``jax.jit`` or by a library around it, such as ``equinox.filter_jit`` and
    ``flax.nnx.jit``.

    Args:
        only: count these functions and no other.
        max_traces: raise :class:`RetraceError`, with the reason, in the call that
            would trace a function more often than this; not for those that a library
            jits inside, unless `only` names them.

    Raises:
        TypeError: `only` is no function.
        ValueError: `max_traces` is no whole number of at least 1.
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
    if max_traces is not None and not (type(max_traces) is int and max_traces >= 1):
        raise ValueError(f"max_traces must be 1 or more, got {max_traces!r}")
    if only is None:
        return Log(None, max_traces).start()
    several = only if isinstance(only, Iterable) else ()
    chosen = [only] if callable(only) else list(several)
    if not chosen or not all(map(callable, chosen)):
        raise TypeError(f"only must be a function or several, got {only!r}")
    return Log(chosen, max_traces).start()
