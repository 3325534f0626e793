"""What differs between two values, in words that are the same in each run."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import jax
from jax.tree_util import PyTreeDef

from .. import _functions

_LONGEST = 60
# Differences that are told of one pair of values; the others are counted.
_TOLD = 3


def words(value: Any) -> str:
    """A short text for a value, without addresses.

    >>> words({"width": 3}), words(len), words(object())
    ("{'width': 3}", 'len', '<object object>')
    """
    if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
        return value.__qualname__
    if callable(getattr(value, "__wrapped__", None)):  # a jitted function, say
        return str(getattr(value, "__qualname__", cut(plain(repr(value)))))
    if isinstance(value, jax.sharding.Mesh | jax.sharding.AbstractMesh):
        return mesh_words(value) or "None"
    return cut(plain(repr(_opened(value))))


def mesh_words(mesh: Any) -> str:
    """A mesh's axes, each with its size and kind; an empty text for one without."""
    kinds = zip(mesh.shape.items(), mesh.axis_types, strict=True)
    axes = [f"{name}={size} {kind.name.lower()}" for (name, size), kind in kinds]
    return f"mesh ({', '.join(axes)})" if axes else ""


def plain(text: str) -> str:
    """Text on one line, without addresses.

    >>> plain("<M object at 0x7f00aa>")
    '<M object>'
    """
    return " ".join(re.sub(r" at 0x[0-9a-fA-F]+|0x[0-9a-fA-F]{6,}", "", text).split())


def cut(text: str) -> str:
    """Text of at most sixty characters."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def equal(a: Any, b: Any) -> bool:
    """Whether two values are one to a cache: equal, and of one type."""
    try:
        return type(a) is type(b) and bool(a == b)
    except Exception:  # a value that cannot be compared counts as another value
        return a is b


def change(name: str, old: Any, new: Any) -> str:
    """What became of a value, from what to what, the differing parts alone.

    >>> change("n", 1, 2)
    'n was 1, now 2'
    >>> change("options", {"a": 1, "b": (1, 2)}, {"a": 1, "b": (1, 3)})
    "options['b'][1] was 2, now 3"
    """
    found = list(dict.fromkeys(_changes(name, old, new, 0)))
    more = f" and {len(found) - _TOLD} more" if len(found) > _TOLD else ""
    return "; ".join(found[:_TOLD]) + more


def _opened(value: Any) -> Any:
    """What a library flattened into leaves and a structure, whole again.

    A structure alone is filled with None.
    """
    if isinstance(value, PyTreeDef):
        leaves, tree = [None] * value.num_leaves, value
    elif _is_flattened(value):
        leaves, tree = value
    elif type(value) is tuple:
        return tuple(map(_opened, value))
    else:
        return value
    try:
        return tree.unflatten(leaves)
    except Exception:  # a class that takes no such leaves: left as it is
        return value


def _is_flattened(value: Any) -> bool:
    is_pair = type(value) is tuple and len(value) == 2
    if not is_pair or not isinstance(value[1], PyTreeDef):
        return False
    leaves, tree = value
    return isinstance(leaves, list | tuple) and len(leaves) == tree.num_leaves


def _changes(name: str, old: Any, new: Any, depth: int) -> Iterator[str]:
    old, new = _opened(old), _opened(new)
    if type(old) is type(new) and depth < 8:
        before, now = dict(_parts(old)), dict(_parts(new))
        different = [
            key for key in now if key in before and not equal(before[key], now[key])
        ]
        gone = [key for key in before if key not in now]
        added = [key for key in now if key not in before]
        if different or gone or added:
            for key in different:
                yield from _changes(name + key, before[key], now[key], depth + 1)
            yield from (f"{name}{key} went" for key in gone)
            yield from (f"{name}{key} appeared" for key in added)
            return
    yield _leaf_change(name, old, new)


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a container or a plain object, each with how it is written."""
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", part) for key, part in value.items())
    elif is_dataclass(value) and not isinstance(value, type):
        yield from ((f".{f.name}", getattr(value, f.name, None)) for f in fields(value))
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from ((f".{key}", getattr(value, key)) for key in value._fields)
    elif isinstance(value, list | tuple):
        yield from ((f"[{i}]", part) for i, part in enumerate(value))
    elif _is_plain_object(value):
        yield from ((f".{key}", part) for key, part in vars(value).items())


def _is_plain_object(value: Any) -> bool:
    """Whether it is told apart by its attributes; not JAX's own, such as a mesh."""
    is_jax = type(value).__module__.partition(".")[0] in ("jax", "jaxlib")
    has_attributes = isinstance(getattr(value, "__dict__", None), dict)
    return has_attributes and not callable(value) and not is_jax


def _leaf_change(name: str, old: Any, new: Any) -> str:
    before, now = words(old), words(new)
    if before != now:
        return f"{name} was {before}, now {now}"
    if (a := plain(repr(old))) != (b := plain(repr(new))) and before.endswith("..."):
        return f"{name} was {_near(a, b)}, now {_near(b, a)}"
    if old != old and new != new:
        return f"{name} is {now}, which equals nothing, itself included"
    places = [_defined_at(one) for one in (old, new)]
    if places[0] != places[1] and all(places):
        return f"{name} was the {before} of {places[0]}, now that of {places[1]}"
    if places[0]:
        return f"{name} is another {now} than before, made anew at {places[0]}"
    return f"{name} {_alike(old, new)}"


