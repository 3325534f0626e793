"""From a jaxpr to a flat list of equations, each printed on one line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from .._internals import _equations
from ._graph import Graph, Scope
from ._model import Equation
from ._source import Sources

_LIMIT = 72
# What these say is shown elsewhere, or is of no use to a reader.
_HIDDEN = {
    "closed_call", "ctx_mesh", "donated_invars", "ft_in", "ft_out", "in_layouts",
    "in_shardings", "inline", "keep_unused", "linear", "name", "new_sizes", "num_carry",
    "num_consts", "out_layouts", "out_shardings", "preferred_element_type", "shape",
    "compiler_options_kvs", "jvp_jaxpr_fun", "fwd_jaxpr_thunk",
}  # fmt: skip


class Namer:
    """Names variables a, b, ..., z, ba, bb, ... in the order they are met."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}
        self._types: dict[Any, str] = {}

    def name(self, var: Any) -> str:
        """A variable's letters, or a literal's value."""
        if hasattr(var, "val"):
            return clean(literal(var.val))
        if (known := self._names.get(var)) is not None:
            return known
        if type(var).__name__ == "DropVar":
            return "_"
        return self._names.setdefault(var, letters(len(self._names)))

    def type(self, var: Any) -> str:
        """A variable's type, such as ``f32[3,4]``."""
        try:
            if var.aval not in self._types:
                self._types[var.aval] = short_type(var.aval)
            return self._types[var.aval]
        except TypeError:  # a type without a hash
            return short_type(var.aval)

    def typed(self, var: Any) -> str:
        """A variable with its type."""
        return f"{self.name(var)}:{self.type(var)}"


def literal(value: Any) -> str:
    """Write a literal; a scalar by its number alone, whatever type JAX gave it."""
    if isinstance(value, int) and type(value) is not bool:
        return int.__repr__(value)
    if isinstance(value, float):
        return float.__repr__(value)
    return str(value)


def letters(number: int) -> str:
    """Write a number in the digits a to z.

    >>> letters(0), letters(25), letters(26)
    ('a', 'z', 'ba')
    """
    head, digit = divmod(number, 26)
    return (letters(head) if head else "") + chr(ord("a") + digit)


def short_type(aval: Any) -> str:
    """Write a type as jaxprs do, such as ``f32[3,4]``."""
    try:
        return str(aval.str_short(short_dtypes=True))
    except (AttributeError, TypeError):
        return str(aval)


_PLAIN = re.compile(r"[\w.+\-]*")


def clean(text: str) -> str:
    """Put text on one line, without addresses and folders.

    >>> clean("<function f at 0x7f00>  in /srv/models/train.py:3")
    '<function f> in train.py:3'
    """
    if _PLAIN.fullmatch(text):
        return text
    text = re.sub(r" at 0x[0-9a-f]+", "", text)
    text = re.sub(r"\bTyped(?:Int|Float|Complex)\(([^,()]+), dtype=\w+\)", r"\1", text)
    text = re.sub(r"np\.\w+\((-?[\w.]+)\)", r"\1", text)
    text = re.sub(r"(?<![\w)/])/(?:[^\s/:,'\"]+/)+([^\s/:,'\"]+)", r"\1", text)
    return re.sub(r"\s+", " ", text).strip()


def opened(jaxpr: Any) -> Any:
    """Give the open jaxpr of a closed one."""
    return getattr(jaxpr, "jaxpr", jaxpr)


