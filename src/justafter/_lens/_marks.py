"""Finds the equations that an HLO instruction came from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from .._internals import _equations
from ._hlo import CONTROL, FREE, RENAMING, Module, Raw
from ._model import Equation
from ._work import (
    HEAVY,
    can_make,
    fits,
    is_composite,
    is_light,
    is_maker,
    is_part,
    may_be,
    same_kind,
)

# What leads from an instruction to another that computes the same values.
_MOVING = {*RENAMING, "reshape", "transpose", "copy", "convert", "slice", "reverse"}
# A search that reaches further than this explains nothing any more.
_FARTHEST = 12


class Marks:
    """Knows the equations of each instruction of a module.

    The numbers that ``_equations.Numbered`` left in the metadata say which. But XLA
    drops metadata, and gives an instruction that of its neighbor. Where no equation on
    record can have made an instruction, it looks along the flow of values for one of
    its kind, dtype and size. If one is left, it is inferred; otherwise the instruction
    is lost. `reads` are the equations that each one reads.
    """

    def __init__(
        self, equations: Sequence[Equation], module: Module, reads: Sequence[set[int]]
    ) -> None:
        self._equations, self.module, self._producers = equations, module, reads
        # XLA may cut a path's head where it inlines a computation. Of a function that
        # is called twice it cannot be told then which call it was.
        self._by_tags: dict[tuple[int, ...], list[int]] = {}
        for eqn in equations:
            for cut in range(1, len(eqn.tags)):
                self._by_tags.setdefault(eqn.tags[cut:], []).append(eqn.index)
        self._by_tags |= {eqn.tags: [eqn.index] for eqn in equations}
        self._constant: dict[str, bool] = {}
        self._recorded = {
            raw.name: tuple(self._read(raw)) for raw in module.instructions()
        }
        # By opcode, the equations that have such an instruction already.
        self._done: dict[str, set[int]] = {}
        for raw in module.instructions():
            recorded = self._recorded[raw.name]
            if any(can_make(equations[i], raw) for i in recorded):
                self._done.setdefault(raw.opcode, set()).update(recorded)
        # By the names of instructions: the equation that was inferred, and those that
        # no known equation made.
        self.inferred: dict[str, int] = {}
        self.lost: set[str] = set()
        for raw in module.instructions():
            if raw.opcode in HEAVY and not self._is_combiner(raw):
                self._check(raw)

    def of(self, raw: Raw) -> tuple[int, ...]:
        """List the equations of an instruction: several where XLA merged some."""
        if raw.name in self.lost:
            return ()
        if raw.name in self.inferred:
            return (self.inferred[raw.name],)
        return self._recorded.get(raw.name, ())

    def work(self, raw: Raw) -> tuple[int, ...]:
        """List those that an instruction computes, without what only helps them.

        Numbers that XLA merged, such as the zero of each ``relu``, carry the mark of
        one equation, and say nothing about where the others are computed.
        """
        if raw.opcode in FREE:
            return ()
        if self.is_constant(raw):
            return tuple(i for i in self.of(raw) if self._equations[i].fixed)
        return self.of(raw)

    def is_constant(self, raw: Raw) -> bool:
        """Say whether an instruction's value is known before the program runs."""
        if raw.name not in self._constant:
            self._constant[raw.name] = False  # until its inputs are known
            names = raw.inputs
            if raw.opcode == "parameter":
                names = tuple(filter(None, [self.module.names.get(raw.name)]))
            inputs = [self.module.by_name.get(name) for name in names]
            self._constant[raw.name] = raw.opcode in ("constant", "iota") or (
                bool(inputs)
                and raw.opcode not in CONTROL
                and all(one is not None and self.is_constant(one) for one in inputs)
            )
        return self._constant[raw.name]

    def _read(self, raw: Raw) -> Iterator[int]:
        # XLA joins the names of merged instructions with semicolons.
        for name in raw.op_name.split(";") if raw.op_name else ():
            found = self._by_tags.get(_equations.tags(name), [])
            if len(found) == 1:
                yield found[0]

    def _is_combiner(self, raw: Raw) -> bool:
        """Say whether it is in the computation of a reduction or a sort."""
        module = self.module
        return raw.inside != module.entry and raw.inside not in module.callers

    # --- inference ----------------------------------------------------------------

    def _check(self, raw: Raw) -> None:
        """Find the maker of a heavy instruction whose record cannot be right."""
        recorded = self._recorded[raw.name]
        if any(can_make(self._equations[i], raw) for i in recorded):
            return
        found = self._from_readers(raw) or self._along(raw)
        # Those that no instruction of this kind names, if there are any.
        found = (found - self._done.get(raw.opcode, set())) or found
        if len(found) == 1:
            (self.inferred[raw.name],) = found
        else:
            self.lost.add(raw.name)

    def _from_readers(self, raw: Raw) -> set[int]:
        """The one equation that the only readers are linked to, if it made this too.

        XLA rewrites a product of a vector, say, as one of matrices, and leaves the
        equation's mark only on the bitcast back to the wanted shape; it makes a long
        sum in two halves, and marks the second.
        """
        queue, seen, found = [raw], {raw.name}, set[int]()
        while queue:
            one = queue.pop()
            for user in self._readers(one):
                if user.name in seen:
                    continue
                seen.add(user.name)
                recorded = [self._equations[i] for i in self._recorded[user.name]]
                is_sum = one is raw and raw.opcode in ("reduce-window", "reduce")
                made = [e for e in recorded if is_maker(e, raw) and same_kind(e, raw)]
                if made and (
                    (is_sum and user.opcode == "reduce") or user.opcode in _MOVING
                ):
                    found.update(eqn.index for eqn in made)
                elif user.opcode in _MOVING:
                    queue.append(user)
                else:  # next to what it is combined with, by one equation of several
                    found.update(e.index for e in recorded if is_part(e, raw))
        return found if len(found) == 1 else set()

    def _along(self, raw: Raw) -> set[int]:
        """Makers of what its own equations read, or of what its readers read."""

        def usual(eqn: Equation) -> bool:
            return is_maker(eqn, raw) and fits(eqn, raw)

        def possible(eqn: Equation) -> bool:
            return usual(eqn) or (is_composite(eqn) and fits(eqn, raw))

        before = self._nearest(set(self._recorded[raw.name]), usual)
        if before:
            return before
        readers = self._first_recorded(raw)
        after = {i for user in readers for i in self._recorded[user.name]}
        return self._nearest(after, possible)

    def _nearest(
        self, starts: set[int], wanted: Callable[[Equation], bool]
    ) -> set[int]:
        """The wanted equations that the fewest steps lead back to, past light ones."""
        layer, seen = starts, starts
        for _ in range(_FARTHEST):
            layer = {i for one in layer for i in self._producers[one]} - seen
            eqns = [self._equations[i] for i in layer]
            if found := {e.index for e in eqns if wanted(e)}:
                return found
            seen = seen | layer
            layer = {e.index for e in eqns if is_light(e) or e.regions}
        return set()

    def _first_recorded(self, raw: Raw) -> list[Raw]:
        """The first readers that have a record; none if one of them has none."""
        queue, seen, found = [raw], {raw.name}, list[Raw]()
        while queue:
            for one in self._readers(queue.pop()):
                if one.name in seen:
                    continue
                seen.add(one.name)
                if self._recorded[one.name]:
                    found.append(one)
                elif one.opcode in _MOVING and len(seen) < 50:
                    queue.append(one)
                else:
                    return []
        return found

    def _readers(self, raw: Raw) -> Iterator[Raw]:
        """The instructions that read a value, inside fusions as well."""
        for user in self.module.users.get(raw.name, []):
            if user.opcode != "fusion":
                yield user
                continue
            for one in self.module.computations.get(user.called()[0][1], []):
                if self.module.names.get(one.name) == raw.name:
                    yield from self.module.users.get(one.name, [])
        caller = self.module.callers.get(raw.inside)
        if raw.is_root and caller is not None and caller.opcode == "fusion":
            yield from self._readers(caller)

    # --- what is gone -------------------------------------------------------------

    def unexplained(self) -> Iterator[Raw]:
        """The instructions that run and that no equation is known for."""
        for raw in self.module.instructions():
            if self._is_combiner(raw) or raw.opcode in CONTROL | {"fusion"}:
                continue
            is_constant = self.is_constant(raw)
            known = self.of(raw) if is_constant else self.work(raw)
            # A constant spread over an array is the constant itself, in a fusion.
            if raw.opcode == "broadcast" and is_constant:
                is_shown = raw.is_root or raw.inside == self.module.entry
            else:
                is_shown = not self._is_product_part(raw)
            # A clamp bears the name of one of the two bounds that it may be made of.
            if is_shown and (not known or raw.opcode == "clamp"):
                yield raw

    def _is_product_part(self, raw: Raw) -> bool:
        """Whether it multiplies what a product adds up: XLA splits small ones so."""
        users = self.module.users.get(raw.name, []) if raw.opcode == "multiply" else []
        sums = [i for user in users if user.opcode == "reduce" for i in self.of(user)]
        return any(self._equations[i].primitive == "dot_general" for i in sums)

    def may_be(self, eqn: Equation, raws: Iterable[Raw]) -> bool:
        """Say whether one of the unexplained instructions can be this one's work."""
        return any(
            eqn.fixed and fits(eqn, raw) if self.is_constant(raw) else may_be(eqn, raw)
            for raw in raws
        )