def _alike(old: Any, new: Any) -> str:
    """How values differ that are written alike."""
    kind = type(new).__qualname__
    if type(old) is not type(new):
        modules = type(old).__module__, type(new).__module__
        return f"was a {modules[0]}.{kind}, now a {modules[1]}.{kind}"
    if getattr(type(new), "__eq__") is object.__eq__:  # noqa: B009
        return f"is another {kind} than before, and {kind} compares by identity"
    return f"is another {kind}, written like the one before but not equal to it"


def _near(text: str, other: str) -> str:
    """A long text from shortly before the first character that differs."""
    pairs = enumerate(zip(text, other, strict=False))
    start = next((i for i, (a, b) in pairs if a != b), min(len(text), len(other)))
    return cut("..." + text[max(start - 10, 0) :])


def _defined_at(value: Any) -> str:
    code = getattr(value, "__code__", None)
    if not isinstance(code, types.CodeType):
        return ""
    return f"{_functions.file_label(code.co_filename)}:{code.co_firstlineno}"


# --- trees ------------------------------------------------------------------------


def tree_change(names: Sequence[str], old: Any, new: Any) -> str:
    """What differs between the structures of two calls' arguments.

    Args:
        names: the names of the positional arguments, in order.
        old: the earlier call's tree, of a pair: positional and named arguments.
        new: the tree of this call.
    """
    found = list(dict.fromkeys(_tree_changes("", old, new, names)))
    more = f" and {len(found) - _TOLD} more" if len(found) > _TOLD else ""
    return "; ".join(found[:_TOLD]) + more


def _tree_changes(
    path: str, old: Any, new: Any, names: Sequence[str] = ()
) -> Iterator[str]:
    if old == new:
        return
    before, now = _node(old), _node(new)
    if before is None or now is None or before[0] is not now[0]:
        yield f"{path or 'the call'} was {_kind(old)}, now {_kind(new)}"
        return
    keys = [_keys(*before, old), _keys(*now, new)]
    if not path and before[0] is tuple and len(keys[1]) == 2:  # positional and named
        yield from _pairs("", old.children(), new.children(), names)
        return
    if keys[0] != keys[1]:
        yield from _counts(path, keys, old, new)
    elif before[0] is not dict and before[1] != now[1]:
        yield change(path or "the call", *_static_parts(old, new))
    else:
        parts = zip(keys[1], old.children(), new.children(), strict=True)
        for key, a, b in parts:
            yield from _tree_changes(path + key, a, b)


def _static_parts(old: Any, new: Any) -> tuple[Any, Any]:
    """What two nodes of one class keep beside their children: the nodes themselves."""
    nodes = _opened(old), _opened(new)
    if type(nodes[0]) is type(nodes[1]) and dict(_parts(nodes[1])):
        return nodes
    return old.node_data()[1], new.node_data()[1]


def _pairs(path: str, old: Any, new: Any, names: Sequence[str]) -> Iterator[str]:
    positional = zip(old[0].children(), new[0].children(), strict=False)
    for i, (a, b) in enumerate(positional):
        yield from _tree_changes(names[i] if i < len(names) else f"argument {i}", a, b)
    before, now = _by_name(old[1]), _by_name(new[1])
    for key in now:
        if key in before:
            yield from _tree_changes(key, before[key], now[key])


def _by_name(tree: Any) -> dict[str, Any]:
    node = _node(tree)
    keys = node[1] if node is not None and node[0] is dict else []
    return dict(zip(keys, tree.children(), strict=True))


def _node(tree: Any) -> tuple[Any, Any] | None:
    data = tree.node_data()
    return None if data is None else (data[0], data[1])


def _keys(kind: Any, data: Any, tree: Any) -> list[str]:
    count = len(tree.children())
    if kind is dict:
        return [f"[{key!r}]" for key in data]
    if kind in (list, tuple):
        return [f"[{i}]" for i in range(count)]
    if hasattr(kind, "_fields"):
        return [f".{name}" for name in kind._fields]
    names = [f.name for f in fields(kind)] if is_dataclass(kind) else []
    if len(names) == count:
        return [f".{name}" for name in names]
    return _registered(tree) or [f"<part {i}>" for i in range(count)]


def _registered(tree: Any) -> list[str]:
    """The keys that a class has given its children, as JAX writes them."""
    node = _opened(tree)
    try:
        pairs, _ = jax.tree_util.tree_flatten_with_path(
            node, is_leaf=lambda one: one is not node
        )
    except Exception:  # a class without keys, or one that was not filled
        return []
    keys = [jax.tree_util.keystr(path) for path, _ in pairs]
    return keys if len(keys) == len(tree.children()) else []


def _counts(path: str, keys: list[list[str]], old: Any, new: Any) -> Iterator[str]:
    before, now = keys
    appeared = [key for key in now if key not in before]
    went = [key for key in before if key not in now]
    yield from (f"{path}{key} appeared" for key in appeared)
    yield from (f"{path}{key} went" for key in went)
    if not appeared and not went:
        yield f"{path or 'the call'} was {_kind(old)}, now {_kind(new)}"


def _kind(tree: Any) -> str:
    node = _node(tree)
    if node is None:
        return "a leaf" if jax.tree_util.treedef_is_leaf(tree) else words(tree)
    if node[0] is type(None):
        return "None"
    name = getattr(node[0], "__name__", str(node[0]))
    return f"a {name}" + (f" of {len(tree.children())}" if name != "dict" else "")
