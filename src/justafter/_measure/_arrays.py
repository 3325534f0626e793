"""Which arrays a call leaves behind: those to wait for, and those that it changed."""

from __future__ import annotations

import functools
import types
import zlib
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from .. import _functions

# How many values are looked through, and how deep: a model's state, not the world.
_MOST, _DEEPEST = 20_000, 12


def is_concrete(value: Any) -> bool:
    """Whether a value is an array with contents."""
    return isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer)


Step = tuple[str, Any]
Path = tuple[Step, ...]


def inside(value: Any) -> Iterator[tuple[Step, Any]]:
    """Yield what an object holds, each with how to get at it."""
    if isinstance(value, Mapping):
        yield from ((("item", key), one) for key, one in list(value.items()))
    elif isinstance(value, list | tuple):
        yield from ((("item", i), one) for i, one in enumerate(value))
    elif isinstance(value, set | frozenset | deque) or is_of_objects(value):
        yield from ((("member", i), one) for i, one in enumerate(members(value)))
    elif isinstance(value, types.FunctionType):
        yield from ((("cell", name), one) for name, one in cells(value))
    elif not isinstance(value, _OPAQUE):
        yield from _attributes(value)


def _attributes(value: Any) -> Iterator[tuple[Step, Any]]:
    names: list[str] = []
    if isinstance(held := getattr(value, "__dict__", None), dict):
        names += list(held)
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names += (slots,) if isinstance(slots, str) else slots
    if isinstance(value, functools.partial):
        names += ("func", "args", "keywords")
    if isinstance(value, types.MethodType):
        names.append("__self__")
    for name in names:
        if hasattr(value, name):
            yield ("attribute", name), getattr(value, name)


def is_of_objects(value: Any) -> bool:
    """Whether a value is an array of NumPy's that holds Python objects."""
    return isinstance(value, np.ndarray) and value.dtype == object


def members(value: Any) -> list[Any]:
    """What a container without keys holds."""
    return value.ravel().tolist() if isinstance(value, np.ndarray) else list(value)


def cells(fn: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """The values that a function closes over, by name."""
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not bound yet
            continue


_OPAQUE = (
    str, bytes, int, float, complex, bool, type(None), type, types.ModuleType,
    types.BuiltinFunctionType, types.CodeType, types.FrameType, np.ndarray, np.generic,
)  # fmt: skip


def everything(value: Any) -> Iterator[tuple[Path, Any]]:
    """Yield a value and all that it holds, however deep, each with how to get at it.

    An object is looked into once, wherever else it is held.
    """
    queue: deque[tuple[Path, Any]] = deque([((), value)])
    seen: dict[int, Any] = {}  # kept alive, so that no other gets its identity
    for _ in range(_MOST):
        if not queue:
            return
        path, one = queue.popleft()
        yield path, one
        if not is_concrete(one) and id(one) not in seen and len(path) < _DEEPEST:
            seen[id(one)] = one
            queue.extend((((*path, step)), part) for step, part in inside(one))


def reach(value: Any, path: Path) -> Any:
    """Follow a path; None where it leads nowhere any more."""
    try:
        for kind, key in path:
            if kind == "item":
                value = value[key]
            elif kind == "member":
                value = members(value)[key]
            elif kind == "cell":
                value = dict(cells(value))[key]
            else:
                value = getattr(value, key)
    except (AttributeError, KeyError, IndexError, TypeError):
        return None
    return value


def state_of(fn: Any, args: Any, kwargs: Any) -> list[tuple[str, Any]]:
    """What a call can change that outlives it: its object, its closure, its arguments.

    Each with a name, to be said where it does change.
    """
    held: list[tuple[str, Any]] = []
    for _ in range(_DEEPEST):
        if _functions.is_partial(fn):
            held += [("a bound argument", (fn.args, fn.keywords))]
            fn = fn.func
        elif isinstance(fn, types.MethodType):
            held.append(("self", fn.__self__))
            fn = fn.__func__
        elif getattr(fn, "__wrapped__", None) is not None:
            fn = fn.__wrapped__
        else:
            break
    held += _closed_over(fn)
    names = (f"argument {i}" for i in range(len(args)))
    held += [*zip(names, args, strict=True), *kwargs.items()]
    return held


def _closed_over(fn: Any) -> list[tuple[str, Any]]:
    if not isinstance(fn, types.FunctionType):
        is_object = not isinstance(fn, types.BuiltinFunctionType | type)
        return [("self", fn)] if is_object else []
    names = [name for name in fn.__code__.co_names if name in fn.__globals__]
    values = [(name, fn.__globals__[name]) for name in names]
    known = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
    return [*cells(fn), *((n, v) for n, v in values if not isinstance(v, known))]


# Of NumPy's arrays, this many bytes are compared.
_COMPARED_BYTES = 1 << 24


def token(value: Any) -> Any:
    """What is compared of a value before and after a call; None for what is not."""
    if is_concrete(value):
        return value
    if isinstance(value, np.ndarray):
        is_small = value.nbytes <= _COMPARED_BYTES and not is_of_objects(value)
        return zlib.crc32(np.ascontiguousarray(value).tobytes()) if is_small else None
    if isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return type(value), repr(value)
    if isinstance(value, list | tuple | dict | set | frozenset | deque):
        return len(value)
    return None


def _is_other(before: Any, now: Any) -> bool:
    if is_concrete(now) or is_concrete(before):
        return before is not now
    return bool(before != now)


def newest(value: Any) -> Any:
    """What a container got last; None of others."""
    if isinstance(value, Mapping):
        return next(reversed(value.values()), None)  # type: ignore[call-overload]
    return value[-1] if isinstance(value, list | deque) and value else None


Change = tuple[str, Any, Path]


@dataclass
class State:
    """What a call can change that outlives it, as it was before the call."""

    roots: list[tuple[str, Any]]
    before: dict[tuple[int, Path], Any]

    @classmethod
    def of(cls, fn: Any, args: Any, kwargs: Any) -> State:
        """Take it down."""
        roots = state_of(fn, args, kwargs)
        return cls(roots, {(i, path): one for i, path, one in _tokens(roots)})

    def changed(self) -> list[Change]:
        """What is another by now: arrays, numbers, the lengths of containers.

        Of a container that has another length, only itself.
        """
        found: dict[tuple[int, Path], None] = {}
        for i, path, now in _tokens(self.roots):
            before = self.before.get((i, path))
            is_known = now is not None or is_concrete(before)
            held = any((i, path[:end]) in found for end in range(len(path)))
            if is_known and not held and _is_other(before, now):
                found[i, path] = None
        return [(*self.roots[i], path) for i, path in found]


def _tokens(roots: list[tuple[str, Any]]) -> Iterator[tuple[int, Path, Any]]:
    for i, (_, root) in enumerate(roots):
        for path, one in everything(root):
            yield i, path, token(one)
