"""Finds the equations that an HLO instruction came from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

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
)

Start = tuple[str, int, int]

# What leads from an instruction to the one that computes the same values.
_MOVING = {*RENAMING, "reshape", "transpose", "copy", "convert", "slice", "reverse"}


def start(span: Span | None) -> Start | None:
    """Give the place where a span starts: file, line, column."""
    return None if span is None else (span.file, span.line, span.column)


def _is_scatter(raw: Raw) -> bool:
    """Whether an instruction stands for a scatter, or for a part of one."""
    return _equations.last_part(raw.op_name).startswith("scatter")


class Marks:
    """Knows the equations of each instruction of a module.

    By the numbers that ``_equations.Numbered`` left in the metadata; where a JAX
    version does not allow those, by the primitive and where its expression starts.

    XLA drops metadata, and gives an instruction that of its neighbor. Where an
    instruction's equation cannot have made it, the one that can is looked for among
    those next to it. If there is just one, it is inferred; if there are several, it
    is said that it is one of them.

    Attributes:
        inferred: equations by the name of an instruction that has another record, or
            none.
        choices: the equations of which one made an instruction, by its name.
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
        self._several_named: dict[str, list[int]] = {}
        self._by_start: dict[tuple[Start | None, str], int] = {}
        for eqn in reversed(equations):
            if not self._by_tags:
                self._by_start[start(eqn.span), eqn.primitive] = eqn.index
            for cut in range(len(eqn.tags)):
                self._ends.setdefault(eqn.tags[cut:], []).append(eqn.index)
        self.inferred: dict[str, tuple[int, ...]] = {}
        self.choices: dict[str, tuple[int, ...]] = {}
        self.lost: set[str] = set()
        # Those of which a choice holds all equations that can have made it.
        self._settled: set[str] = set()
        self._constant: dict[str, bool] = {}
        self._recorded = {
            raw.name: tuple(self._read(raw)) for raw in module.instructions()
        }
        self._infer()

    def of(self, raw: Raw) -> tuple[int, ...]:
        """List the equations of an instruction: several where XLA merged some."""
        recorded = self._recorded.get(raw.name, ())
        inferred = self.inferred.get(raw.name, ())
        if raw.name in self.lost:  # no choice of the equations on record made it
            return ()
        if inferred:  # a loop is no product, though XLA wrote its name on one
            recorded = tuple(i for i in recorded if not self._equations[i].regions)
        return tuple(dict.fromkeys((*recorded, *inferred)))

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
            if len(ends) > 1:
                self._several_named[raw.name] = ends
            return ends[0] if len(ends) == 1 else None
        return self._by_start.get((self.start(raw), _equations.last_part(name)))

    # --- inference ----------------------------------------------------------------

    def _infer(self) -> None:
        """Find the makers of the instructions whose record cannot be right."""
        open_ = [raw for raw in self._module.instructions() if self._is_open(raw)]
        for raw in list(open_):
            if found := self._from_users(raw) or self._expanded(raw):
                self.inferred[raw.name] = found
                open_.remove(raw)
        for raw in self._module.instructions():
            if found := self._unrecorded(raw) or self._clamped(raw):
                self.inferred[raw.name] = found
        for raw in open_:
            ends = self._several_named.get(raw.name, ())
            makers = {i for i in ends if can_make(self._equations[i], raw)}
            self._settle(raw, makers or self._neighbors(raw) or self._likely(raw))

    def _is_open(self, raw: Raw) -> bool:
        if raw.opcode not in HEAVY or self._is_combiner(raw):
            return False
        recorded = [self._equations[i] for i in self._recorded[raw.name]]
        return not any(can_make(eqn, raw) for eqn in recorded)

    def _is_combiner(self, raw: Raw) -> bool:
        """Say whether it is in the computation of a reduction or a sort."""
        return raw.inside != self._module.entry and (
            raw.inside not in self._module.callers
        )

    def settle_alone(self, raw: Raw) -> None:
        """Look for the maker of an instruction that is all of a kernel's work."""
        if self.of(raw) or raw.name in self.choices:
            return
        if several := self._several_named.get(raw.name):
            self._settle(raw, several)
            return
        found = self._from_users(raw) or self._likely(raw) or self._continued(raw)
        self._settle(raw, found)

    def _continued(self, raw: Raw) -> set[int]:
        """What its inputs were inferred to be a part of, if that may be anything."""
        found: set[int] = set()
        queue, seen = [raw.name], {raw.name}
        while queue and len(seen) < 200:
            one = self._module.by_name.get(queue.pop())
            if one is None:
                continue
            inferred = self.inferred.get(one.name, ())
            found |= {i for i in inferred if is_composite(self._equations[i])}
            idle = one.opcode not in CONTROL and not self.of(one)
            names = self._sources_of(one) if idle else ()
            inner = self._fused_root(one) if one.opcode == "fusion" else None
            names = (*names, inner) if inner else names
            for name in names:
                if name not in seen:
                    seen.add(name)
                    queue.append(name)
        return found

    def _fused_root(self, raw: Raw) -> str | None:
        body = self._module.computations.get(raw.called()[0][1], [])
        return next((one.name for one in body if one.is_root), None)

    def _settle(self, raw: Raw, found: Iterable[int]) -> None:
        choice = tuple(sorted(found))
        if len(choice) == 1:
            self.inferred[raw.name] = choice
        elif choice:
            self.choices[raw.name] = choice
        if raw.opcode in HEAVY and len(choice) != 1:
            self.lost.add(raw.name)

    def _from_users(self, raw: Raw) -> tuple[int, ...]:
        """The equations that the next reader names as its source, and can make this.

        XLA rewrites a product of a vector, say, as one of matrices, and leaves the
        equation's mark only on the bitcast back to the wanted shape.
        """
        queue, seen = [raw], {raw.name}
        parts: dict[int, None] = {}
        while queue:
            for user in self._readers(queue.pop()):
                if user.name in seen:
                    continue
                seen.add(user.name)
                recorded = [self._equations[i] for i in self._recorded[user.name]]
                if user.opcode not in _MOVING:
                    # Next to what it is combined with, by one equation of several.
                    parts |= {e.index: None for e in recorded if is_part(e, raw)}
                    continue
                if found := [e.index for e in recorded if is_maker(e, raw)]:
                    return tuple(found)
                queue.append(user)
        return tuple(parts) if len(parts) == 1 else ()

    def _unrecorded(self, raw: Raw) -> tuple[int, ...]:
        """The equation of a cheap instruction that XLA made anew, without a record."""
        if raw.opcode not in {*ALIKE, "dynamic-slice", "compare", "and", "broadcast"}:
            return ()
        if self._recorded[raw.name] or self._is_combiner(raw) or self.is_constant(raw):
            return ()
        return self._expanded(raw) or self._behind_readers(raw)

    def _clamped(self, raw: Raw) -> tuple[int, ...]:
        """The bound that a clamp also keeps: XLA merges a ``max`` and a ``min``."""
        recorded = self._recorded[raw.name] if raw.opcode == "clamp" else ()
        bounds = {"max": "min", "min": "max"}
        other = {bounds.get(self._equations[i].primitive) for i in recorded}
        found = nearest(
            recorded,
            self._graph.producers,
            lambda i: self._equations[i].primitive in other,
            self._moves,
        )
        fitting = [i for i in found if fits(self._equations[i], raw)]
        return tuple(fitting) if len(fitting) == 1 else ()

    def _expanded(self, raw: Raw) -> tuple[int, ...]:
        """The scatter that is all that an instruction helps to compute.

        XLA writes one out as steps: a check of bounds, a slice, a choice.
        """
        first = self._first_recorded(raw, lambda one: True)
        if not all(_is_scatter(one) for one in first):
            return ()
        found = {i for one in first for i in self._recorded[one.name]}
        return tuple(found) if len(found) == 1 else ()

    def _behind_readers(self, raw: Raw) -> tuple[int, ...]:
        """The equation that makes what the next reader's equation reads.

        Where there are several, it is one of them.
        """
        first = self._first_recorded(raw, lambda one: one.opcode in _MOVING)
        found = nearest(
            {i for one in first for i in self._recorded[one.name]},
            self._graph.producers,
            lambda i: is_alike(self._equations[i], raw),
            self._moves,
        )
        if len(found) > 1:
            self.choices[raw.name] = tuple(sorted(found))
            self._settled.add(raw.name)
        return tuple(found) if len(found) == 1 else ()

    def _moves(self, index: int) -> bool:
        eqn = self._equations[index]
        return bool(eqn.regions) or eqn.primitive in PASSING

    def _first_recorded(self, raw: Raw, passes: Callable[[Raw], bool]) -> list[Raw]:
        """The first readers that have a record; none if one of them has none."""
        queue, seen, found = [raw], {raw.name}, list[Raw]()
        while queue:
            readers = [
                one for one in self._readers(queue.pop()) if one.name not in seen
            ]
            seen.update(one.name for one in readers)
            for one in readers:
                if self._recorded[one.name]:
                    found.append(one)
                elif passes(one) and one.opcode not in CONTROL and len(seen) < 50:
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

    def _neighbors(self, raw: Raw) -> set[int]:
        """Makers next to the equations that are on record, inside them or around."""
        recorded = self._recorded[raw.name]

        def wanted(index: int) -> bool:
            eqn = self._equations[index]
            return is_maker(eqn, raw) and fits(eqn, raw)

        def passes(index: int) -> bool:
            eqn = self._equations[index]
            return is_light(eqn) or bool(eqn.regions)

        inside = {
            eqn.index
            for eqn in self._equations
            if wanted(eqn.index) and any(self._holds(i, eqn) for i in recorded)
        }
        if inside:
            return self._undone(inside, raw)
        before = nearest(recorded, self._graph.producers, wanted, passes)
        after = before or nearest(recorded, self._graph.consumers, wanted, passes)
        return self._undone(after, raw)

    def _holds(self, holder: int, eqn: Equation) -> bool:
        parent = eqn.parent
        while parent is not None and parent != holder:
            parent = self._equations[parent].parent
        return parent == holder

    def _undone(self, found: set[int], raw: Raw) -> set[int]:
        """Prefer those that no instruction of this kind names."""
        done = {
            i
            for one in self._module.instructions()
            if one.opcode == raw.opcode and one.name != raw.name
            for i in self.of(one)
        }
        return (found - done) or found

    def _likely(self, raw: Raw) -> set[int]:
        """Makers anywhere that have no instruction yet."""
        linked = {i for one in self._module.instructions() for i in self.work(one)}
        free = [
            eqn
            for eqn in self._equations
            if eqn.index not in linked
            and not eqn.regions
            and eqn.fate != "unused"
            and (eqn.fixed or not self.is_constant(raw))
        ]
        makers = [eqn for eqn in free if is_maker(eqn, raw)]
        fitting = [eqn for eqn in makers if fits(eqn, raw)]
        composites = [eqn for eqn in free if is_composite(eqn)]
        heavy = makers if raw.opcode in HEAVY else []
        found = fitting or [*composites, *heavy]
        return {eqn.index for eqn in found} or self._several(raw)

    def _several(self, raw: Raw) -> set[int]:
        """Those that have such an instruction, and may be more than one."""
        return {
            i
            for one in self._module.instructions()
            if one.opcode == raw.opcode
            for i in self.of(one)
            if is_composite(self._equations[i])
        }

    def unexplained(self) -> Iterator[Raw]:
        """The instructions that run and that no equation is known for."""
        for raw in self._module.instructions():
            if (
                self._is_combiner(raw)
                or raw.opcode in CONTROL
                or raw.opcode == "fusion"
            ):
                continue
            known = self.of(raw) if self.is_constant(raw) else self.work(raw)
            is_settled = raw.name in self._settled or self._is_product_part(raw)
            if not known and not is_settled:
                yield raw

    def _is_product_part(self, raw: Raw) -> bool:
        """Whether it multiplies what a product adds up: XLA splits small ones so."""
        if raw.opcode != "multiply":
            return False
        users = self._module.users.get(raw.name, [])
        sums = [i for user in users if user.opcode == "reduce" for i in self.of(user)]
        return any(self._equations[i].primitive == "dot_general" for i in sums)

    def may_be(self, eqn: Equation, raw: Raw) -> bool:
        """Say whether an instruction without an equation can be this one's work."""
        if self.is_constant(raw):
            # A constant spread over an array is the constant itself.
            return eqn.fixed and raw.opcode != "broadcast" and fits(eqn, raw)
        if raw.opcode in HEAVY:
            return can_make(eqn, raw)
        return fits(eqn, raw)
