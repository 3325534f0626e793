"""What a reader passed, where a library took it apart before it came to JAX."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

import jax

from .. import _functions

Fun = Callable[..., Any]


def passed(fun: Fun) -> dict[str, Any] | None:
    """The arguments, by name, of the call that a library's wrapper is busy with.

    None where `fun` came to `jax.jit` without a wrapper, or where the wrapper is not
    one that holds what `jax.jit` gave it, and takes a call's arguments as they are.
    """
    for code, values in _wrappers():
        wrapper = values.get(code.co_varnames[0])
        if _holds(wrapper, fun):
            args, kwargs = _variadic(code, values)
            return _bound(wrapper, args, kwargs)
    return None


def _wrappers() -> Iterator[tuple[Any, dict[str, Any]]]:
    """The calls `wrapper(*args, **kwargs)` between here and the reader's own code."""
    variadic = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    frame = sys._getframe(1)
    while frame is not None and _functions.is_library(frame.f_code.co_filename):
        code = frame.f_code
        if code.co_flags & variadic == variadic and code.co_argcount == 1:
            yield code, frame.f_locals
        frame = frame.f_back  # type: ignore[assignment]


def _variadic(code: Any, values: dict[str, Any]) -> tuple[Any, Any]:
    first = code.co_argcount + code.co_kwonlyargcount
    args, kwargs = code.co_varnames[first : first + 2]
    return values[args], values[kwargs]


def _holds(wrapper: Any, fun: Fun) -> bool:
    """Whether it is a library's, and keeps the jitted `fun` among its attributes."""
    if not _functions.is_jitted(wrapper) or _functions.is_jax_jitted(wrapper):
        return False
    return any(
        _functions.is_jax_jitted(held) and getattr(held, "__wrapped__", None) is fun
        for held in getattr(wrapper, "__dict__", {}).values()
    )


def _bound(wrapper: Any, args: Any, kwargs: Any) -> dict[str, Any] | None:
    signature = _functions.signature_of(getattr(wrapper, "__wrapped__", wrapper))
    try:
        found = dict(signature.bind(*args, **kwargs).arguments)  # type: ignore[union-attr]
        named_leaves(found)
    except Exception:  # no signature, another one, or a graph with a ring in it
        return None
    return found


def joined(args: tuple[Any, ...]) -> dict[str, Any] | None:
    """The arguments, by name, of a call that is over and that Equinox took apart.

    Of such a call there is what came to JAX: the arrays of the function, of the first
    argument and of the others, and what is no array in each, with its structure.
    None where it is no such call.
    """
    try:
        *arrays, fixed = args
        held = {name: part for group in arrays for name, part in group.items()}
        of_fun, of_first, of_rest = fixed
        fun, first = _whole(held["fun"], of_fun), _whole(held["first"], of_first)
        others, named = _whole(held["rest"], of_rest)
        positional = [first, *others][:-1]  # the last one is Equinox's own
        found = inspect.signature(fun).bind(*positional, **named).arguments
        named_leaves(dict(found))
    except Exception:  # another library, or an Equinox that does it in another way
        return None
    return dict(found)


def _whole(arrays: Any, fixed: Any) -> Any:
    others, tree = fixed
    pairs = zip(arrays, others, strict=True)
    return tree.unflatten(a if b is None else b for a, b in pairs)


def named_leaves(arguments: dict[str, Any]) -> list[tuple[str, Any]]:
    """The leaves of arguments, each with its path from the argument's name on."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(arguments)
    return [
        (f"{argument.key}{jax.tree_util.keystr(tuple(path))}", leaf)
        for (argument, *path), leaf in leaves
    ]
