"""Joins equations and HLO: which kernel holds which equation."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ._hlo import FREE, Raw, Step
from ._marks import Marks
from ._model import Equation, Instruction, Kernel, Link, Span
from ._work import elements, is_light

_PLUMBING = (FREE - {"bitcast"}) | {"call"}
# What XLA adds on its own: to keep a value, to move it, to count a loop's turns.
_ITS_OWN = {"copy", "copy-start", "bitcast", "tuple", "get-tuple-element"}


@dataclass(frozen=True)
class Row:
    """One line of the HLO column: a kernel, or an instruction that is none."""

    where: tuple[str, ...]
    kernel: Kernel | None = None
    instruction: Instruction | None = None


def instruction(marks: Marks, raw: Raw, text: str) -> Instruction:
    """Make the public record of an instruction."""
    return Instruction(
        raw.name, raw.opcode, raw.type, text, marks.of(raw), marks.start(raw)
    )


def kernel(marks: Marks, step: Step, index: int) -> Kernel:
    """Make the public record of a kernel."""
    raws = [raw for raw, _ in step.inside]
    members = _members(marks, step, raws)
    inferred = {marks.inferred[raw.name] for raw in raws if raw.name in marks.inferred}
    recorded = {
        i for raw in raws if raw.name not in marks.inferred for i in marks.work(raw)
    }
    return Kernel(
        index=index,
        name=step.raw.name,
        kind=step.kind,
        type=step.raw.type,
        members=tuple(sorted(members)),
        instructions=tuple(instruction(marks, *one) for one in step.inside),
        where=step.where,
        runs=step.runs,
        inferred=tuple(sorted(inferred & members - recorded)),
        lost=not members and any(map(_is_work, raws)),
    )


def _members(marks: Marks, step: Step, raws: list[Raw]) -> set[int]:
    members = {i for raw in raws for i in marks.work(raw)}
    return members or set(marks.work(step.raw))


def _is_work(raw: Raw) -> bool:
    return raw.opcode not in FREE | _ITS_OWN


def rows(marks: Marks, steps: list[Step]) -> list[Row]:
    """Turn the program's steps into kernels and lone instructions."""
    found: list[Row] = []
    count = 0
    for step in steps:
        if step.is_kernel:
            found.append(Row(step.where, kernel=kernel(marks, step, count)))
            count += 1
        else:
            one = instruction(marks, step.raw, step.raw.text({}))
            found.append(Row(step.where, instruction=one))
    return found


class Fates:
    """Says what became of each equation.

    Gone is said of an equation only if no instruction can be its work: each that is
    of its kind came from another equation, or is of another size.
    """

    def __init__(
        self,
        equations: list[Equation],
        rows: list[Row],
        marks: Marks,
        expressions: Callable[[Span | None], str | None],
    ) -> None:
        self._expressions = functools.cache(expressions)
        self._kernels: dict[int, list[int]] = defaultdict(list)
        self._loose: dict[int, list[Instruction]] = defaultdict(list)
        for row in rows:
            self._take(row)
        # One of each kind is enough to ask whether it may be an equation's work.
        kinds = {
            (raw.opcode, raw.type, marks.is_constant(raw)): raw
            for raw in marks.unexplained()
            if _is_work(raw)
        }
        self._unexplained = list(kinds.values())
        self._equations, self._marks = equations, marks

    def _take(self, row: Row) -> None:
        if row.kernel is None:
            idle = [row.instruction] if row.instruction else []
        else:
            idle = [one for one in row.kernel.instructions if one.opcode in FREE]
            for member in row.kernel.members:
                self._kernels[member].append(row.kernel.index)
        for one in idle:
            for index in one.equations:
                self._loose[index].append(one)

    def all(self) -> tuple[Equation, ...]:
        """The equations, each with its fate and its kernels."""
        return tuple(map(self._filled, self._equations))

    def _filled(self, eqn: Equation) -> Equation:
        found = tuple(dict.fromkeys(self._kernels[eqn.index]))
        fate = "kernel" if found else self._fate(eqn)
        return replace(
            eqn,
            kernels=found,
            fate=fate,
            expression=self._expressions(eqn.span),
        )

    def _fate(self, eqn: Equation) -> str:
        if eqn.fate == "unused":
            return "unused"
        loose = self._loose[eqn.index]
        is_passed = any(one.opcode not in ("constant", "parameter") for one in loose)
        if is_passed and (is_light(eqn) or eqn.regions):
            return "view"
        if eqn.regions:
            return "wrapper"
        if self._marks.may_be(eqn, self._unexplained):
            return "unknown"
        # A constant that only helped, such as a sum's zero, has another size.
        sizes = [elements(one.type) for one in loose if one.opcode == "constant"]
        if eqn.fixed or elements(eqn.outputs[0] if eqn.outputs else "") in sizes:
            return "folded"
        return "gone"


def shown_rows(rows: list[Row], equations: tuple[Equation, ...]) -> list[Row]:
    """Leave out the instructions that only carry values around."""

    def tells(one: Instruction | None) -> bool:
        if one is None:
            return False
        if one.opcode == "constant":
            return any(equations[i].fate == "folded" for i in one.equations)
        return bool(one.equations) and one.opcode not in _PLUMBING

    return [row for row in rows if row.kernel is not None or tells(row.instruction)]


def links(equations: Sequence[Equation]) -> tuple[Link, ...]:
    """Group the equations by the expression they came from, in source order."""
    groups: dict[Span | None, list[Equation]] = defaultdict(list)
    for eqn in equations:
        groups[eqn.span].append(eqn)
    return tuple(
        _linked(group[0].expression, span, group)
        for span, group in sorted(groups.items(), key=lambda item: order(item[0]))
    )


def _linked(expression: str | None, span: Span | None, group: list[Equation]) -> Link:
    return Link(
        expression=expression,
        span=span,
        equations=tuple(eqn.index for eqn in group),
        kernels=tuple(sorted({k for eqn in group for k in eqn.kernels})),
    )


def order(span: Span | None) -> tuple[bool, str, int, int, int, int]:
    """Sort spans by place; what has no span comes last."""
    if span is None:
        return True, "", 0, 0, 0, 0
    place = (span.line, span.column, -span.end_line, -span.end_column)
    return False, span.path, *place
