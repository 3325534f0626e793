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
_STEP = re.compile(r"[.[]")
# Differences that are listed for one pair of values; the others are counted.
_TOLD = 3


class _Leaf:
    """Stands for every leaf of a structure, of which only the structure is known."""

    def __repr__(self) -> str:
        return "a leaf"


_A_LEAF = _Leaf()


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


# The name of a part, and what became of it.
Change = tuple[str, str]


def change(name: str, old: Any, new: Any) -> str:
    """What became of a value, from what to what, the differing parts alone.

    >>> change("n", 1, 2)
    'n was 1, now 2'
    >>> change("options", {"a": 1, "b": (1, 2)}, {"a": 1, "b": (1, 3)})
    "options['b'][1] was 2, now 3"
    """
    return told(changes(name, old, new))


def told(found: Iterable[Change]) -> str:
    """The first few changes in words; a text is given once, for all it holds for.

    >>> told([("a", "was 1, now 2"), ("b", "went"), ("c", "was 1, now 2")])
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


def _opened(value: Any) -> Any:
    """What a library flattened into leaves and a structure, whole again."""
    if isinstance(value, PyTreeDef):
        leaves, tree = [_A_LEAF] * value.num_leaves, value
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


def changes(name: str, old: Any, new: Any, depth: int = 0) -> Iterator[Change]:
    """The parts of a value that differ, each with what became of it."""
    old, new = _opened(old), _opened(new)
    if type(old) is type(new) and depth < _DEEPEST:
        found = list(_between(name, dict(_parts(old)), dict(_parts(new)), depth + 1))
        if found:
            yield from found
            return
    if _is_rebound(old, new):
        yield from _rebound(name, old.__self__, new.__self__)
    else:
        yield name, _leaf_change(old, new)


def _between(
    name: str, before: Mapping[str, Any], now: Mapping[str, Any], depth: int = 0
) -> Iterator[Change]:
    """What became of each part; parts by how they are written after the name."""
    for key in now:
        if key in before and not _alike(before[key], now[key]):
            yield from changes(name + key, before[key], now[key], depth)
    yield from ((name + key, "went") for key in before if key not in now)
    yield from ((name + key, "appeared") for key in now if key not in before)


def _alike(a: Any, b: Any) -> bool:
    """Whether two parts are one to a cache: equal, or structures of leaves alone."""
    if equal(a, b):
        return True
    (leaves, tree), (others, other) = map(jax.tree.flatten, (a, b))
    return equal(tree, other) and all(leaf is _A_LEAF for leaf in (*leaves, *others))


def _is_rebound(old: Any, new: Any) -> bool:
    """Whether both are one method, of two objects."""
    methods = isinstance(old, types.MethodType) and isinstance(new, types.MethodType)
    return methods and old.__func__ is new.__func__


def _rebound(name: str, old: Any, new: Any) -> Iterator[Change]:
    if not equal(old, new) and type(old) is type(new) and dict(_parts(new)):
        yield from changes(f"{name}.__self__", old, new)
        return
    kind = type(new).__name__
    yield name, f"is bound to another {kind}, and methods compare by its identity"


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a container or a plain object, each with how it is written."""
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", part) for key, part in value.items())
    elif is_dataclass(value) and not isinstance(value, type):
        yield from ((f".{f.name}", getattr(value, f.name, None)) for f in fields(value))
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from ((f".{key}", getattr(value, key)) for key in value._fields)
    elif isinstance(value, list | tuple):
        # A graph of Flax NNX has its attributes as pairs of a name and a value.
        if all(
            type(one) is tuple and [type(k) for k in one[:-1]] == [str] for one in value
        ):
            yield from ((f"[{i}].{key}", part) for i, (key, part) in enumerate(value))
        else:
            yield from ((f"[{i}]", part) for i, part in enumerate(value))
    elif _functions.is_partial(value):
        names = ("func", "args", "keywords")
        yield from ((f".{key}", getattr(value, key)) for key in names)
    elif _is_plain_object(value):
        yield from ((f".{key}", part) for key, part in vars(value).items())


def _is_plain_object(value: Any) -> bool:
    """Whether it is told apart by its attributes; not JAX's own, such as a mesh."""
    is_jax = type(value).__module__.partition(".")[0] in ("jax", "jaxlib")
    has_attributes = isinstance(getattr(value, "__dict__", None), dict)
    is_function = isinstance(value, type | types.FunctionType | types.MethodType)
    is_wrapper = _functions.inner(value) is not None and hasattr(value, "__wrapped__")
    return has_attributes and not (is_jax or is_function or is_wrapper)


def _leaf_change(old: Any, new: Any) -> str:
    before, now = words(old), words(new)
    if before != now:
        if type(old) is not type(new):
            before, now = _kind(old) or before, _kind(new) or now
        return f"was {before}, now {now}"
    if (a := plain(repr(old))) != (b := plain(repr(new))) and before.endswith("..."):
        return f"was {_near(a, b)}, now {_near(b, a)}"
    if old != old and new != new:
        return f"is {now}, which equals nothing, itself included"
    places = [_defined_at(one) for one in (old, new)]
    if places[0] != places[1] and all(places):
        return f"was the {before} of {places[0]}, now that of {places[1]}"
    if not places[0]:
        return _written_alike(old, new)
    maker, is_local, _ = now.rpartition(".<locals>.")
    if is_local and maker and not now.endswith("<lambda>"):
        return f"is made anew by {maker}, in {places[0].rpartition(':')[0]}"
    return f"is another {now} than before, made anew at {places[0]}"


def _kind(value: Any) -> str:
    """What kind of container it is; an empty text for what has no parts."""
    if not dict(_parts(value)):
        return ""
    name = type(value).__name__
    size = f" of {len(value)}" if type(value) in (list, tuple) else ""
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}{size}"


def _written_alike(old: Any, new: Any) -> str:
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
    code = _functions.code_of(value) if callable(value) else None
    if code is None:
        return ""
    return f"{_functions.file_label(code.co_filename)}:{code.co_firstlineno}"


def tree_change(names: Sequence[str], old: Any, new: Any) -> str:
    """What differs between the structures of two calls' arguments.

    Args:
        names: the names of the positional arguments, in order.
        old: the earlier call's tree, of a pair: positional and named arguments.
        new: the tree of this call.
    """
    before, now = (_by_name(names, _opened(tree)) for tree in (old, new))
    found = list(_between("", before, now))
    # The outermost first: a width of a model, say, before those of its layers.
    found.sort(key=lambda one: len(_STEP.findall(one[0])))
    return told(found) or "a class of yours is built of other parts"


def _by_name(names: Sequence[str], call: Any) -> dict[str, Any]:
    if isinstance(call, PyTreeDef):  # a class that takes no leaves but its own
        return {}
    positional, named = call
    labels = [*names, *(f"argument {i}" for i in range(len(names), len(positional)))]
    return {**dict(zip(labels, positional, strict=False)), **named}
