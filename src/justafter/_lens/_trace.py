"""Traces and compiles a function, once, without running it."""

import functools
import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from .._internals import _equations as _internals
from ._model import Costs

Names = str | Sequence[str] | None
Numbers = int | Sequence[int] | None


@dataclass(frozen=True)
class Program:
    """A function as JAX traced it and XLA compiled it."""

    name: str
    jaxpr: Any
    hlo: str
    costs: Costs
    is_tagged: bool
    platform: str


def check(fn: Any, args: tuple, kwargs: dict, nums: Numbers, names: Names) -> None:
    """Refuse what cannot work, with what to do instead.

    Raises:
        TypeError: ``fn`` is not callable, the arguments do not fit it, or static
            arguments are named for a function that is already jitted.
    """
    if not callable(fn):
        raise TypeError(
            f"lens needs a function and its arguments, but got {type(fn).__name__}. "
            "Write lens(fn, x), not lens(fn(x))."
        )
    is_static = nums is not None or names is not None
    if is_jitted(fn) and is_static:
        raise TypeError(
            "lens: this function is already jitted and has its own static arguments. "
            "Drop static_argnums and static_argnames here."
        )
    check_fit(fn, args, kwargs)
    if not is_jitted(fn):
        check_text(fn, args, kwargs, nums, names)


def check_fit(fn: Any, args: tuple, kwargs: dict) -> None:
    """Refuse arguments that the function's signature does not take."""
    signature = signature_of(fn)
    if signature is None:
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        name = name_of(fn)
        raise TypeError(
            f"lens: the arguments do not fit {name}{signature}: {error}. "
            f"Pass to lens what you would pass to {name}."
        ) from None


def check_text(fn: Any, args: tuple, kwargs: dict, nums: Numbers, names: Names) -> None:
    """Refuse strings that are not named as static: JAX cannot trace them."""
    for label, value in dynamic(fn, args, kwargs, nums, names):
        if any(isinstance(leaf, str) for leaf in jax.tree.leaves(value)):
            raise TypeError(
                f"lens: argument {label!r} holds a string, which JAX cannot trace. "
                f"If it is a setting, write lens(..., static_argnames={label!r})."
            )


def dynamic(
    fn: Any, args: tuple, kwargs: dict, nums: Numbers, names: Names
) -> Iterator[tuple[str, Any]]:
    """Yield the arguments that are not static: name and value."""
    fixed = {names} if isinstance(names, str) else set(names or ())
    places = {nums} if isinstance(nums, int) else set(nums or ())
    places |= {place + len(args) for place in places if place < 0}
    signature = signature_of(fn)
    labels = list(signature.parameters) if signature else []
    for place, value in enumerate(args):
        label = labels[place] if place < len(labels) else str(place)
        if place not in places and label not in fixed:
            yield label, value
    positions = {label: place for place, label in enumerate(labels)}
    for label, value in kwargs.items():
        if label not in fixed and positions.get(label) not in places:
            yield label, value


def signature_of(fn: Any) -> inspect.Signature | None:
    """Give a callable's signature, or None for one that has none."""
    try:
        return inspect.signature(fn)
    except (TypeError, ValueError):
        return None


def is_jitted(fn: Any) -> bool:
    """Say whether a callable can trace and lower itself."""
    return hasattr(fn, "trace") and hasattr(fn, "lower")


def name_of(fn: Any) -> str:
    """Find a name for a callable."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    return getattr(fn, "__name__", None) or type(fn).__name__


def jitted(fn: Callable[..., Any], nums: Numbers, names: Names) -> Any:
    """Jit a function, unless it is."""
    if is_jitted(fn):
        return fn

    # A fresh function: JAX keeps traces by function, and would show an old one
    # after a global that it reads has changed.
    @functools.wraps(fn, updated=())
    def fresh(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    fresh.__name__ = fresh.__qualname__ = name_of(fn)
    return jax.jit(fresh, static_argnums=nums, static_argnames=names)


def compile_program(
    fn: Callable[..., Any], args: tuple, kwargs: dict, nums: Numbers, names: Names
) -> Program:
    """Trace, lower and compile; errors of the user's function pass unchanged."""
    traced = jitted(fn, nums, names).trace(*args, **kwargs)
    twin = _internals.tagged(traced)
    lowered = (twin or traced).lower()
    start = time.perf_counter()
    compiled = lowered.compile()
    seconds = time.perf_counter() - start
    hlo = compiled.as_text() or ""
    return Program(
        name=name_of(fn),
        jaxpr=(twin or traced).jaxpr,
        hlo=hlo,
        costs=costs(compiled, seconds),
        is_tagged=twin is not None,
        platform=jax.default_backend(),
    )


def costs(compiled: Any, seconds: float) -> Costs:
    """Collect what XLA says a call costs."""
    report = compiled.cost_analysis() or {}
    if isinstance(report, (list, tuple)):
        report = report[0] if report else {}
    memory = compiled.memory_analysis()

    def figure(key: str) -> float | None:
        value = report.get(key)
        return None if value is None or value < 0 else float(value)

    def size(key: str) -> int | None:
        return getattr(memory, key, None)

    return Costs(
        flops=figure("flops"),
        bytes_accessed=figure("bytes accessed"),
        transcendentals=figure("transcendentals"),
        argument_bytes=size("argument_size_in_bytes"),
        output_bytes=size("output_size_in_bytes"),
        temp_bytes=size("temp_size_in_bytes"),
        compile_seconds=seconds,
    )
