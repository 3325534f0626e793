"""Traces and compiles a function, once, without running it."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from .. import _internals
from .._functions import is_jax_jitted, is_jitted, name_of, signature_of, unbound
from .._internals import _equations
from ._model import Costs

Names = str | Sequence[str] | None
Numbers = int | Sequence[int] | None

# What jax.jit takes as an argument without being told that it is static.
_DYNAMIC = (jax.Array, jax.ShapeDtypeStruct, np.ndarray, np.generic, bool, int, float)


@dataclass(frozen=True)
class Program:
    """A function as JAX traced it and XLA compiled it.

    Attributes:
        name: the function's name.
        jaxpr: as JAX traced it.
        numbered: what knows the equations' numbers in the HLO, or None.
        hlo: the optimized HLO's text, with the numbers.
        lowered: what was compiled; its text is StableHLO.
        costs: XLA's estimate.
        platform: the platform that it was compiled for.
        call: runs the compiled program, with the arguments that the function takes.
        library: the library that jitted the function, or an empty text.
    """

    name: str
    jaxpr: Any
    numbered: _equations.Numbered | None
    hlo: str
    lowered: Any
    costs: Costs
    platform: str
    call: Callable[..., Any] = field(repr=False)
    library: str = ""


def check(fn: Any, args: Any, kwargs: Any, nums: Numbers, names: Names) -> None:
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


def check_fit(fn: Any, args: Any, kwargs: Any) -> None:
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


def check_text(fn: Any, args: Any, kwargs: Any, nums: Numbers, names: Names) -> None:
    """Refuse strings that are not named as static: JAX cannot trace them."""
    for label, value in dynamic(fn, args, kwargs, nums, names):
        if any(isinstance(leaf, str) for leaf in jax.tree.leaves(value)):
            raise TypeError(
                f"lens: argument {label!r} holds a string, which JAX cannot trace. "
                f"If it is a setting, write lens(..., static_argnames={label!r})."
            )


def dynamic(
    fn: Any, args: Any, kwargs: Any, nums: Numbers, names: Names
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


def _is_static_leaf(leaf: Any) -> bool:
    """Whether a part of an argument, such as a layer's activation, is no array."""
    is_array = isinstance(leaf, (*_DYNAMIC, complex)) or hasattr(leaf, "__jax_array__")
    return not is_array and (callable(leaf) or not hasattr(leaf, "shape"))


class Opened:
    """Arguments with their arrays taken out, so that the rest may be anything.

    Modules of libraries hold functions and settings beside their arrays; they are
    put back while the function is traced.
    """

    def __init__(self, args: Any, kwargs: Any) -> None:
        self.leaves, self.tree = jax.tree.flatten((args, kwargs))
        self.static = [_is_static_leaf(leaf) for leaf in self.leaves]

    @property
    def is_needed(self) -> bool:
        """Whether there is anything but arrays."""
        return any(self.static)

    def arrays(self, args: Any, kwargs: Any) -> list[Any]:
        """The arrays of arguments of this structure."""
        tree: Any = self.tree
        leaves = tree.flatten_up_to((args, kwargs))
        pairs = zip(leaves, self.static, strict=True)
        return [leaf for leaf, is_static in pairs if not is_static]

    def closed(self, arrays: list[Any]) -> tuple[Any, Any]:
        """The arguments with other arrays in the places of theirs."""
        given = iter(arrays)
        pairs = zip(self.leaves, self.static, strict=True)
        leaves = [leaf if is_static else next(given) for leaf, is_static in pairs]
        args, kwargs = jax.tree.unflatten(self.tree, leaves)
        return args, kwargs


