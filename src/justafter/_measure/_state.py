"""What a call leaves behind: arrays to wait for, and state that it changed."""

from __future__ import annotations

import functools
import inspect
import io
import operator
import types
import zlib
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

# How many values are looked through, and how deep: a model's state, not the world.
_MOST, _DEEPEST = 20_000, 12
# Of NumPy's arrays, this many bytes are compared.
_COMPARED_BYTES = 1 << 24
_OPAQUE = (
    str, bytes, int, float, complex, bool, type(None), type, types.ModuleType,
    types.CodeType, types.FrameType, np.ndarray, np.generic,
)  # fmt: skip

Path = tuple[tuple[str, Any], ...]


def is_concrete(value: Any) -> bool:
    """Whether a value is an array of JAX's with contents."""
    return isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer)


def is_lazy(value: Any) -> bool:
    """Whether a value is work that is still to be done; a file is none."""
    if inspect.iscoroutine(value) or inspect.isasyncgen(value):
        return True
    return isinstance(value, Iterator) and not isinstance(value, io.IOBase)


def _inside(value: Any) -> Iterator[tuple[str, Any]]:
    """How to get at what an object holds: by item, by place, by cell, by attribute."""
    if isinstance(value, Mapping):
        yield from (("item", key) for key in list(value))
    elif isinstance(value, list | tuple | deque):
        yield from (("item", i) for i in range(len(value)))
    elif isinstance(value, set | frozenset):
        yield from (("member", i) for i in range(len(value)))
    elif isinstance(value, types.FunctionType):
        yield from (("cell", i) for i in range(len(value.__closure__ or ())))
    elif isinstance(value, functools.partial):
        yield from (("attribute", name) for name in ("func", "args", "keywords"))
    elif isinstance(value, types.MethodType | types.BuiltinMethodType):
        yield "attribute", "__self__"
    elif not isinstance(value, _OPAQUE):
        held = getattr(value, "__dict__", None)
        names = list(held) if isinstance(held, dict) else []
        for kind in type(value).__mro__:
            slots = kind.__dict__.get("__slots__", ())
            names += (slots,) if isinstance(slots, str) else slots
        yield from (("attribute", name) for name in names)


def _step(value: Any, kind: str, key: Any) -> Any:
    if kind == "item":
        return value[key]
    if kind == "member":
        return list(value)[key]
    if kind == "cell":
        return value.__closure__[key].cell_contents
    return getattr(value, key)


def reach(value: Any, path: Path) -> Any:
    """Follow a path; None where it leads nowhere any more."""
    try:
        for kind, key in path:
            value = _step(value, kind, key)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError):
        return None
    return value


def everything(value: Any) -> Iterator[tuple[Path, Any]]:
    """Yield a value and all that it holds, each with how to get at it.

    An object is looked into once, wherever else it is held.
    """
    queue: deque[tuple[Path, Any]] = deque([((), value)])
    seen: dict[int, Any] = {}  # kept alive, so that no other gets its identity
    for _ in range(_MOST):
        if not queue:
            return
        path, one = queue.popleft()
        yield path, one
        if is_concrete(one) or id(one) in seen or len(path) >= _DEEPEST:
            continue
        seen[id(one)] = one
        for step in _inside(one):
            part = reach(one, (step,))
            if part is not None:
                queue.append(((*path, step), part))


def roots(fn: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """What a call can change that outlives it: its object, its closure, its arguments.

    By the names by which a reader knows them.
    """
    found: dict[str, Any] = {f"argument {i}": one for i, one in enumerate(args)}
    found |= kwargs
    for _ in range(_DEEPEST):
        if isinstance(fn, functools.partial):
            found["a bound argument"] = (fn.args, fn.keywords)
            fn = fn.func
        elif isinstance(fn, types.MethodType):
            found["self"] = fn.__self__
            fn = fn.__func__
        elif getattr(fn, "__wrapped__", None) is not None:
            fn = fn.__wrapped__
        else:
            break
    if isinstance(fn, types.FunctionType):
        found |= _closed_over(fn)
    elif isinstance(fn, types.BuiltinMethodType):
        if not isinstance(fn.__self__, types.ModuleType):
            found["self"] = fn.__self__
    elif not isinstance(fn, type):
        found["self"] = fn
    return found


def _closed_over(fn: types.FunctionType) -> dict[str, Any]:
    cells = zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)
    found = {
        name: reach(cell, (("attribute", "cell_contents"),)) for name, cell in cells
    }
    known = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
    for name in fn.__code__.co_names:
        value = fn.__globals__.get(name)
        if value is not None and not isinstance(value, known):
            found[name] = value
    return found


def _token(value: Any) -> Any:
    """What is compared of a value before and after a call; None for what is not."""
    if is_concrete(value):
        return id(value)
    if isinstance(value, np.ndarray):
        is_small = value.nbytes <= _COMPARED_BYTES and value.dtype != object
        return zlib.crc32(np.ascontiguousarray(value).tobytes()) if is_small else None
    if isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return type(value), repr(value)
    if isinstance(value, list | tuple | dict | set | frozenset | deque):
        return len(value)
    return _left(value) if is_lazy(value) else None


def _left(value: Any) -> int | None:
    """How much an iterator still has, as far as it says; a finished generator none."""
    if inspect.isgenerator(value):
        return 0 if value.gi_frame is None else 1
    try:
        return operator.length_hint(value, 1)
    except Exception:  # an iterator of a library's that fails to say
        return 1


class State:
    """What a call can change that outlives it, as it was before the call."""

    def __init__(self, fn: Any, args: Any, kwargs: Any) -> None:
        self.roots = roots(fn, args, kwargs)
        self._kept: list[Any] = []  # so that no other array gets an old one's identity
        self._before = self._tokens()

    def _tokens(self) -> dict[tuple[str, Path], Any]:
        found = {}
        for name, root in self.roots.items():
            for path, one in everything(root):
                self._kept.append(one)
                found[name, path] = _token(one)
        return found

    def changed(self) -> list[tuple[str, Path]]:
        """What is another by now: arrays, numbers, the lengths of containers.

        Of a container that has another length, only itself.

        Raises:
            ValueError: the call used something up: the next one is another call.
        """
        found: dict[tuple[str, Path], None] = {}
        for (name, path), now in self._tokens().items():
            before = self._before.get((name, path))
            if now == before or any(
                (name, path[:i]) in found for i in range(len(path))
            ):
                continue
            found[name, path] = None
            value = reach(self.roots[name], path)
            is_counted = isinstance(value, list | dict | set | deque) or is_lazy(value)
            if is_counted and before is not None and now < before:
                raise ValueError(
                    f"a call uses up {described(name, path)}: the next one would be "
                    "another call. Make it anew in each, such as "
                    "measure(lambda: f(list(items)))"
                )
        return list(found)


def described(name: str, path: Path) -> str:
    """A place in words, such as ``self.state``."""
    parts = (
        f".{key}" if kind == "attribute" else f"[{key!r}]" if kind == "item" else ""
        for kind, key in path[:2]
    )
    return name + "".join(parts)
