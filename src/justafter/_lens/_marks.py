"""Finds the equations that an HLO instruction came from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .._internals import _equations
from ._graph import Graph, nearest
from ._hlo import CONTROL, FREE, RENAMING, Module, Raw
from ._model import Equation, Span
from ._source import Sources
from ._work import (
    ALIKE,
    HEAVY,
    PASSING,
    can_make,
    fits,
    is_alike,
    is_composite,
    is_light,
    is_maker,
    is_part,
    same_kind,
)

Start = tuple[str, int, int]

# What leads from an instruction to the one that computes the same values.
_MOVING = {*RENAMING, "reshape", "transpose", "copy", "convert", "slice", "reverse"}
# Cheap instructions that XLA makes anew, without a record.
_ANEW = {*ALIKE, "dynamic-slice", "compare", "and", "broadcast"}
# What XLA makes in two steps: the first one's only reader is the second.
_HALVES = {"reduce-window": ("reduce",), "reduce": ("reduce",)}


def start(span: Span | None) -> Start | None:
    """Give the place where a span starts: file, line, column."""
    return None if span is None else (span.file, span.line, span.column)


class Marks:
    """Knows the equations of each instruction of a module.

    By the numbers that ``_equations.Numbered`` left in the metadata; where a JAX
    version does not allow those, by the primitive and where its expression starts.

    XLA drops metadata, and gives an instruction that of its neighbor. Where no
    equation on record can have made an instruction, the one that can is looked for
    along the flow of values: it has the kind, the dtype and the size of the
    instruction. If one is left, it is inferred; otherwise the instruction is lost.

    Attributes:
        inferred: an equation by the name of an instruction that has another record,
            or none.
        lost: the names of instructions that no known equation made.
    """

    def __init__(
        self,
        equations: list[Equation],
        module: Module,
        sources: Sources,
        graph: Graph,
    ) -> None:
        self._equations, self._module = equations, module
        self._sources, self._graph = sources, graph
        self._starts: dict[int | None, Start | None] = {}
        self._by_tags = {eqn.tags: eqn.index for eqn in equations if eqn.tags}
        self._ends: dict[tuple[int, ...], list[int]] = {}
        self._by_start: dict[tuple[Start | None, str], int] = {}
        self._inner: dict[int, list[int]] = {}
        for eqn in reversed(equations):
            if not self._by_tags:
                self._by_start[start(eqn.span), eqn.primitive] = eqn.index
            for cut in range(len(eqn.tags)):
                self._ends.setdefault(eqn.tags[cut:], []).append(eqn.index)
            if eqn.parent is not None:
                self._inner.setdefault(eqn.parent, []).append(eqn.index)
        self.inferred: dict[str, int] = {}
        self.lost: set[str] = set()
        # Cheap instructions that one of these equations made, and the equations.
        self._narrowed: set[str] = set()
        self.open: set[int] = set()
        self._constant: dict[str, bool] = {}
        self._recorded = {
            raw.name: tuple(self._read(raw)) for raw in module.instructions()
        }
        # By opcode, the equations that have such an instruction already.
        self._done: dict[str, set[int]] = {}
        for raw in module.instructions():
            if any(can_make(equations[i], raw) for i in self._recorded[raw.name]):
                done = self._done.setdefault(raw.opcode, set())
                done.update(self._recorded[raw.name])
        self._infer()

    def of(self, raw: Raw) -> tuple[int, ...]:
        """List the equations of an instruction: several where XLA merged some."""
        if raw.name in self.lost:  # none of the equations on record made it
            return ()
        recorded = self._recorded.get(raw.name, ())
        if raw.name not in self.inferred:
            return recorded
        kept = recorded if raw.opcode == "clamp" else ()
        return (*kept, self.inferred[raw.name])

    def work(self, raw: Raw) -> tuple[int, ...]:
        """List those that an instruction computes, without what only helps them.

        Numbers that XLA merged, such as the zero of each ``relu``, carry the mark of
        one equation, and say nothing about where the others are computed.
        """
        if raw.opcode in FREE or not (found := self.of(raw)):
            return ()
        if self.is_constant(raw):
            return tuple(i for i in found if self._equations[i].fixed)
        return found

    def is_constant(self, raw: Raw) -> bool:
        """Say whether an instruction's value is known before the program runs."""
        if raw.name not in self._constant:
            self._constant[raw.name] = False  # until its inputs are known
            inputs = [self._module.by_name.get(name) for name in self._sources_of(raw)]
            self._constant[raw.name] = raw.opcode in ("constant", "iota") or (
                bool(inputs)
                and raw.opcode not in CONTROL
                and all(one is not None and self.is_constant(one) for one in inputs)
            )
        return self._constant[raw.name]

    def _sources_of(self, raw: Raw) -> tuple[str, ...]:
        if raw.opcode == "parameter":
            passed = self._module.names.get(raw.name)
            return (passed,) if passed else ()
        return raw.inputs if raw.opcode != "constant" else ()

    def start(self, raw: Raw) -> Start | None:
        """Read where an instruction's expression starts, from the module's tables.

        Where it ends is not to be had: expressions that start at one place share
        one entry there, with the end of whichever came first.
        """
        if raw.frame not in self._starts:
            location = self._module.location(raw.frame)
            self._starts[raw.frame] = start(self._sources.span(location))
        return self._starts[raw.frame]

    def _read(self, raw: Raw) -> Iterator[int]:
        # XLA joins the names of merged instructions with semicolons.
        for name in raw.op_name.split(";") if raw.op_name else ():
            index = self._named(name, raw)
            if index is not None:
                yield index

    def _named(self, name: str, raw: Raw) -> int | None:
        if self._by_tags:
            tags = _equations.tags(name)
            if tags in self._by_tags:
                return self._by_tags[tags]
            # XLA may cut a path's head where it inlines a computation. Of a function
            # that is called twice it cannot be told then which call it was.
            ends = self._ends.get(tags, [])
            return ends[0] if len(ends) == 1 else None
        return self._by_start.get((self.start(raw), _equations.last_part(name)))

    # --- inference ----------------------------------------------------------------

    def _infer(self) -> None:
        """Find the makers of the instructions whose record cannot be right."""
        for raw in self._module.instructions():
            if self._is_combiner(raw) or raw.opcode in FREE | CONTROL:
                continue
            recorded = [self._equations[i] for i in self._recorded[raw.name]]
            if raw.opcode in HEAVY:
                if not any(can_make(eqn, raw) for eqn in recorded):
                    found = self._from_readers(raw) or self._nearby(raw)
                    self._settle(raw, found or self._along(raw))
            elif raw.opcode == "clamp":
                self._settle_cheap(raw, self._bound(raw))
            elif not recorded and raw.opcode in _ANEW and not self.is_constant(raw):
                self._settle_cheap(raw, self._scattered(raw) or self._along(raw))
            elif not recorded and self._is_result(raw):
                self._settle_cheap(raw, self._along(raw))

    def _is_combiner(self, raw: Raw) -> bool:
        """Say whether it is in the computation of a reduction or a sort."""
        return raw.inside != self._module.entry and (
            raw.inside not in self._module.callers
        )

    def _is_result(self, raw: Raw) -> bool:
        """Whether the program returns it, and reads it nowhere else."""
        caller = self._module.callers.get(raw.inside)
        if raw.is_root and caller is not None and caller.opcode == "fusion":
            return self._is_result(caller)
        if raw.inside != self._module.entry:
            return False
        users = self._module.users.get(raw.name, [])
        return raw.is_root or all(
            (one.opcode == "tuple" and one.is_root)
            or (one.opcode in RENAMING and self._is_result(one))
            for one in users
        )

    def _settle(self, raw: Raw, found: set[int]) -> None:
        if len(found) == 1:
            self.inferred[raw.name] = found.pop()
        else:
            self.lost.add(raw.name)

    def _settle_cheap(self, raw: Raw, found: set[int]) -> None:
        if len(found) == 1:
            (self.inferred[raw.name],) = found
        elif found:
            self._narrowed.add(raw.name)
            self.open |= found

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
                halves = user.opcode in _HALVES.get(raw.opcode, ()) and one is raw
                made = {
                    e.index for e in recorded if is_maker(e, raw) and same_kind(e, raw)
                }
                if made and (halves or user.opcode in _MOVING):
                    found |= made
                elif user.opcode in _MOVING:
                    queue.append(user)
                else:  # next to what it is combined with, by one equation of several
                    found |= {e.index for e in recorded if is_part(e, raw)}
        return found if len(found) == 1 else set()

    def _nearby(self, raw: Raw) -> set[int]:
        """Makers next to the equations that are on record, inside them or around."""
        recorded = self._recorded[raw.name]

        def wanted(index: int) -> bool:
            eqn = self._equations[index]
            return is_maker(eqn, raw) and fits(eqn, raw)

        def passes(index: int) -> bool:
            eqn = self._equations[index]
            return is_light(eqn) or bool(eqn.regions)

        inside = {i for holder in recorded for i in self._inside(holder) if wanted(i)}
        producers, consumers = self._graph.producers, self._graph.consumers
        found = inside or nearest(recorded, producers, wanted, passes)
        found = found or nearest(recorded, consumers, wanted, passes)
        # Those that no instruction of this kind names, if there are any.
        return (found - self._done.get(raw.opcode, set())) or found

    def _inside(self, holder: int) -> Iterator[int]:
        for index in self._inner.get(holder, ()):
            yield index
            yield from self._inside(index)

    def _along(self, raw: Raw) -> set[int]:
        """Makers between the equations on record of what it reads and what reads it."""
        is_fixed = self.is_constant(raw)

        def wanted(index: int) -> bool:
            eqn = self._equations[index]
            if is_fixed:
                return eqn.fixed and fits(eqn, raw)
            if raw.opcode in HEAVY:
                can = is_maker(eqn, raw) or is_composite(eqn)
                return can and fits(eqn, raw)
            return is_alike(eqn, raw)

        def passes(index: int) -> bool:
            eqn = self._equations[index]
            if raw.opcode in HEAVY:
                return is_light(eqn) or bool(eqn.regions)
            return bool(eqn.regions) or eqn.primitive in PASSING

        readers = self._first_recorded(raw)
        after = {i for one in readers for i in self._recorded[one.name]}
        ends = self._graph.results() if self._is_result(raw) else set()
        found = set(filter(wanted, ends))
        found = found or nearest(after, self._graph.producers, wanted, passes)
        return (found - self._done.get(raw.opcode, set())) or found

    def _scattered(self, raw: Raw) -> set[int]:
        """The scatter that is all that an instruction helps to compute.

        XLA writes one out as steps: a check of bounds, a slice, a choice.
        """
        first = self._first_recorded(raw, True)
        names = {_equations.last_part(one.op_name) for one in first}
        if not all(name.startswith("scatter") for name in names):
            return set()
        found = {i for one in first for i in self._recorded[one.name]}
        return found if len(found) == 1 else set()

    def _bound(self, raw: Raw) -> set[int]:
        """The bound that a clamp also keeps: XLA merges a ``max`` and a ``min``."""
        recorded = self._recorded[raw.name]
        bounds = {"max": "min", "min": "max"}
        other = {bounds.get(self._equations[i].primitive) for i in recorded}
        found = nearest(
            recorded,
            self._graph.producers,
            lambda i: self._equations[i].primitive in other,
            lambda i: self._equations[i].primitive in PASSING,
        )
        return {i for i in found if fits(self._equations[i], raw)}

    def _first_recorded(self, raw: Raw, anything: bool = False) -> list[Raw]:
        """The first readers that have a record; none if one of them has none."""
        queue, seen, found = [raw], {raw.name}, list[Raw]()
        while queue:
            for one in self._readers(queue.pop()):
                if one.name in seen:
                    continue
                seen.add(one.name)
                if self._recorded[one.name]:
                    found.append(one)
                elif (anything or one.opcode in _MOVING) and len(seen) < 50:
                    queue.append(one)
                else:
                    return []
        return found

    def _readers(self, raw: Raw) -> Iterator[Raw]:
        """The instructions that read a value, inside fusions as well."""
        for user in self._module.users.get(raw.name, []):
            if user.opcode != "fusion":
                yield user
                continue
            for one in self._module.computations.get(user.called()[0][1], []):
                if self._module.names.get(one.name) == raw.name:
                    yield from self._module.users.get(one.name, [])
        caller = self._module.callers.get(raw.inside)
        if raw.is_root and caller is not None and caller.opcode == "fusion":
            yield from self._readers(caller)

    # --- what is gone -------------------------------------------------------------

    def unexplained(self) -> Iterator[Raw]:
        """The instructions that run and that no equation is known for."""
        for raw in self._module.instructions():
            if self._is_combiner(raw) or raw.opcode in CONTROL | {"fusion"}:
                continue
            known = self.of(raw) if self.is_constant(raw) else self.work(raw)
            is_told = raw.name in self._narrowed or self._is_product_part(raw)
            if not known and not is_told:
                yield raw

    def _is_product_part(self, raw: Raw) -> bool:
        """Whether it multiplies what a product adds up: XLA splits small ones so."""
        if raw.opcode != "multiply":
            return False
        users = self._module.users.get(raw.name, [])
        sums = [i for user in users if user.opcode == "reduce" for i in self.of(user)]
        return any(self._equations[i].primitive == "dot_general" for i in sums)

    def may_be(self, eqn: Equation, raws: Iterable[Raw]) -> bool:
        """Say whether one of the unexplained instructions can be this one's work."""
        if eqn.index in self.open:
            return True
        for raw in raws:
            if self.is_constant(raw):
                # A constant spread over an array is the constant itself.
                if eqn.fixed and raw.opcode != "broadcast" and fits(eqn, raw):
                    return True
            elif raw.opcode in HEAVY:
                if can_make(eqn, raw) and (is_composite(eqn) or fits(eqn, raw)):
                    return True
            elif fits(eqn, raw):
                return True
        return False
