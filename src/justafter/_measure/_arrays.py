"""Which arrays a call leaves behind: those to wait for, and those that it changed."""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax

# How many values are looked through, and how deep: a model's state, not the world.
_MOST, _DEEPEST = 20_000, 12


def is_concrete(value: Any) -> bool:
    """Whether a value is an array with contents."""
    return isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer)


Step = tuple[str, Any]
Path = tuple[Step, ...]


def inside(value: Any) -> Iterator[tuple[Step, Any]]:
    """Yield what an object holds, each with how to get at it: items and attributes."""
    if isinstance(value, Mapping):
        yield from ((("item", key), one) for key, one in list(value.items()))
    elif isinstance(value, list | tuple):
        yield from ((("item", i), one) for i, one in enumerate(value))
    elif not isinstance(value, _OPAQUE):
        held = getattr(value, "__dict__", None)
        if isinstance(held, dict):
            yield from ((("attribute", name), one) for name, one in list(held.items()))
        for kind in type(value).__mro__:
            names = kind.__dict__.get("__slots__", ())
            for name in (names,) if isinstance(names, str) else names:
                if hasattr(value, name):
                    yield ("attribute", name), getattr(value, name)


_OPAQUE = (
    str, bytes, int, float, complex, bool, type(None), type, types.ModuleType,
    types.FunctionType, types.BuiltinFunctionType, types.CodeType, types.FrameType,
)  # fmt: skip


def paths(value: Any) -> list[Path]:
    """How to get at each array that a value holds, however deep."""
    return [path for path, _ in found(value)]


def found(value: Any) -> Iterator[tuple[Path, Any]]:
    """Yield each array that a value holds, with how to get at it."""
    queue: deque[tuple[Path, Any]] = deque([((), value)])
    seen: set[int] = set()
    while queue and len(seen) < _MOST:
        path, one = queue.popleft()
        if is_concrete(one):
            yield path, one
        elif id(one) not in seen and len(path) < _DEEPEST:
            seen.add(id(one))
            queue.extend((((*path, step)), part) for step, part in inside(one))


def reach(value: Any, path: Path) -> Any:
    """Follow a path; None where it leads nowhere any more."""
    try:
        for kind, key in path:
            value = value[key] if kind == "item" else getattr(value, key)
    except (AttributeError, KeyError, IndexError, TypeError):
        return None
    return value


def state_of(fn: Any, args: Any, kwargs: Any) -> list[tuple[str, Any]]:
    """What a call can change that outlives it: its object, its closure, its arguments.

    Each with a name, to be said where it does change.
    """
    held: list[tuple[str, Any]] = []
    for _ in range(_DEEPEST):
        if isinstance(fn, functools.partial):
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
    code, closure = getattr(fn, "__code__", None), getattr(fn, "__closure__", None)
    if code is None:
        is_object = not isinstance(fn, types.BuiltinFunctionType | type)
        return [("self", fn)] if is_object else []
    held = []
    for name, cell in zip(code.co_freevars, closure or (), strict=False):
        try:
            held.append((name, cell.cell_contents))
        except ValueError:  # not bound yet
            continue
    names = [name for name in code.co_names if name in fn.__globals__]
    values = [(name, fn.__globals__[name]) for name in names]
    return held + [(n, v) for n, v in values if not isinstance(v, _OPAQUE)]


@dataclass
class State:
    """What holds arrays before a call, and which of it the call changed."""

    roots: list[tuple[str, Any]]
    before: list[tuple[str, Any, Path, int]]

    @classmethod
    def of(cls, fn: Any, args: Any, kwargs: Any) -> State:
        """Take it down."""
        roots = state_of(fn, args, kwargs)
        before = [
            (name, root, path, id(one))
            for name, root in roots
            for path, one in found(root)
        ]
        return cls(roots, before)

    def changed(self) -> list[tuple[str, Any, Path]]:
        """What holds another array by now, or an array where there was none."""
        old = {(id(root), path): one for _, root, path, one in self.before}
        return [
            (name, root, path)
            for name, root in self.roots
            for path, one in found(root)
            if old.get((id(root), path)) != id(one)
        ]
