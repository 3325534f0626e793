"""Which equations of a jaxpr must leave work behind, found without compiling it.

Every value gets a number, and values that are equal by a rule of algebra get the same
one: what is known before the program runs is computed, a duplicate has the number of
the first, and so has a sum with zero that of the other summand. An equation may be gone
from the compiled program if nobody needs its results, if they are constants, or if
another equation has the same; otherwise the lens must show where its work is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from justafter import Equation, Lens
from justafter._internals._equations import sub_jaxprs
from justafter._lens._work import elements

# These put values elsewhere, and compute nothing.
MOVES = frozenset({
    "broadcast_in_dim", "concatenate", "convert_element_type", "copy", "copy_p",
    "device_put", "dynamic_slice", "dynamic_update_slice", "empty", "empty2",
    "expand_dims", "gather", "iota", "optimization_barrier", "pad", "reduce_precision",
    "reshape", "rev", "slice", "split", "squeeze", "stop_gradient", "transpose",
})  # fmt: skip
# Computing a constant of more elements than this takes longer than it helps.
MOST = 10_000


class Values:
    """The numbers of all values in a jaxpr, and which of them its results need.

    Args:
        jaxpr: a closed jaxpr.
    """

    def __init__(self, jaxpr: Any) -> None:
        self.outputs: dict[int, list[int]] = {}
        self.renames: dict[int, bool] = {}  # whether it gives what it gets
        self.effects: set[int] = set()
        self.parts: set[int] = set()  # what is there without an equation of its own
        self._numbers: dict[Any, int] = {}
        self._needs: dict[int, set[int]] = defaultdict(set)
        self._constants: dict[int, np.ndarray] = {}
        self._least: dict[int, Any] = {}  # what a value is never below
        inputs = [self._number("input", i) for i, _ in enumerate(jaxpr.jaxpr.invars)]
        self._index = 0
        self.results = self._run(jaxpr, inputs)

    def needed(self) -> set[int]:
        """The values that the results need."""
        found: set[int] = set()
        queue = [*self.results, *self.effects]
        while queue:
            if (one := queue.pop()) not in found:
                found.add(one)
                queue.extend(self._needs[one])
        return found

    def is_constant(self, value: int) -> bool:
        """Whether a value is known before the program runs."""
        return value in self._constants

    def _number(self, *key: Any, needs: Sequence[int] = ()) -> int:
        number = self._numbers.setdefault(key, len(self._numbers))
        self._needs[number].update(needs)
        if key[0] in ("input", "inside", "row", "carried"):  # no equation makes these
            self.parts.add(number)
        return number

    def _constant(self, value: Any) -> int:
        try:
            array = np.asarray(value)
        except TypeError:  # a key of random numbers, which NumPy has no type for
            return self._number("object", id(value))
        number = self._number("constant", array.dtype, array.shape, array.tobytes())
        self._constants[number] = array
        return number

    # --- one jaxpr after the other ----------------------------------------------------

    def _run(self, jaxpr: Any, inputs: Sequence[int]) -> list[int]:
        constants = list(map(self._constant, getattr(jaxpr, "consts", ())))
        body = getattr(jaxpr, "jaxpr", jaxpr)
        known = dict(zip(body.constvars, constants, strict=False))
        known.update(zip(body.invars, inputs, strict=True))

        def read(var: Any) -> int:
            return self._constant(var.val) if hasattr(var, "val") else known[var]

        for eqn in body.eqns:
            index, self._index = self._index, self._index + 1
            given = [read(var) for var in eqn.invars]
            found = self._equation(eqn, given, index)
            self.outputs[index], self.renames[index] = found, set(found) <= set(given)
            if eqn.effects:
                self.effects.update(found)
                self.effects.update(read(var) for var in eqn.invars)
            known.update(zip(eqn.outvars, found, strict=True))
        return [read(var) for var in body.outvars]

    def _equation(self, eqn: Any, inputs: list[int], index: int) -> list[int]:
        name = eqn.primitive.name
        inner = [jaxpr for _, jaxpr in sub_jaxprs(eqn)]
        if name == "while":
            return self._while(eqn, inputs, index)
        if name == "scan":
            return self._scan(eqn, inputs, index)
        if name == "cond":
            return self._cond(inner, inputs)
        if len(inner) == 1 and len(_inputs(inner[0])) == len(inputs):
            return self._run(inner[0], inputs)
        if name == "custom_linear_solve":
            return self._solve(eqn, inputs, index)
        if inner:
            return self._opaque(eqn, inner, inputs, index)
        return self._plain(eqn, inputs, index)

    def _opaque(
        self, eqn: Any, inner: list[Any], inputs: list[int], index: int
    ) -> list[int]:
        needs = list(inputs)
        for place, jaxpr in enumerate(inner):
            count = range(len(_inputs(jaxpr)))
            given = [self._number("inside", index, place, i) for i in count]
            needs += self._run(jaxpr, given)
        outs = range(len(eqn.outvars))
        return [self._number("made", index, i, needs=needs) for i in outs]

    def _solve(self, eqn: Any, inputs: list[int], index: int) -> list[int]:
        """The solve runs; the products beside it are there for derivatives."""
        given, start = {}, 0
        lengths = eqn.params["const_lengths"]
        for name, length in zip(lengths._fields, lengths, strict=True):
            given[f"jaxprs {name}"] = inputs[start : start + length]
            start += length
        found = []
        for key, jaxpr in sub_jaxprs(eqn):
            if key == "jaxprs solve":
                found = self._run(jaxpr, [*given[key], *inputs[start:]])
            else:
                count = range(len(_inputs(jaxpr)))
                self._run(jaxpr, [self._number("inside", index, key, i) for i in count])
        return found

    def _cond(self, branches: list[Any], inputs: list[int]) -> list[int]:
        which, *given = inputs
        all_ = [self._run(branch, given) for branch in branches]
        if which in self._constants:
            chosen = int(self._constants[which])
            return all_[min(max(chosen, 0), len(all_) - 1)]
        return [
            one[0]
            if len(set(one)) == 1
            else self._number("chosen", which, one, needs=[which, *one])
            for one in zip(*all_, strict=True)
        ]

    def _while(self, eqn: Any, inputs: list[int], index: int) -> list[int]:
        p = eqn.params
        a, b = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
        tests, bodies, start = inputs[:a], inputs[a:b], inputs[b:]

        def turn(carry: list[int]) -> tuple[list[int], list[int]]:
            # In the lens's order, by the names of the parameters.
            both = {
                "body_jaxpr": lambda: self._run(p["body_jaxpr"], [*bodies, *carry]),
                "cond_jaxpr": lambda: self._run(p["cond_jaxpr"], [*tests, *carry]),
            }
            found = {key: both[key]() for key, _ in sub_jaxprs(eqn)}
            return found["body_jaxpr"], found["cond_jaxpr"]

        return self._loop(turn, start, index)

    def _scan(self, eqn: Any, inputs: list[int], index: int) -> list[int]:
        p = eqn.params
        jaxpr = p["jaxpr"]
        a, b = _scanned(p)
        consts, start, rows = inputs[:a], inputs[a:b], inputs[b:]
        each = [self._row(one, index) for one in rows]

        def turn(carry: list[int]) -> tuple[list[int], list[int]]:
            found = self._run(jaxpr, [*consts, *carry, *each])
            self._stacked = found[len(start) :]
            return found[: len(start)], []

        ends = self._loop(turn, start, index)
        stacked = [
            self._number("stacked", index, one, needs=[one]) for one in self._stacked
        ]
        return [*ends, *stacked]

    def _row(self, value: int, index: int) -> int:
        if self._uniform(value) is not None:
            return self._constant(self._constants[value][0])
        return self._number("row", index, value, needs=[value])

    def _loop(self, turn: Any, start: list[int], index: int) -> list[int]:
        """What changes from turn to turn; the rest is as it was before the loop."""
        changes, first = [False] * len(start), self._index
        while True:
            self._index = first
            carry = [
                self._number("carried", index, i, needs=[one]) if changed else one
                for i, (changed, one) in enumerate(zip(changes, start, strict=True))
            ]
            after, tests = turn(carry)
            now = [a != b or c for a, b, c in zip(after, carry, changes, strict=True)]
            if now == changes:
                break
            changes = now
        for before, one in zip(carry, after, strict=True):
            if before != one:
                self._needs[before].update([one, *tests])
        return carry

    # --- one equation -----------------------------------------------------------------

    def _plain(self, eqn: Any, inputs: list[int], index: int) -> list[int]:
        if eqn.effects:
            outs = range(len(eqn.outvars))
            return [self._number("effect", index, i, needs=inputs) for i in outs]
        if all(one in self._constants for one in inputs):
            found = self._computed(eqn, inputs)
            if found is not None:
                return found
        for rule in (self._product, self._same, self._compared):
            if (one := rule(eqn, inputs)) is not None:
                return [one]
        name = eqn.primitive.name
        key = tuple(sorted(inputs) if name in _COMMUTE else inputs)
        shapes = str([var.aval for var in eqn.outvars])
        params = repr(sorted(eqn.params.items()))
        outs = range(len(eqn.outvars))
        found = [self._number(name, params, shapes, key, i, needs=inputs) for i in outs]
        if name == "max":
            bounds = [one for one in map(self._uniform, inputs) if one is not None]
            self._least.update(dict.fromkeys(found, *bounds) if bounds else {})
        if name == "integer_pow" and eqn.params["y"] == 3:  # x * x * x holds x * x
            square = repr([("y", 2)])
            self.parts.add(self._number(name, square, shapes, key, 0))
        return found

    def _product(self, eqn: Any, inputs: list[int]) -> int | None:
        """A product with zeros is zero; an outer one with ones repeats the other."""
        if eqn.primitive.name != "dot_general":
            return None
        known, aval = [self._uniform(one) for one in inputs], eqn.outvars[0].aval
        if 0 in known:
            return self._constant(np.zeros(aval.shape, aval.dtype))
        if 1 in known and not eqn.params["dimension_numbers"][0][0]:
            other = inputs[known.index(1) - 1]
            spread = self._number("spread", str(aval), other, needs=inputs)
            self.parts.add(spread)
            return spread
        return None

    def _compared(self, eqn: Any, inputs: list[int]) -> int | None:
        """A comparison with what a value is never below."""
        name = eqn.primitive.name
        if name not in ("lt", "ge") or not self._is_never_below(*inputs):
            return None
        return self._constant(np.full(eqn.outvars[0].aval.shape, name == "ge"))

    def _is_never_below(self, value: int, bound: int) -> bool:
        least, known = self._least.get(value), self._uniform(bound)
        return least is not None and known is not None and bool(least >= known)

    def _computed(self, eqn: Any, inputs: list[int]) -> list[int] | None:
        values = [self._constants[one] for one in inputs]
        sizes = [var.aval.size for var in eqn.outvars if hasattr(var.aval, "size")]
        if sum(sizes) > MOST or len(sizes) < len(eqn.outvars):
            return None
        try:
            with jax.ensure_compile_time_eval():
                found = eqn.primitive.bind(*values, **eqn.params)
        except Exception:  # one that cannot be run by itself
            return None
        found = found if eqn.primitive.multiple_results else [found]
        return list(map(self._constant, found))

    def _same(self, eqn: Any, inputs: list[int]) -> int | None:
        """The input that the result equals, if there is one."""
        name, aval = eqn.primitive.name, eqn.outvars[0].aval
        before = eqn.invars[0].aval if inputs else None
        if name == "select_n":
            which, *cases = inputs
            known = self._uniform(which)
            if len(set(cases)) == 1:
                return cases[0]
            return None if known is None else cases[int(known)]
        if name == "select_if_vmap":  # of Equinox: outside of vmap, the first case
            return inputs[1]
        if name in _UNCHANGED and len(inputs) == 1:
            is_same = (aval.shape, aval.dtype) == (before.shape, before.dtype)
            return inputs[0] if is_same else None
        return self._neutral(eqn, inputs) if len(inputs) == 2 else None

    def _neutral(self, eqn: Any, inputs: list[int]) -> int | None:
        """A sum with zero, a product with one, and the like."""
        name, shape = eqn.primitive.name, eqn.outvars[0].aval.shape
        for place in (0, 1) if name not in ("sub", "div", "pow") else (0,):
            known = self._uniform(inputs[1 - place])
            if known is None:
                continue
            is_whole = eqn.invars[place].aval.shape == shape
            if known in _NEUTRAL.get(name, ()) and is_whole:
                return inputs[place]
            if (name, bool(known)) in _ABSORBED:
                return inputs[1 - place]
        is_same = name in ("and", "or", "max", "min") and inputs[0] == inputs[1]
        return inputs[0] if is_same else None

    def _uniform(self, value: int) -> Any:
        array = self._constants.get(value)
        if array is None or not array.size or array.dtype.kind not in "bifuc":
            return None
        first = array.flat[0]
        return first if (array == first).all() else None


# They give what they get, where shape and dtype stay; some are Equinox's.
_UNCHANGED = frozenset({
    "copy", "copy_p", "stop_gradient", "optimization_barrier", "nonbatchable",
    "unvmap_any", "unvmap_all", "unvmap_max", "reshape", "broadcast_in_dim",
    "convert_element_type", "squeeze",
})  # fmt: skip
_COMMUTE = frozenset({"add", "add_any", "mul", "max", "min", "and", "or"})
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "add": (0,), "add_any": (0,), "sub": (0,), "mul": (1,), "div": (1,), "pow": (1,),
    "and": (True,), "or": (False,), "max": (-np.inf,), "min": (np.inf,),
}  # fmt: skip
_ABSORBED = {("and", False), ("or", True)}


def _scanned(params: dict[str, Any]) -> tuple[int, int]:
    """Where the constants of a scan end among its inputs, and where the carry."""
    if "num_carry" in params:
        return params["num_consts"], params["num_consts"] + params["num_carry"]
    consts, carry, _ = params["ft_in"].unpack()  # a newer JAX keeps them in a tree
    return len(consts), len(consts) + len(carry)


def _inputs(jaxpr: Any) -> list[Any]:
    return list(getattr(jaxpr, "jaxpr", jaxpr).invars)


def gone_for(view: Lens) -> dict[int, str]:
    """Why each equation that a lens calls gone may be gone; ``"?"`` where it must not.

    Raises:
        AssertionError: the lens has other equations than the jaxpr.
    """
    values = Values(view.jaxpr)
    assert len(values.outputs) == len(view.equations)
    needed, shown, moved = values.needed(), set(values.parts), set[int]()
    for eqn in view.equations:
        results = values.outputs[eqn.index]
        if eqn.primitive in MOVES or _only_renames(eqn):
            moved.update(results)
        # What holds others has the results of the last one inside it.
        if eqn.fate in ("kernel", "folded", "view") and not eqn.regions:
            shown.update(results)

    def reason(eqn: Equation) -> str:
        results = values.outputs[eqn.index]
        if values.renames[eqn.index]:
            return "equal to its input"
        for name, holds in (
            ("not needed", lambda one: one not in needed),
            ("a constant", values.is_constant),
            ("a move", moved.__contains__),
            ("done by another", shown.__contains__),
        ):
            if all(map(holds, results)):
                return name
        return "?"

    return {eqn.index: reason(eqn) for eqn in view.gone if eqn.fate == "gone"}


def _only_renames(eqn: Equation) -> bool:
    """Whether it reduces over axes of length one, which leaves the values."""
    is_reduction = eqn.primitive.startswith("reduce_")
    return is_reduction and elements(eqn.outputs[0]) == elements(eqn.inputs[0])
