"""What a call leaves behind: arrays to wait for, and what it uses up."""

from __future__ import annotations

import functools
import inspect
import io
import operator
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter, itemgetter
from typing import Any

import jax
import numpy as np

from .. import _functions

# How many values are looked through, and how deep: a model's state, not the world.
_MOST, _DEEPEST = 20_000, 12
_CODE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
_OPAQUE = (
    *(bool, int, float, complex, str, bytes, np.generic, np.ndarray, type(None)),
    *(type, types.ModuleType, types.CodeType),
)
# What these hold is in neither their attributes nor their slots.
_HOLDS: dict[type, tuple[str, ...]] = {
    types.FunctionType: ("__closure__",),
    types.CellType: ("cell_contents",),
    functools.partial: ("func", "args", "keywords"),
    types.MethodType: ("__self__",),
    types.BuiltinMethodType: ("__self__",),
}
_COUNTED = (list, tuple, dict, set, frozenset, deque)

# How to get from a value to one inside it.
Path = tuple[Callable[[Any], Any], ...]


def is_concrete(value: Any) -> bool:
    """Whether a value is an array of JAX's with contents."""
    return isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer)


def is_lazy(value: Any) -> bool:
    """Whether a value is work still to be done; of files, those open to read alone."""
    if isinstance(value, io.IOBase):
        return not value.closed and not value.writable()
    is_async = inspect.iscoroutine(value) or inspect.isasyncgen(value)
    return is_async or isinstance(value, Iterator)


def _inside(value: Any) -> Iterator[Callable[[Any], Any]]:
    """How to get each value that an object holds."""
    if isinstance(value, Mapping):
        yield from map(itemgetter, list(value))
    elif isinstance(value, list | tuple | deque):
        yield from map(itemgetter, range(len(value)))
    elif isinstance(value, set | frozenset):
        yield list
    elif not isinstance(value, _OPAQUE):
        names = list(getattr(value, "__dict__", ()))
        for kind in type(value).__mro__:
            slots = kind.__dict__.get("__slots__", _HOLDS.get(kind, ()))
            names += (slots,) if isinstance(slots, str) else slots
        yield from map(attrgetter, names)


def reach(value: Any, path: Path) -> Any:
    """Follow a path; None where it leads nowhere any more."""
    try:
        for step in path:
            value = step(value)
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


def _roots(fn: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """What a call can change that outlives it, by the names that a reader knows.

    Its arguments, its object, and the variables of other scopes that it names.
    """
    found: dict[str, Any] = {f"argument {i}": one for i, one in enumerate(args)}
    found |= kwargs
    for layer in _functions.layers(fn):
        if isinstance(layer, functools.partial):
            found["a bound argument"] = (layer.args, layer.keywords)
        elif isinstance(layer, types.FunctionType):
            code, known = layer.__code__, layer.__globals__
            cells = zip(code.co_freevars, layer.__closure__ or (), strict=True)
            found |= {k: reach(c, (attrgetter("cell_contents"),)) for k, c in cells}
            named = {k: known[k] for k in code.co_names if k in known}
            found |= {k: v for k, v in named.items() if not isinstance(v, _CODE)}
        elif isinstance(layer, types.MethodType | types.BuiltinMethodType):
            found["self"] = layer.__self__
        elif not _functions.is_jitted(layer) and not isinstance(layer, _CODE):
            found["self"] = layer
    return found


def _left(value: Any) -> int | None:
    """How much a container or an iterator still has, as far as it says."""
    if isinstance(value, _COUNTED):
        return len(value)
    if isinstance(value, io.IOBase):
        return _to_read(value)
    if inspect.isgenerator(value):
        return int(value.gi_frame is not None)
    return operator.length_hint(value, 1) if is_lazy(value) else None


def _to_read(file: Any) -> int | None:
    """How much is left in a file that is read, counted from its place."""
    try:
        if isinstance(file, io.BytesIO | io.StringIO):
            return len(file.getvalue()) - file.tell()
        return sys.maxsize - file.tell() if is_lazy(file) else None
    except (OSError, ValueError):  # closed, or without a place
        return None


class State:
    """What a call can change that outlives it, as it was before the call."""

    def __init__(self, fn: Any, args: Any, kwargs: Any) -> None:
        self._roots = _roots(fn, args, kwargs)
        self._arrays: list[tuple[Callable[[], Any], Any]] = []
        self._sizes: list[tuple[str, Any, int]] = []
        for name, root in self._roots.items():
            for path, one in everything(root):
                if is_concrete(one):
                    get = functools.partial(reach, root, path)
                    self._arrays.append((get, one))
                elif path and isinstance(one, io.IOBase):
                    continue  # of an object, which may look for its own place
                elif (size := _left(one)) is not None:
                    self._sizes.append((name, one, size))

    def refuse_use(self) -> None:
        """Raise a ValueError if the call used something up: the next is another."""
        for name, value, before in self._sizes:
            if (_left(value) or 0) < before:
                raise ValueError(
                    f"a call uses up {name}, so the next call would find less in it. "
                    "Make it anew in each call, as in measure(lambda: f(list(items)))"
                )

    def arrays(self) -> list[Any]:
        """All arrays that the call can have left behind."""
        roots = self._roots.values()
        return [
            one for root in roots for _, one in everything(root) if is_concrete(one)
        ]

    def replaced(self) -> list[Callable[[], Any]]:
        """How to get each array that the call put in the place of another."""
        return [get for get, old in self._arrays if get() is not old]
