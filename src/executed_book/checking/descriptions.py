"""What names hold, as text that is the same wherever they were made in the same way.

A page and a program each describe the names that a cell binds, in the process that made
them, and the texts are compared as outputs are: numbers up to a tolerance. An array is
described by its type, its shape, and two sums that tell of each of its elements.
"""

import dataclasses
import itertools
import json
import sys
import types
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

#: What begins the description of a value that has none: the name of its type follows.
UNKNOWN = "?"

#: What a program writes before the descriptions.
SEPARATOR = "\x1e"

_PLAIN = (bool, int, complex, range, slice, str, bytes)
_DEEPEST = 8
_LONGEST = 60
_MOST = 400


def described(namespace: Mapping[str, Any], names: Iterable[str]) -> str:
    """The descriptions of some names, in JSON; those that are not bound are left out.

    >>> described({"a": [1, 2.5], "b": print}, ["a", "b", "c"])
    '{"a": "list 1 2.50000e+00", "b": "builtin_function_or_method print"}'
    """
    there = [name for name in names if name in namespace]
    return json.dumps({name: describe(namespace[name]) for name in there})


def describe(value: Any) -> str:
    """One value, as text."""
    try:
        return " ".join(itertools.islice(_parts(value, _DEEPEST), _MOST))
    except Exception as error:  # a deleted array, a proxy, whatever a page may make
        return f"{UNKNOWN}{type(value).__name__} {type(error).__name__}"


def _parts(value: Any, deep: int) -> Iterator[str]:
    kind = type(value).__name__
    if isinstance(value, float):
        yield f"{value:.5e}"
    elif value is None or isinstance(value, _PLAIN):
        text = repr(value)
        short = len(text) <= _LONGEST
        yield text if short else f"{kind}[{len(text)}]#{zlib.crc32(text.encode()):x}"
    elif isinstance(value, types.ModuleType) or callable(value):
        name = getattr(value, "__name__", None)
        yield f"{kind} {name}" if name else f"{UNKNOWN}{kind}"
    elif deep and _is_array(value):
        yield _array(value)
    elif not deep or (inside := _inside(value)) is None:
        yield f"{UNKNOWN}{kind}"
    else:
        yield kind
        for inner in inside:
            yield from _parts(inner, deep - 1)


def _inside(value: Any) -> Iterable[Any] | None:
    """What a value holds, in an order that is always the same; None if not known."""
    if isinstance(value, Mapping):
        return itertools.chain.from_iterable(value.items())
    if isinstance(value, set | frozenset):
        return sorted(value, key=describe)
    if isinstance(value, list | tuple):
        return value
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return [getattr(value, field.name, None) for field in fields]
    jax = sys.modules.get("jax")
    if jax is None or isinstance(value, jax.core.Tracer):
        return None
    leaves: list[Any] = jax.tree_util.tree_leaves(value)
    return None if any(leaf is value for leaf in leaves) else leaves


def _is_array(value: Any) -> bool:
    """Whether NumPy gets its numbers at once: it asks a sparse array one by one."""
    if not (hasattr(value, "dtype") and hasattr(value, "shape")):
        return False
    return hasattr(value, "__array__") or "key<" in str(value.dtype)


def _array(value: Any) -> str:
    import numpy as np

    shape = ",".join(map(str, value.shape))
    head = f"{value.dtype}[{shape}]"
    if "key<" in head:
        return " ".join([head, *repr(value).partition("overlaying:")[2].split()])
    if not value.size:
        return head
    if hasattr(value, "is_fully_addressable") and not value.is_fully_addressable:
        return f"{UNKNOWN}{head}"
    data = np.asarray(value)
    if data.dtype.kind not in "biufcV":
        return f"{UNKNOWN}{head}"
    if data.dtype.kind == "c":
        data = np.stack([data.real, data.imag])
    signed = data.astype(np.float64).ravel()
    flat = np.abs(signed)
    # Sums of what has one sign, so that rounding stays as small as it is in the parts.
    above = signed + float(flat.max())
    weighted = np.linspace(1.0, 2.0, flat.size) * above
    return f"{head} {flat.mean():.5e} {weighted.mean():.5e}"


def describing_code(names: Iterable[str]) -> str:
    """What a program gets at its end, to write the descriptions of names to stdout."""
    written = f"print({SEPARATOR!r} + {describing_expression(names)})"
    return f"\n__name__ == '__main__' and {written}  # not in what it spawns\n"


def split_descriptions(stdout: str) -> tuple[str, dict[str, str]]:
    """What a program printed itself, and the descriptions that it wrote."""
    shown, _, rest = stdout.partition(SEPARATOR)
    line, _, after = rest.partition("\n")
    return shown + after, json.loads(line or "{}")


def describing_expression(names: Iterable[str]) -> str:
    """An expression for the descriptions of names, to be evaluated on a page."""
    listed = ", ".join(map(repr, sorted(names)))
    return (
        f"__import__({__name__!r}, fromlist=['described'])"
        f".described(globals(), [{listed}])"
    )
