"""Holds the links of a lens against what changes when one equation does.

One equation of a jaxpr is exchanged for another one of the same shape, such as a sum
for a maximum, and the program is compiled again. The kernels that differ are where the
equation's work was. A link that says otherwise is wrong.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from justafter import lens
from justafter._internals import _equations
from justafter._lens import _hlo

_HIGH, _HIGHEST = lax.Precision.HIGH, lax.Precision.HIGHEST

# What an equation is exchanged for. A product keeps its kind, and the precision in
# its text identifies it.
SWAPS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("add", "add_any", "mul"), lax.sub),
    **dict.fromkeys(("sub", "div"), lax.add),
    "max": lax.min,
    "min": lax.max,
    "lt": lax.gt,
    "gt": lax.lt,
    "neg": lax.abs,
    **dict.fromkeys(("exp", "log", "tanh", "logistic", "sqrt", "rsqrt"), lax.sin),
    "sin": lax.cos,
    "cos": lax.sin,
    "erf": lax.sin,
    "log1p": lax.sin,
}
REDUCTIONS = {"reduce_sum": "reduce_max", "reduce_max": "reduce_min"}


def walk(jaxpr: Any) -> Iterator[Any]:
    for eqn in jaxpr.eqns:
        yield eqn
        for _, inner in _equations.sub_jaxprs(eqn):
            yield from walk(getattr(inner, "jaxpr", inner))


def mutant(eqn: Any) -> Any | None:
    """The equation with another operation in its place; None where there is none."""
    name = eqn.primitive.name
    if name == "dot_general":
        other = _HIGH if _HIGHEST in (eqn.params["precision"] or ()) else _HIGHEST
        return eqn.replace(params=eqn.params | {"precision": (other, other)})
    shapes = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in eqn.invars]
    if name in REDUCTIONS and shapes[0].dtype != bool:
        other = getattr(lax, f"{REDUCTIONS[name]}_p")
        return eqn.replace(primitive=other)
    swap = SWAPS.get(name)
    if name in ("add", "sub") and jnp.issubdtype(shapes[0].dtype, jnp.integer):
        return None  # a loop's counter: XLA counts another way, in another kernel
    if swap is None or any(one.dtype == bool for one in shapes):
        return None
    try:
        (new,) = jax.make_jaxpr(swap)(*shapes).jaxpr.eqns
    except (TypeError, ValueError):
        return None
    return eqn.replace(primitive=new.primitive, params=new.params)


class Exchanged(_equations.Numbered):
    """A traced function, numbered, with one equation exchanged wherever it is."""

    def __init__(self, traced: Any, old: Any, new: Any) -> None:
        self._old, self._new = old, new
        super().__init__(traced)

    def _equation(self, eqn: Any) -> Any:
        return self._new if eqn is self._old else super()._equation(eqn)


@dataclass
class Prints:
    """Fingerprints of a program's kernels: alone, and with all that leads to them."""

    alone: list[str]
    deep: list[str]


def prints(text: str) -> Prints:
    module = _hlo.parse(text)
    deep: dict[str, str] = {}

    def mark(name: str, seen: frozenset[str] = frozenset()) -> str:
        raw = module.by_name.get(name)
        if raw is None or name in seen:
            return "again"
        if name not in deep:
            source = raw
            if raw.opcode == "parameter" and raw.inside != module.entry:
                source = module.callers.get(raw.inside, raw)
            inputs = [mark(one, seen | {name}) for one in source.inputs]
            inside = [module.computations[key] for _, key in raw.called()]
            called = [own(one) for body in inside for one in body]
            whole = "|".join([own(raw), *called, *inputs])
            deep[name] = hashlib.sha256(whole.encode()).hexdigest()
        return deep[name]

    def own(raw: Any) -> str:
        plain = re.sub(r"metadata=\{[^}]*\}|%?[\w.\-]+\.\d+", "", raw.rest)
        kept = re.sub(r"backend_config=\{.*\}|(calls|to_apply)=\S+", "", plain)
        body = ""
        found = re.search(r"to_apply=%?([\w.\-]+)", raw.rest)
        if found:
            body = ",".join(one.opcode for one in module.computations.get(found[1], []))
        which = raw.operands if raw.opcode in ("parameter", "constant") else ()
        return f"{raw.opcode} {raw.type} {which} {kept} {body}"

    steps = [one for one in _hlo.steps(module) if one.is_kernel]
    alone = ["|".join(sorted(own(raw) for raw, _ in one.inside)) for one in steps]
    return Prints(alone, [mark(one.raw.name) for one in steps])


def contradictions(fn, args, most=10000) -> tuple[int, list[str]]:
    """How many equations were exchanged, and the links that this proves wrong."""
    view = lens(fn, *args)
    traced = jax.jit(lambda *args: fn(*args)).trace(*args)
    eqns = list(walk(traced.jaxpr.jaxpr))
    assert [e.primitive.name for e in eqns] == [e.primitive for e in view.equations]
    known = prints(view._compiled.hlo)
    tried, wrong = 0, []
    order = sorted(range(len(eqns)), key=lambda i: hashlib.md5(b"%d" % i).digest())
    for index in order:
        new = None if not view.equations[index].kernels else mutant(eqns[index])
        if new is None or tried >= most:
            continue
        changed = Exchanged(traced, eqns[index], new).traced
        try:
            text = changed.lower().compile().as_text()
        except Exception:  # an operation that XLA has not for this dtype
            continue
        if new.primitive.name == "dot_general" and "operand_precision" not in text:
            continue  # XLA made no product of it, so nothing would show
        tried += 1
        same = [i for i, eqn in enumerate(eqns) if eqn is eqns[index]]
        links = {k for i in same for k in view.equations[i].kernels}
        wrong += _held(view, index, links, known, prints(text))
    return tried, wrong


def _held(view, index, links, known, now) -> Iterator[str]:
    eqn = view.equations[index]
    gone = Counter(known.alone) - Counter(now.alone)
    changed = {k for k, one in enumerate(known.alone) if gone[one]}
    label = f"{index} {eqn.primitive} {eqn.expression!r}"
    if changed and not changed & links:
        yield f"{label}: said to be in {sorted(links)}, and changed {sorted(changed)}"
    left = set(now.deep)
    for k in links:
        # An equal equation that XLA merged with this one keeps the kernel as it was.
        twins = [i for i in view.kernels[k].members if i != index]
        is_twin = any(view.equations[i].primitive == eqn.primitive for i in twins)
        # A product that became a multiplication has no precision that could change.
        is_product = "dot" in view.kernels[k].kind
        is_told = eqn.primitive != "dot_general" or is_product
        if known.deep[k] in left and is_told and not is_twin:
            yield f"{label}: k{k} is as it was, and so is all that leads to it"
