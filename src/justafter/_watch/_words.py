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
    """A short text for a value, on one line and without addresses.

    >>> words({"width": 3}), words(len), words(object())
    ("{'width': 3}", 'len', '<object object>')
    """
    known = type, types.FunctionType, types.BuiltinFunctionType, types.MethodType
    if isinstance(value, known) or callable(getattr(value, "__wrapped__", None)):
        return str(getattr(value, "__qualname__", type(value).__qualname__))
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
    """The first few changes in words; a text is given once, for all it holds for.

    >>> said([("a", "was 1, now 2"), ("b", "went"), ("c", "was 1, now 2")])
    'a was 1, now 2; c likewise; b went'
    """
    names: dict[str, list[str]] = {}
    for name, text in dict.fromkeys(found):
        names.setdefault(text, []).append(name)
    texts = [
        part
        for text, (first, *others) in names.items()
        for part in (f"{first} {text}", *(f"{name} likewise" for name in others))
    ]
    more = f" and {len(texts) - _TOLD} more" if len(texts) > _TOLD else ""
    return "; ".join(texts[:_TOLD]) + more


def changes(name: str, old: Any, new: Any, depth: int = 0) -> Iterator[Change]:
    """The parts of a value that differ, each with what became of it.

    >>> said(changes("options", {"a": 1, "b": (1, 2)}, {"a": 1, "b": (1, 3)}))
    "options['b'][1] was 2, now 3"
    """
    old, new = _opened(old), _opened(new)
    found: list[Change] = []
    if type(old) is type(new) and depth < _DEEPEST:
        before, now = dict(_parts(old)), dict(_parts(new))
        found = list(_between(name, before, now, depth + 1))
    yield from found or [(name, _leaf_change(old, new))]


def tree_change(names: Sequence[str], old: Any, new: Any) -> str:
    """What differs between the structures of two calls' arguments.

    Each is of a pair, positional and named arguments; `names` are the former's.
    """
    before, now = (_by_name(names, _opened(tree)) for tree in (old, new))
    found = list(_between("", before, now))
    # The outermost first: a width of a model, say, before those of its layers.
    found.sort(key=lambda one: len(re.findall(r"[.[]", one[0])))
    return said(found) or "a class of yours is built of other parts"


def _by_name(names: Sequence[str], call: Any) -> dict[str, Any]:
    if isinstance(call, PyTreeDef):  # a class that takes no leaves but its own
        return {}
    positional, named = call
    labels = [*names, *(f"argument {i}" for i in range(len(names), len(positional)))]
    return {**dict(zip(labels, positional, strict=False)), **named}


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


def _between(
    name: str, before: Mapping[str, Any], now: Mapping[str, Any], depth: int = 0
) -> Iterator[Change]:
    """What became of each part; parts by how they are written after the name."""
    for key in now:
        if key in before and not _is_same(before[key], now[key]):
            yield from changes(name + key, before[key], now[key], depth)
    yield from ((name + key, "went") for key in before if key not in now)
    yield from ((name + key, "appeared") for key in now if key not in before)


def _is_same(a: Any, b: Any) -> bool:
    """Whether two parts are one to a cache: equal, or structures of leaves alone."""
    if equal(a, b):
        return True
    (leaves, tree), (others, other) = map(jax.tree.flatten, (a, b))
    return equal(tree, other) and all(leaf is _A_LEAF for leaf in (*leaves, *others))


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a container or a plain object, each with how it is written."""
    names: Iterable[str] = ()
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", part) for key, part in value.items())
    elif is_dataclass(value) and not isinstance(value, type):
        names = [one.name for one in fields(value)]
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        names = value._fields
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


def _leaf_change(old: Any, new: Any) -> str:
    """What became of a value of which no part explains that it is another."""
    before, now = words(old), words(new)
    if before != now and type(old) is not type(new):
        before, now = _kind(old) or before, _kind(new) or now
    if before != now:
        return f"was {before}, now {now}"
    if isinstance(new, types.MethodType):
        kind = type(new.__self__).__name__
        return f"is bound to another {kind}, and methods compare by its identity"
    first, second = _defined_at(old), _defined_at(new)
    if first != second:
        return f"was the {before} of {first}, now that of {second}"
    kind = type(new).__qualname__
    by_identity = getattr(type(new), "__eq__") is object.__eq__  # noqa: B009
    why = f", and {kind} compares by identity" * by_identity
    if second:
        return f"is another {now} than before, made at {second}"
    return f"is another {kind} than before{why}"


def _kind(value: Any) -> str:
    """What kind of container it is; an empty text for what has no parts."""
    if not dict(_parts(value)):
        return ""
    name = type(value).__name__
    size = f" of {len(value)}" if type(value) in (list, tuple) else ""
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}{size}"


def _defined_at(value: Any) -> str:
    code = _functions.code_of(value) if callable(value) else None
    if code is None:
        return ""
    return f"{_functions.file_label(code.co_filename)}:{code.co_firstlineno}"
