"""What a call leaves behind: arrays to wait for, and state that it changed."""

from __future__ import annotations

import functools
import inspect
import io
import operator
import types
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter, itemgetter
from typing import Any

import jax
import numpy as np

from .. import _functions

# How many values are looked through, and how deep: a model's state, not the world.
_MOST, _DEEPEST = 20_000, 12
# Of NumPy's arrays, this many bytes are compared.
_COMPARED_BYTES = 1 << 24
_SCALARS = (bool, int, float, complex, str, bytes, np.generic)
_CODE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
_OPAQUE = (*_SCALARS, type(None), type, types.ModuleType, types.CodeType, np.ndarray)
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
    """Whether a value is work that is still to be done; a file is not."""
    if inspect.iscoroutine(value) or inspect.isasyncgen(value):
        return True
    return isinstance(value, Iterator) and not isinstance(value, io.IOBase)


def _inside(value: Any) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """What an object holds: how each part is written, and how to get it."""
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", itemgetter(key)) for key in list(value))
    elif isinstance(value, list | tuple | deque):
        yield from ((f"[{i}]", itemgetter(i)) for i in range(len(value)))
    elif isinstance(value, set | frozenset):
        yield "{}", list
    elif not isinstance(value, _OPAQUE):
        names = list(getattr(value, "__dict__", ()))
        for kind in type(value).__mro__:
            slots = kind.__dict__.get("__slots__", _HOLDS.get(kind, ()))
            names += (slots,) if isinstance(slots, str) else slots
        yield from ((f".{name}", attrgetter(name)) for name in names)


def reach(value: Any, path: Path) -> Any:
    """Follow a path; None where it leads nowhere any more."""
    try:
        for step in path:
            value = step(value)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError):
        return None
    return value


def everything(value: Any, name: str = "") -> Iterator[tuple[str, Path, Any]]:
    """Yield a value and all that it holds, each with its name and how to get at it.

    An object is looked into once, wherever else it is held.
    """
    queue: deque[tuple[str, Path, Any]] = deque([(name, (), value)])
    seen: dict[int, Any] = {}  # kept alive, so that no other gets its identity
    for _ in range(_MOST):
        if not queue:
            return
        name, path, one = queue.popleft()
        yield name, path, one
        if is_concrete(one) or id(one) in seen or len(path) >= _DEEPEST:
            continue
        seen[id(one)] = one
        for label, step in _inside(one):
            part = reach(one, (step,))
            if part is not None:
                queue.append((name + label, (*path, step), part))


def is_of(name: str, others: Iterable[str]) -> bool:
    """Whether a name is one of others, or of a part of one.

    >>> is_of("rows[0].x", ["rows"]), is_of("rows2", ["rows"])
    (True, False)
    """
    return any(name == one or name.startswith((f"{one}.", f"{one}[")) for one in others)


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


def _token(value: Any) -> Any:
    """What is compared of a value before and after a call; None for what is not."""
    if is_concrete(value):
        return id(value)
    if isinstance(value, np.ndarray):
        is_small = value.nbytes <= _COMPARED_BYTES and value.dtype != object
        return zlib.crc32(np.ascontiguousarray(value).tobytes()) if is_small else None
    if isinstance(value, _SCALARS):
        return type(value), repr(value)
    if isinstance(value, _COUNTED):
        return len(value)
    if inspect.isgenerator(value):
        return 0 if value.gi_frame is None else 1
    # How much an iterator still has, as far as it says.
    return operator.length_hint(value, 1) if is_lazy(value) else None


class State:
    """What a call can change that outlives it, as it was before the call."""

    def __init__(self, fn: Any, args: Any, kwargs: Any) -> None:
        self._roots = _roots(fn, args, kwargs)
        # The values stay alive, so that no other array gets an old one's identity.
        self._before = {name: (_token(one), one) for name, _, one in self._all()}

    def _all(self) -> Iterator[tuple[str, Callable[[], Any], Any]]:
        """Each value: its name, how to get it again, and itself."""
        for name, root in self._roots.items():
            for label, path, one in everything(root, name):
                yield label, functools.partial(reach, root, path), one

    def changed(self) -> dict[str, tuple[Callable[[], Any], bool]]:
        """What is another by now: arrays, numbers, the lengths of containers.

        Of a container that has another length, only itself.

        Returns:
            How to get each value again, by name, and whether it is an equal array, as
            Flax NNX puts into a model that a call only reads.

        Raises:
            ValueError: the call used something up: the next one is another call.
        """
        found: dict[str, tuple[Callable[[], Any], bool]] = {}
        for name, get, value in self._all():
            before, old = self._before.get(name, (None, None))
            now = _token(value)
            if now == before or is_of(name, found):
                continue
            found[name] = get, _is_equal(old, value)
            is_counted = isinstance(value, _COUNTED) or is_lazy(value)
            if is_counted and before is not None and now < before:
                raise ValueError(
                    f"a call uses up {name}: the next one would be another call. Make "
                    "it anew in each, such as measure(lambda: f(list(items)))"
                )
        return found


def _is_equal(old: Any, new: Any) -> bool:
    """Whether both are arrays with the same contents."""
    if not (is_concrete(old) and is_concrete(new)) or old.is_deleted():
        return False
    is_alike = (old.shape, old.dtype) == (new.shape, new.dtype)
    return is_alike and bool((old == new).all())
