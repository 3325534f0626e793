"""What differs between two values, in words that are the same in each run."""

from __future__ import annotations

import re
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import jax
from jax.tree_util import PyTreeDef

from .. import _functions

_LONGEST = 60
_DEEPEST = 12
# Differences that are listed for one pair of values; the others are counted.
_TOLD = 3

# The name of a part, and what became of it.
Change = tuple[str, str]


class _Leaf:
    """Stands for every leaf of a structure, of which only the structure is known."""

    def __repr__(self) -> str:
        return "a leaf"


_A_LEAF = _Leaf()


def words(value: Any) -> str:
    """A short text for a value, on one line and without addresses."""
    known = type, types.FunctionType, types.BuiltinFunctionType, types.MethodType
    if isinstance(value, known) or callable(getattr(value, "__wrapped__", None)):
        name = str(getattr(value, "__qualname__", type(value).__qualname__))
        code = _functions.code_of(value) if "<" in name else None
        if code is None:
            return name
        return (
            f"{name} of {_functions.file_label(code.co_filename)}:{code.co_firstlineno}"
        )
    if isinstance(value, jax.sharding.Mesh | jax.sharding.AbstractMesh):
        return mesh_words(value) or "None"
    text = re.sub(r" at 0x[0-9a-fA-F]+|0x[0-9a-fA-F]{6,}", "", repr(_opened(value)))
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def mesh_words(mesh: Any) -> str:
    """A mesh's axes, each with its size and kind; an empty text for one without."""
    kinds = zip(mesh.shape.items(), mesh.axis_types, strict=True)
    axes = [f"{name}={size} {kind.name.lower()}" for (name, size), kind in kinds]
    return f"mesh ({', '.join(axes)})" if axes else ""


def equal(a: Any, b: Any) -> bool:
    """Whether two values are one to a cache: equal, and of one type."""
    try:
        return type(a) is type(b) and bool(a == b)
    except Exception:  # a value that cannot be compared counts as another value
        return a is b


def said(found: Iterable[Change]) -> str:
    """The first few changes in words, those of the outermost parts first."""
    unique = dict.fromkeys(found)
    ordered = sorted(unique, key=lambda one: len(re.findall("[.[]", one[0])))
    more = f" and {len(ordered) - _TOLD} more" if len(ordered) > _TOLD else ""
    return "; ".join(f"{name} {text}" for name, text in ordered[:_TOLD]) + more


def changes(name: str, old: Any, new: Any, depth: int = 0) -> Iterator[Change]:
    """The parts of a value that differ, each with what became of it."""
    old, new = _opened(old), _opened(new)
    is_open = type(old) is type(new) and depth < _DEEPEST
    before, now = (dict(_parts(one)) if is_open else {} for one in (old, new))
    found = [(name + key, "went") for key in before if key not in now]
    found += [(name + key, "appeared") for key in now if key not in before]
    for key in now:
        if key in before and not equal(before[key], now[key]):
            found += changes(name + key, before[key], now[key], depth + 1)
    if found:
        yield from found
    elif words(old) != words(new):
        yield name, f"was {words(old)}, now {words(new)}"
    elif not depth:  # equal as far as it shows, and told apart
        kind = type(new).__qualname__
        by_identity = getattr(type(new), "__eq__") is object.__eq__  # noqa: B009
        why = f", and {kind} compares by identity" * by_identity
        shown = words(new) if callable(new) else kind
        yield name, f"is another {shown} than before{why}"


def tree_change(names: Sequence[str], old: PyTreeDef, new: PyTreeDef) -> str:
    """What differs between the structures of two calls' arguments."""

    def by_name(tree: PyTreeDef) -> types.SimpleNamespace:
        positional, named = _opened(tree)
        return types.SimpleNamespace(
            **dict(zip(names, positional, strict=False)), **named
        )

    try:
        found = [(k[1:], text) for k, text in changes("", by_name(old), by_name(new))]
    except TypeError:  # a class that takes no leaves but its own
        found = []
    return said(found) if found else "an object of a registered class has other parts"


def _opened(value: Any) -> Any:
    """A structure of which the leaves are unknown, or apart, as a whole value."""
    if isinstance(value, PyTreeDef):
        leaves, tree = [_A_LEAF] * value.num_leaves, value
    elif type(value) is not tuple:
        return value
    elif len(value) == 2 and isinstance(value[1], PyTreeDef):
        leaves, tree = value
    else:
        return tuple(map(_opened, value))
    try:
        return tree.unflatten(leaves)
    except Exception:  # a class that takes no such leaves: left as it is
        return value


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a container or a plain object, each with how it is written."""
    names: Iterable[str] = ()
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", part) for key, part in value.items())
    elif is_dataclass(value) and not isinstance(value, type):
        names = [one.name for one in fields(value)]
    elif isinstance(value, list | tuple):
        # A graph of Flax NNX has its attributes as pairs of a name and a value.
        is_graph = all(
            type(one) is tuple and [type(k) for k in one[:-1]] == [str] for one in value
        )
        for i, part in enumerate(value):
            yield (f"[{i}].{part[0]}", part[1]) if is_graph else (f"[{i}]", part)
    elif _functions.is_partial(value):
        names = "func", "args", "keywords"
    elif isinstance(value, types.MethodType):
        names = "__self__", "__func__"
    elif _is_plain_object(value):
        names = vars(value)
    yield from ((f".{key}", getattr(value, key, None)) for key in names)


def _is_plain_object(value: Any) -> bool:
    """Whether it is told apart by its attributes; not JAX's own, such as a mesh."""
    is_jax = type(value).__module__.partition(".")[0] in ("jax", "jaxlib")
    is_function = isinstance(value, type | types.FunctionType)
    is_wrapper = callable(getattr(value, "__wrapped__", None))
    has_attributes = isinstance(getattr(value, "__dict__", None), dict)
    return has_attributes and not (is_jax or is_function or is_wrapper)