def fresh(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function, so that JAX shows no older trace of it.

    JAX keeps traces by function, and would show an old one after a global that the
    function reads has changed.
    """

    @functools.wraps(fn, updated=())
    def again(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    again.__name__ = name_of(fn)
    return again


def compile_program(
    fn: Callable[..., Any], args: Any, kwargs: Any, nums: Numbers, names: Names
) -> Program:
    """Trace, lower and compile; errors of the user's function pass unchanged."""
    jitted, given, adapt = _jitted(fn, args, kwargs, nums, names)
    traced = jitted.trace(*given[0], **given[1])
    numbered = _equations.Numbered.of(traced)
    lowered = (numbered.traced if numbered else traced).lower()
    with _internals.without_persistent_cache():
        start = time.perf_counter()
        compiled = lowered.compile()
        seconds = time.perf_counter() - start

    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = adapt(args, kwargs)
        return compiled(*args, **kwargs)

    return Program(
        name=name_of(fn),
        jaxpr=traced.jaxpr,
        numbered=numbered,
        hlo=compiled.as_text() or "",
        lowered=lowered,
        costs=costs(compiled, seconds),
        platform=_platform(compiled),
        call=call,
        library=type(fn).__module__.partition(".")[0] if _is_foreign(fn) else "",
    )


Adapt = Callable[[Any, Any], tuple[Any, Any]]


def _is_foreign(fn: Any) -> bool:
    """Whether a library around `jax.jit` jitted a function."""
    return is_jitted(fn) and not (is_jax_jitted(fn) and hasattr(fn, "trace"))


def _jitted(
    fn: Any, args: Any, kwargs: Any, nums: Numbers, names: Names
) -> tuple[Any, tuple[Any, Any], Adapt]:
    """A jit of a function, its arguments, and how others are passed to what it gives.

    What a library jitted is traced through that library's jit, as a function that
    calls it would be: so nothing of JAX's has to be changed to see it.
    """
    fn, args = unbound(fn, args)
    if is_jitted(fn) and not _is_foreign(fn):
        return fn, (args, kwargs), _dynamic_only(fn)
    opened = Opened(args, kwargs)
    if nums is None and names is None and (opened.is_needed or is_jitted(fn)):

        def inner(arrays: list[Any]) -> Any:
            args, kwargs = opened.closed(arrays)
            result = fn(*args, **kwargs)
            # Objects of libraries may have changed: what is new in them is a result.
            after = opened.arrays(args, kwargs)
            changed = [b for a, b in zip(arrays, after, strict=True) if a is not b]
            return (result, changed) if changed else result

        inner.__signature__ = inspect.signature(inner)  # type: ignore[attr-defined]
        functools.update_wrapper(inner, fn, updated=())
        inner.__name__ = name_of(fn)
        arrays = opened.arrays(args, kwargs)
        return (
            jax.jit(inner),
            ((arrays,), {}),
            lambda a, k: ((opened.arrays(a, k),), {}),
        )
    jitted = jax.jit(fresh(fn), static_argnums=nums, static_argnames=names)
    return jitted, (args, kwargs), _dynamic_only(jitted)


def _dynamic_only(jitted: Any) -> Adapt:
    """Leave out the static arguments, as compiled programs of `jax.jit` want it."""
    info = getattr(jitted, "_jit_info", None)
    nums = set(getattr(info, "static_argnums", ()))
    names = set(getattr(info, "static_argnames", ()))

    def adapt(args: Any, kwargs: Any) -> tuple[Any, Any]:
        places = {n % len(args) for n in nums if -len(args) <= n < len(args)}
        kept = tuple(arg for i, arg in enumerate(args) if i not in places)
        return kept, {k: v for k, v in kwargs.items() if k not in names}

    return adapt


def _platform(compiled: Any) -> str:
    try:
        shardings = jax.tree.leaves(
            (compiled.input_shardings, compiled.output_shardings)
        )
        (device, *_) = shardings[0].device_set
        return str(device.platform)
    except (AttributeError, IndexError, RuntimeError, ValueError):
        return jax.default_backend()


def costs(compiled: Any, seconds: float) -> Costs:
    """Collect what XLA says a call costs."""
    report = compiled.cost_analysis() or {}
    if isinstance(report, (list, tuple)):
        report = report[0] if report else {}
    memory = compiled.memory_analysis()

    def figure(key: str) -> float | None:
        # XLA leaves out what is zero, and writes -1 for what it cannot know.
        value = report.get(key, 0.0 if report else None)
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