class Collector:
    """Walks a jaxpr in order and keeps one Equation for each it meets.

    Args:
        sources: where the expressions are read.
        numbered: what knows the number that an equation has in HLO.
    """

    def __init__(self, sources: Sources, numbered: _equations.Numbered) -> None:
        self.equations: list[Equation] = []
        self._sources, self._numbered = sources, numbered
        self._namer = Namer()
        self._nodes: list[tuple[Any, int]] = []
        self._scopes: list[Scope] = []
        self._fixed: set[tuple[int, int]] = set()

    def header(self, label: str, jaxpr: Any) -> str:
        """Write an inner jaxpr's inputs on one line."""
        inputs = [*jaxpr.constvars, *jaxpr.invars]
        return " ".join([label, *map(self._namer.typed, inputs)]).strip()

    def typed(self, variables: Any) -> str:
        """Write variables with their types on one line."""
        return " ".join(map(self._namer.typed, variables))

    def results(self, jaxpr: Any) -> str:
        """Write a jaxpr's results on one line."""
        return " ".join(map(self._namer.name, jaxpr.outvars)) or "nothing"

    def graph(self) -> Graph:
        """The flow of values between the equations collected so far."""
        return Graph(self._nodes, self._scopes)

    def walk(self, jaxpr: Any, parent: Equation | None = None, region: int = 0) -> None:
        """Collect a jaxpr's equations, and those inside them."""
        scope, outer = len(self._scopes), None
        if parent is not None:
            outer = self._nodes[parent.index][1]
        self._scopes.append(
            Scope(None if parent is None else parent.index, outer, jaxpr)
        )
        # What a loop's body gets changes from turn to turn, whatever it is at first.
        inner = parent is None or parent.primitive in ("scan", "while")
        known = [] if inner or parent is None or not parent.fixed else jaxpr.invars
        self._fixed.update((scope, id(var)) for var in (*jaxpr.constvars, *known))
        needed = set(needed_equations(jaxpr))
        for position, eqn in enumerate(jaxpr.eqns):
            unused = position not in needed or (
                parent is not None and parent.fate == "unused"
            )
            self._add(eqn, scope, parent, region, "unused" if unused else "gone")

    def _is_fixed(self, eqn: Any, scope: int) -> bool:
        return not eqn.effects and all(
            hasattr(var, "val") or (scope, id(var)) in self._fixed for var in eqn.invars
        )

    def _add(
        self, eqn: Any, scope: int, parent: Equation | None, region: int, fate: str
    ) -> None:
        index = len(self.equations)
        span = self._sources.of_frames(_equations.frames(eqn))
        if span is None and parent is not None:
            # Only a library's code is in sight: your expression is the one around it.
            span = parent.span
        fixed = self._is_fixed(eqn, scope)
        if fixed:
            self._fixed.update((scope, id(var)) for var in eqn.outvars)
        equation = Equation(
            index=index,
            primitive=eqn.primitive.name,
            text=self._text(eqn),
            outputs=tuple(map(self._namer.type, eqn.outvars)),
            inputs=tuple(map(self._namer.type, eqn.invars)),
            span=span,
            scope=_equations.scope(eqn),
            fate=fate,
            parent=None if parent is None else parent.index,
            depth=0 if parent is None else parent.depth + 1,
            region=region,
            fixed=fixed,
            tags=(*(parent.tags if parent else ()), self._numbered.number(eqn)),
        )
        self.equations.append(equation)
        self._nodes.append((eqn, scope))
        inner = _equations.sub_jaxprs(eqn)
        if inner:
            regions = tuple(self._region(equation, inner))
            self.equations[index] = replace(equation, regions=regions)

    def _region(
        self, equation: Equation, inner: list[tuple[str, Any]]
    ) -> Iterator[str]:
        for number, (key, jaxpr) in enumerate(inner):
            body = opened(jaxpr)
            header = self.header(region_name(equation.primitive, key), body)
            runs = replace(equation, fate="unused") if is_spare(key) else equation
            self.walk(body, runs, number)
            yield f"{header} \N{RIGHTWARDS ARROW} {self.results(body)}"

    def _text(self, eqn: Any) -> str:
        outs = " ".join(map(self._namer.typed, eqn.outvars))
        call = " ".join([head(eqn), *map(self._namer.name, eqn.invars)])
        return f"{outs} = {call}" if outs else call


def is_spare(key: str) -> bool:
    """Say whether an inner jaxpr is there for derivatives alone, and never runs.

    A linear solve carries the product that it inverts, and the solve with the
    transposed matrix; a derivative of it would run them.
    """
    return key in ("jaxprs matvec", "jaxprs vecmat", "jaxprs transpose_solve")


def region_name(primitive: str, key: str) -> str:
    """Say what an inner jaxpr is to its equation."""
    if key.startswith("jaxprs "):
        return key.removeprefix("jaxprs ")
    if primitive == "while":
        return "test" if key.startswith("cond") else "body"
    if primitive == "cond":
        return key.replace("branches", "branch")
    return "body"


def head(eqn: Any) -> str:
    """Write a primitive with the parameters that matter, cut to a line."""
    name: str = eqn.primitive.name
    if not eqn.params:
        return name
    if "name" in eqn.params and isinstance(eqn.params["name"], str):
        name = f"{name}:{eqn.params['name']}"
    shown = [
        f"{key}={shorten(clean(value_text(value)))}"
        for key, value in sorted(eqn.params.items())
        if key not in _HIDDEN and matters(value) and not holds_jaxpr(value)
    ]
    return f"{name}[{' '.join(shown)}]" if shown else name


def value_text(value: Any) -> str:
    """Write a parameter's value; a function by its name alone."""
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    return str(value)


def matters(value: Any) -> bool:
    """Leave out what a parameter says by default."""
    if isinstance(value, tuple):
        return any(map(matters, value))
    return value is not None and value is not False


def holds_jaxpr(value: Any) -> bool:
    """Say whether a parameter is a jaxpr, or a sequence of them."""
    one = value[0] if isinstance(value, (tuple, list)) and value else value
    return hasattr(one, "eqns") or hasattr(one, "jaxpr")


def shorten(text: str) -> str:
    """Cut text that would not fit on a line."""
    return (
        text if len(text) <= _LIMIT else text[: _LIMIT - 1] + "\N{HORIZONTAL ELLIPSIS}"
    )


def needed_equations(jaxpr: Any) -> list[int]:
    """List the equations whose results are needed, or that have an effect."""
    wanted = {v for v in jaxpr.outvars if not hasattr(v, "val")}
    kept = []
    for position in reversed(range(len(jaxpr.eqns))):
        eqn = jaxpr.eqns[position]
        if eqn.effects or any(v in wanted for v in eqn.outvars):
            wanted.update(v for v in eqn.invars if not hasattr(v, "val"))
            kept.append(position)
    return kept
