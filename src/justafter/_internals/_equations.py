"""Where an equation came from, and how to follow it into HLO: what `lens` needs."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from itertools import islice
from types import CodeType
from typing import Any

import jax.extend.core as _core

from ._events import moved

# A scope no user would write. MLIR cuts names at "@", so none of that.
_TAG = "ja_eqn"
_TAG_PATTERN = re.compile(rf"{_TAG}(\d+)\.")
# What a jit may be named in HLO: not what cuts a name or ends a scope.
_UNSAFE = re.compile(r"[^\w<>.\-]")

# Their inner jaxprs say how to combine two numbers, or are a kernel of their
# own; lowering rules match on them, so they stay untouched.
_LEAVES = {"pallas_call", "reduce", "reduce_window", "select_and_scatter", "sort"}

_JAXPRS: tuple[type, ...] = (
    getattr(_core, "ClosedJaxpr"),  # noqa: B009 (which is another name's, since 0.11)
    _core.Jaxpr,
)

Place = tuple[str, str, int, int, int, int]


def frames(eqn: Any) -> Iterator[tuple[CodeType, int]]:
    """Yield the code and instruction of each Python frame that made an equation.

    Innermost first, up to the function that the equation's jaxpr was traced of.
    """
    codes, offsets = eqn.source_info.traceback.raw_frames()
    yield from zip(codes, offsets, strict=True)


def place(code: CodeType, offset: int) -> Place:
    """Give the expression that a frame is running.

    Returns:
        ``(file, function, line, column, end_line, end_column)``, lines from 1,
        columns in bytes from 0.
    """
    first = code.co_firstlineno
    # Python has an entry for each code unit of two bytes.
    known = next(islice(code.co_positions(), offset // 2, None), (first, first, 0, 0))
    line, end_line, column, end_column = (one or 0 for one in known)
    return code.co_filename, code.co_qualname, line, column, end_line, end_column


def sub_jaxprs(eqn: Any) -> list[tuple[str, Any]]:
    """List the jaxprs that an equation runs, each with its parameter's name."""
    if is_leaf(eqn):
        return []
    return [
        (key, one)
        for name, value in eqn.params.items()
        for key, one in _found(name, value)
    ]


def _found(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, _JAXPRS):
        yield key, value
    elif isinstance(value, (tuple, list)):
        fields = getattr(value, "_fields", range(len(value)))
        for label, one in zip(fields, value, strict=True):
            yield from _found(f"{key} {label}", one)


def is_leaf(eqn: Any) -> bool:
    """Say whether an equation's inner jaxprs are details of one operation."""
    name = eqn.primitive.name
    return name in _LEAVES or name.startswith("scatter")


def scope(eqn: Any) -> str:
    """Give an equation's name stack, such as ``transpose(jvp())``."""
    return str(eqn.source_info.name_stack)


class Numbered:
    """A traced function whose equations carry numbers into HLO.

    Each number takes the place of the equation's scopes, so XLA keeps it in the
    metadata of every instruction made from it. Metadata only: the compiled program
    is the same. `traced` is the copy with the numbers, to lower and compile.
    """

    def __init__(self, traced: Any) -> None:
        self._numbers: dict[int, int] = {}
        self._seen: dict[int, Any] = {}
        self._kept: list[Any] = []  # what identities are of stays alive
        self.traced = copy.copy(traced)
        params = {**traced._params, "jaxpr": self._value(traced._params["jaxpr"])}
        params["name"] = _UNSAFE.sub("_", str(params.get("name", "")))
        self.traced._params = params

    @classmethod
    def of(cls, traced: Any) -> Numbered:
        """Number a traced function's equations, if this JAX keeps them in this form."""
        try:
            return cls(traced)
        except (AttributeError, KeyError, TypeError) as error:
            raise moved("number equations") from error

    def number(self, eqn: Any) -> int:
        """The number of an equation of the function that was traced."""
        return self._numbers[id(eqn)]

    def _value(self, value: Any) -> Any:
        if isinstance(value, _JAXPRS):
            # A jaxpr that two equations share stays shared, or the program would grow.
            if id(value) not in self._seen:
                self._kept.append(value)
                self._seen[id(value)] = self._jaxpr(value)
            return self._seen[id(value)]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(self._value, value))
        if type(value) in (tuple, list):
            return type(value)(map(self._value, value))
        return value

    def _jaxpr(self, jaxpr: Any) -> Any:
        inner = getattr(jaxpr, "jaxpr", jaxpr)
        if inner is not jaxpr:
            return jaxpr.replace(jaxpr=self._value(inner))
        return jaxpr.replace(eqns=list(map(self._equation, jaxpr.eqns)))

    def _equation(self, eqn: Any) -> Any:
        number = self._numbers.setdefault(id(eqn), len(self._numbers))
        self._kept.append(eqn)
        stack = type(eqn.source_info.name_stack)().extend(f"{_TAG}{number}.")
        params = eqn.params
        if not is_leaf(eqn):
            params = {key: self._value(value) for key, value in params.items()}
            if isinstance(params.get("name"), str) and sub_jaxprs(eqn):
                params["name"] = _UNSAFE.sub("_", params["name"])
        source = eqn.source_info.replace(name_stack=stack)
        return eqn.replace(params=params, source_info=source)


def tags(path: str) -> tuple[int, ...]:
    """Read the numbers that :class:`Numbered` put into a scope, outermost first."""
    return tuple(map(int, _TAG_PATTERN.findall(path)))


def plain_names(text: str) -> str:
    """Take the numbers of :class:`Numbered` out of HLO's names for values.

    XLA names a value after the last part of its scope, and that may be a number.
    """
    return re.sub(rf"(%[\w\-.]*?){_TAG}(?=\d)", r"\1value", text)


def plain_name(name: str) -> str:
    """One such name, as :func:`plain_names` writes it."""
    return plain_names(f"%{name}")[1:]
