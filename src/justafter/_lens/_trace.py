"""Traces and compiles a function, once, without running it."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from .._functions import is_jax_jitted, is_jitted, name_of, unbound
from .._internals import _equations, _stages
from ._model import Costs

_SCALARS = (bool, int, float, complex)
# What jax.jit takes as an argument without being told that it is static.
_DYNAMIC = (jax.Array, jax.ShapeDtypeStruct, np.ndarray, np.generic, *_SCALARS)
# How a call's arguments become those of a jit.
Adapt = Callable[[Any, Any], tuple[Any, Any]]


@dataclass(frozen=True)
class Program:
    """A function as JAX traced it and XLA compiled it."""

    name: str
    traced: Any  # as JAX traced it, without the numbers
    numbered: _equations.Numbered  # what knows the equations' numbers in the HLO
    hlo: str  # the optimized HLO's text, with the numbers
    lowered: frozenset[int]  # the equations that JAX lowered to an operation
    costs: Costs  # its memory and compile time
    platform: str
    # Runs it, with the arguments that the function takes.
    call: Callable[..., Any] = field(repr=False)
    library: str = ""  # that jitted the function


def compile_program(fn: Any, args: Any, kwargs: Any) -> Program:
    """Trace, lower and compile; errors of the user's function pass unchanged."""
    if not callable(fn):
        raise TypeError(
            f"lens needs a function and its arguments, but got {type(fn).__name__}. "
            "Write lens(fn, x), not lens(fn(x))."
        )
    plain, held = unbound(fn, ())
    jitted, adapt_all = _jitted(plain, (*held, *args), kwargs)

    def adapt(args: Any, kwargs: Any) -> tuple[Any, Any]:
        return adapt_all((*held, *args), kwargs)

    inputs, named = adapt(args, kwargs)
    traced = jitted.trace(*inputs, **named)
    numbered = _equations.Numbered.of(traced)
    lowered = numbered.traced.lower()
    with _stages.without_persistent_cache():
        start = time.perf_counter()
        compiled = lowered.compile()
        seconds = time.perf_counter() - start

    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = _dynamic_only(jitted, *adapt(args, kwargs))
        return compiled(*args, **kwargs)

    shardings = jax.tree.leaves((compiled.input_shardings, compiled.output_shardings))
    devices = [one for sharding in shardings[:1] for one in sharding.device_set]
    temporary = getattr(compiled.memory_analysis(), "temp_size_in_bytes", None)
    return Program(
        name=name_of(fn),
        traced=traced,
        numbered=numbered,
        hlo=compiled.as_text() or "",
        lowered=frozenset(_equations.tags(lowered.as_text(debug_info=True))),
        costs=Costs(temp_bytes=temporary, compile_seconds=seconds),
        platform=devices[0].platform if devices else jax.default_backend(),
        call=call,
        library=type(plain).__module__.partition(".")[0] if _is_foreign(plain) else "",
    )


def _is_foreign(fn: Any) -> bool:
    """Whether a library around `jax.jit` jitted a function."""
    return is_jitted(fn) and not (is_jax_jitted(fn) and hasattr(fn, "trace"))


def _jitted(fn: Any, args: Any, kwargs: Any) -> tuple[Any, Adapt]:
    """A jit of a function, and how the function's arguments are passed to it.

    What a library jitted is traced through that library's jit, as a function that
    calls it would be: so nothing of JAX's has to be changed to see it.
    """
    if is_jitted(fn) and not _is_foreign(fn):
        return fn, lambda args, kwargs: (args, kwargs)
    leaves, tree = jax.tree.flatten((args, kwargs))
    is_static = list(map(_is_static, leaves))
    if any(is_static) or is_jitted(fn):
        if not is_jitted(fn) or type(fn).__module__.startswith("equinox."):
            # As in `equinox.filter_jit`: a model's rates and flags are Python's.
            is_static = [_is_static(one) or type(one) in _SCALARS for one in leaves]
        return _closed(fn, leaves, tree, is_static)

    # JAX keeps traces by function, and would show an old one after a global that the
    # function reads has changed.
    def again(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    functools.update_wrapper(again, fn, updated=())
    again.__name__ = name_of(fn)
    return jax.jit(again), lambda args, kwargs: (args, kwargs)


def _is_static(leaf: Any) -> bool:
    """Whether a part of an argument, such as a layer's activation, is no array."""
    is_array = isinstance(leaf, _DYNAMIC) or hasattr(leaf, "__jax_array__")
    return not is_array and (callable(leaf) or not hasattr(leaf, "shape"))


def _closed(
    fn: Any, leaves: list[Any], tree: Any, is_static: list[bool]
) -> tuple[Any, Adapt]:
    """A jit of the arrays among a function's arguments; the rest is as it is.

    Modules of libraries hold functions and settings beside their arrays; they are
    put back while the function is traced.
    """

    def arrays_of(args: Any, kwargs: Any) -> list[Any]:
        pairs = zip(tree.flatten_up_to((args, kwargs)), is_static, strict=True)
        return [leaf for leaf, static in pairs if not static]

    def inner(arrays: list[Any]) -> Any:
        values = iter(arrays)
        pairs = zip(leaves, is_static, strict=True)
        whole = [leaf if static else next(values) for leaf, static in pairs]
        args, kwargs = jax.tree.unflatten(tree, whole)
        result = fn(*args, **kwargs)
        # Objects of libraries may have changed: what is new in them is a result.
        after = arrays_of(args, kwargs)
        changed = [b for a, b in zip(arrays, after, strict=True) if a is not b]
        # A model that is a result holds what is no array as well.
        returned: Any = (result, changed) if changed else result
        kept = [one for one in jax.tree.leaves(returned) if not _is_static(one)]
        return returned if len(kept) == len(jax.tree.leaves(returned)) else kept

    inner.__signature__ = inspect.signature(inner)  # type: ignore[attr-defined]
    functools.update_wrapper(inner, fn, updated=())
    inner.__name__ = name_of(fn)
    return jax.jit(inner), lambda args, kwargs: ((arrays_of(args, kwargs),), {})


def _dynamic_only(jitted: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Leave out the static arguments, as compiled programs of `jax.jit` want it."""
    info = jitted._jit_info
    places = {n % len(args) for n in info.static_argnums if -len(args) <= n < len(args)}
    kept = tuple(arg for i, arg in enumerate(args) if i not in places)
    return kept, {k: v for k, v in kwargs.items() if k not in info.static_argnames}
