"""From a jaxpr to a flat list of equations, each printed on one line."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from .._internals import _equations
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


# A linear solve carries the product that it inverts, and the solve with the transposed
# matrix; only a derivative of it would run them.
_SPARE = ("jaxprs matvec", "jaxprs vecmat", "jaxprs transpose_solve")


class Namer:
    """Names variables a, b, ..., z, ba, bb, ... in the order they are met."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}
        self._types: dict[int, tuple[Any, str]] = {}  # by identity, kept alive

    def name(self, var: Any) -> str:
        """A variable's letters, or a literal's number, whatever type JAX gave it."""
        if hasattr(var, "val"):
            value = var.val
            for kind in (int, float):
                if isinstance(value, kind) and type(value) is not bool:
                    return clean(kind.__repr__(value))
            return clean(str(value))
        if type(var).__name__ == "DropVar" and var not in self._names:
            return "_"
        if var not in self._names:
            self._names[var] = letters(len(self._names))
        return self._names[var]

    def typed(self, variables: Any) -> str:
        """Variables with their types, on one line."""
        return " ".join(f"{self.name(var)}:{self.type(var)}" for var in variables)

    def type(self, var: Any) -> str:
        """A variable's type, which is written once for all that share its aval."""
        aval = var.aval
        if id(aval) not in self._types:
            self._types[id(aval)] = aval, type_of(var)
        return self._types[id(aval)][1]


def letters(number: int) -> str:
    """Write a number in the digits a to z."""
    head, digit = divmod(number, 26)
    return (letters(head) if head else "") + chr(ord("a") + digit)


def type_of(var: Any) -> str:
    """Write a variable's type as jaxprs do, such as ``f32[3,4]``."""
    try:
        return str(var.aval.str_short(short_dtypes=True))
    except (AttributeError, TypeError):
        return str(var.aval)


_PLAIN = re.compile(r"[\w.+\-]*")


def clean(text: str) -> str:
    """Put text on one line, without addresses and folders."""
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
    """Walks a jaxpr in order, inner jaxprs after the equation that holds them."""

    def __init__(
        self, sources: Sources, numbered: _equations.Numbered, jaxpr: Any
    ) -> None:
        self.equations: list[Equation] = []
        self._sources, self._numbered = sources, numbered
        self._namer = Namer()
        self._scopes = 0
        self._fixed: set[tuple[int, int]] = set()
        # The equations that make each variable of a scope, wherever it comes from.
        self._makers: dict[tuple[int, int], set[int]] = {}
        self._reads: list[list[set[int]]] = []
        self.constants = self._namer.typed(jaxpr.constvars)
        self.inputs = self._namer.typed(jaxpr.invars)
        self._walk(jaxpr, [])
        self.outputs = self._results(jaxpr)

    def reads(self) -> list[set[int]]:
        """For each equation, those whose results it reads, in other jaxprs as well."""
        return [set[int]().union(*makers) for makers in self._reads]

    def _results(self, jaxpr: Any) -> str:
        return " ".join(map(self._namer.name, jaxpr.outvars)) or "nothing"

    def _walk(
        self,
        jaxpr: Any,
        operands: list[set[int]],
        parent: Equation | None = None,
        region: int = 0,
    ) -> list[set[int]]:
        """Collect a jaxpr's equations; give, for each result, those that make it."""
        scope = self._scopes
        self._scopes += 1
        is_loop = parent is not None and parent.primitive in ("scan", "while")
        is_known = len(operands) == len(jaxpr.invars)
        for i, var in enumerate(jaxpr.invars):
            makers = operands[i] if is_known else set[int]().union(*operands)
            self._makers[scope, id(var)] = {*makers} if is_loop else makers
        # What a loop's body gets changes from turn to turn, whatever it is at first.
        is_fixed = parent is not None and parent.fixed and not is_loop
        known = (*jaxpr.constvars, *(jaxpr.invars if is_fixed else ()))
        self._fixed.update((scope, id(var)) for var in known)
        needed = needed_equations(jaxpr)
        for position, eqn in enumerate(jaxpr.eqns):
            is_unused = parent is not None and parent.fate == "unused"
            is_unused = is_unused or position not in needed
            fate = "unused" if is_unused else "gone"
            self._add(eqn, scope, parent, region, fate)
        results = [self._made(scope, var) for var in jaxpr.outvars]
        for var in jaxpr.invars if is_loop else ():  # a carry comes round again
            self._makers[scope, id(var)].update(*results)
        return results

    def _made(self, scope: int, var: Any) -> set[int]:
        return self._makers.get((scope, id(var)), set())

    def _add(
        self, eqn: Any, scope: int, parent: Equation | None, region: int, fate: str
    ) -> None:
        index = len(self.equations)
        span = self._sources.of_frames(_equations.frames(eqn))
        if span is None and parent is not None:
            # Only a library's code is in sight: your expression is the one around it.
            span = parent.span
        fixed = not eqn.effects and all(
            hasattr(var, "val") or (scope, id(var)) in self._fixed for var in eqn.invars
        )
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
        reads = [self._made(scope, var) for var in eqn.invars]
        self._reads.append(reads)
        made = [{index} for _ in eqn.outvars]
        # A branch gets all operands but the first, which chooses it.
        operands = reads[1:] if equation.primitive == "cond" else reads
        regions = []
        for number, (key, jaxpr) in enumerate(_equations.sub_jaxprs(eqn)):
            body, label = opened(jaxpr), region_name(equation.primitive, key)
            header = self._namer.typed([*body.constvars, *body.invars])
            runs = replace(equation, fate="unused") if key in _SPARE else equation
            results = self._walk(body, operands, runs, number)
            for i, makers in enumerate(made):
                makers.update(*(results[i : i + 1] or results))
            arrow = f"\N{RIGHTWARDS ARROW} {self._results(body)}"
            regions.append(" ".join(filter(None, [label, header, arrow])))
        if regions:
            self.equations[index] = replace(equation, regions=tuple(regions))
        pairs = zip(eqn.outvars, made, strict=True)
        self._makers.update(((scope, id(var)), makers) for var, makers in pairs)

    def _text(self, eqn: Any) -> str:
        call = " ".join([head(eqn), *map(self._namer.name, eqn.invars)])
        outs = self._namer.typed(eqn.outvars)
        return f"{outs} = {call}" if outs else call


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
        f"{key}={shorten(value)}"
        for key, value in sorted(eqn.params.items())
        if key not in _HIDDEN and matters(value)
    ]
    return f"{name}[{' '.join(shown)}]" if shown else name


def matters(value: Any) -> bool:
    """Leave out what a parameter says by default, and the jaxprs, shown elsewhere."""
    if isinstance(value, (tuple, list)):
        return any(map(matters, value))
    is_jaxpr = hasattr(value, "eqns") or hasattr(value, "jaxpr")
    return value is not None and value is not False and not is_jaxpr


def shorten(value: Any) -> str:
    """A parameter's value on a line; a function by its name alone."""
    name = getattr(value, "__name__", None) if callable(value) else None
    text = clean(str(name or value))
    return text if len(text) <= _LIMIT else text[: _LIMIT - 1] + "…"


def needed_equations(jaxpr: Any) -> set[int]:
    """The equations whose results are needed, or that have an effect."""
    wanted = {v for v in jaxpr.outvars if not hasattr(v, "val")}
    needed = set()
    for position, eqn in reversed([*enumerate(jaxpr.eqns)]):
        if eqn.effects or wanted.intersection(eqn.outvars):
            wanted.update(v for v in eqn.invars if not hasattr(v, "val"))
            needed.add(position)
    return needed
