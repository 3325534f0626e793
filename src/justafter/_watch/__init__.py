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

    ``with watch() as log:`` counts every function that is traced or compiled inside,
    on any thread; ``log = watch()`` counts from here on, until ``log.stop()``. A call
    that hits JAX's cache costs what it cost before. Functions may be jitted by
    ``jax.jit`` or by a library around it, such as ``equinox.filter_jit`` and
    ``flax.nnx.jit``.

    Args:
        only: count these functions and no other.
        max_traces: raise :class:`RetraceError`, with the reason, in the call that
            would trace a function more often than this.

    Raises:
        TypeError: `only` is no function.
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
