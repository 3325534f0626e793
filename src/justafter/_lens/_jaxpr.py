"""From a jaxpr to a flat list of equations, each printed on one line."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from .._internals import _equations as _internals
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

    def name(self, var: Any) -> str:
        if hasattr(var, "val"):
            return clean(str(var.val))
        if str(var) == "_":
            return "_"
        return self._names.setdefault(var, letters(len(self._names)))

    def typed(self, var: Any) -> str:
        return f"{self.name(var)}:{short_type(var.aval)}"


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
        return aval.str_short(short_dtypes=True)
    except (AttributeError, TypeError):
        return str(aval)


def clean(text: str) -> str:
    """Put text on one line, without addresses and folders.

    >>> clean("<function f at 0x7f00>  in /srv/models/train.py:3")
    '<function f> in train.py:3'
    """
    text = re.sub(r" at 0x[0-9a-f]+", "", text)
    text = re.sub(r"np\.\w+\((-?[\w.]+)\)", r"\1", text)
    text = re.sub(r"(?<![\w)/])/(?:[^\s/:,'\"]+/)+([^\s/:,'\"]+)", r"\1", text)
    return re.sub(r"\s+", " ", text).strip()


def opened(jaxpr: Any) -> Any:
    """Give the open jaxpr of a closed one."""
    return getattr(jaxpr, "jaxpr", jaxpr)


class Collector:
    """Walks a jaxpr in order and keeps one Equation for each it meets."""

    def __init__(self, sources: Sources) -> None:
        self.equations: list[Equation] = []
        self._sources = sources
        self._namer = Namer()

    def header(self, label: str, jaxpr: Any) -> str:
        """Write a jaxpr's inputs on one line."""
        inputs = [*jaxpr.constvars, *jaxpr.invars]
        return " ".join([label, *map(self._namer.typed, inputs)]).strip()

    def results(self, jaxpr: Any) -> str:
        """Write a jaxpr's results on one line."""
        return " ".join(map(self._namer.name, jaxpr.outvars)) or "nothing"

    def walk(self, jaxpr: Any, parent: Equation | None = None, region: int = 0) -> None:
        """Collect a jaxpr's equations, and those inside them."""
        needed = set(needed_equations(jaxpr))
        for position, eqn in enumerate(jaxpr.eqns):
            unused = position not in needed or (
                parent is not None and parent.fate == "unused"
            )
            self._add(eqn, parent, region, "unused" if unused else "gone")

    def _add(self, eqn: Any, parent: Equation | None, region: int, fate: str) -> None:
        index = len(self.equations)
        scope = _internals.scope(eqn)
        own_tag = _internals.tags(scope)[-1:]
        span = self._sources.span(_internals.user_span(eqn))
        if span is None and parent is not None:
            span = parent.span
        equation = Equation(
            index=index,
            primitive=eqn.primitive.name,
            text=self._text(eqn),
            outputs=tuple(short_type(v.aval) for v in eqn.outvars),
            span=span,
            expression=self._sources.expression(span),
            scope=_internals.untagged(scope),
            fate=fate,
            parent=None if parent is None else parent.index,
            depth=0 if parent is None else parent.depth + 1,
            region=region,
            tags=(() if parent is None else parent.tags) + own_tag,
        )
        self.equations.append(equation)
        regions = tuple(self._region(eqn, equation))
        self.equations[index] = replace(equation, regions=regions)

    def _region(self, eqn: Any, equation: Equation) -> Iterator[str]:
        for number, (key, jaxpr) in enumerate(_internals.sub_jaxprs(eqn)):
            inner = opened(jaxpr)
            header = self.header(region_name(equation.primitive, key), inner)
            self.walk(inner, equation, number)
            yield f"{header} \N{RIGHTWARDS ARROW} {self.results(inner)}"

    def _text(self, eqn: Any) -> str:
        outs = " ".join(map(self._namer.typed, eqn.outvars))
        call = " ".join([head(eqn), *map(self._namer.name, eqn.invars)])
        return f"{outs} = {call}" if outs else call


def region_name(primitive: str, key: str) -> str:
    """Say what an inner jaxpr is to its equation."""
    if primitive == "while":
        return "test" if key.startswith("cond") else "body"
    if primitive == "cond":
        return key.replace("branches", "branch")
    return "body"


def head(eqn: Any) -> str:
    """Write a primitive with the parameters that matter, cut to a line."""
    name = eqn.primitive.name
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
        return value.__name__
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
