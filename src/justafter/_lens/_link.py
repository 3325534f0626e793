"""Joins equations and HLO: which kernel holds which equation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ._hlo import FREE, Raw, Step
from ._marks import Marks
from ._model import Equation, Instruction, Kernel, Link, Span
from ._work import elements, is_light

# What XLA adds on its own: to keep a value, to move it, to count a loop's turns.
_ITS_OWN = {"copy", "copy-start", "bitcast", "tuple", "get-tuple-element"}


def kernels(marks: Marks, steps: Sequence[Step]) -> tuple[Kernel, ...]:
    """Make the public records of the steps that do work."""
    working = [step for step in steps if step.is_kernel]
    return tuple(_kernel(marks, step, i) for i, step in enumerate(working))


def _kernel(marks: Marks, step: Step, index: int) -> Kernel:
    raws = [raw for raw, _ in step.inside]
    members = {i for raw in raws for i in marks.work(raw)} or {*marks.work(step.raw)}
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
        instructions=tuple(
            Instruction(raw.name, raw.opcode, raw.type, text, marks.of(raw))
            for raw, text in step.inside
        ),
        where=step.where,
        runs=step.runs,
        inferred=tuple(sorted(inferred & members - recorded)),
        lost=not members and any(map(_is_work, raws)),
    )


def _is_work(raw: Raw) -> bool:
    return raw.opcode not in FREE | _ITS_OWN


def with_fates(
    equations: Sequence[Equation],
    kernels: Sequence[Kernel],
    steps: Sequence[Step],
    marks: Marks,
    expression: Callable[[Span | None], str | None],
    lowered: frozenset[int],
) -> tuple[Equation, ...]:
    """The equations, each with its expression, its kernels and its fate."""
    within: dict[int, list[int]] = defaultdict(list)
    for kernel in kernels:
        for member in kernel.members:
            within[member].append(kernel.index)
    idle: dict[int, list[Raw]] = defaultdict(list)
    for raw in _idle(steps):
        for index in marks.of(raw):
            idle[index].append(raw)
    # One of each kind is enough to ask whether it may be an equation's work.
    unexplained = {
        (raw.opcode, raw.type, marks.is_constant(raw)): raw
        for raw in marks.unexplained()
        if _is_work(raw)
    }

    def fate(eqn: Equation) -> str:
        if eqn.index in within:
            return "kernel"
        # What JAX lowered to nothing, such as a stop_gradient, is no instruction's.
        raws = list(unexplained.values()) if eqn.tags[-1] in lowered else []
        return _fate(eqn, idle[eqn.index], marks, raws)

    return tuple(
        replace(
            eqn,
            kernels=tuple(within.get(eqn.index, ())),
            fate=fate(eqn),
            expression=expression(eqn.span),
        )
        for eqn in equations
    )


def _idle(steps: Sequence[Step]) -> Iterator[Raw]:
    """The instructions that cost nothing: lone ones, and those in kernels."""
    for step in steps:
        if not step.is_kernel:
            yield step.raw
        else:
            yield from (raw for raw, _ in step.inside if raw.opcode in FREE)


def _fate(eqn: Equation, idle: list[Raw], marks: Marks, unexplained: list[Raw]) -> str:
    """What became of an equation that no kernel computes.

    Gone is said only if no instruction can be its work: each that is of its kind came
    from another equation, or is of another size.
    """
    if eqn.fate == "unused":
        return "unused"
    is_passed = any(raw.opcode not in ("constant", "parameter") for raw in idle)
    if is_passed and (is_light(eqn) or eqn.regions):
        return "view"
    if eqn.regions:
        return "wrapper"
    if marks.may_be(eqn, unexplained):
        return "unknown"
    # A constant that only helped, such as a sum's zero, has another size.
    sizes = [elements(raw.type) for raw in idle if raw.opcode == "constant"]
    if eqn.fixed or elements(eqn.outputs[0] if eqn.outputs else "") in sizes:
        return "folded"
    return "gone"


def links(equations: Sequence[Equation]) -> tuple[Link, ...]:
    """Group the equations by the expression they came from, in source order."""
    groups: dict[Span | None, list[Equation]] = defaultdict(list)
    for eqn in equations:
        groups[eqn.span].append(eqn)
    return tuple(
        Link(
            expression=group[0].expression,
            span=span,
            equations=tuple(eqn.index for eqn in group),
            kernels=tuple(sorted({k for eqn in group for k in eqn.kernels})),
        )
        for span, group in sorted(groups.items(), key=lambda item: order(item[0]))
    )


def order(span: Span | None) -> tuple[bool, str, int, int, int, int]:
    """Sort spans by place; what has no span comes last."""
    if span is None:
        return True, "", 0, 0, 0, 0
    place = (span.line, span.column, -span.end_line, -span.end_column)
    return False, span.path, *place
