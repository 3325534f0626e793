"""Joins equations and HLO: which kernel holds which equation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

from ._hlo import FREE, Raw, Step
from ._marks import Marks
from ._model import Equation, Instruction, Kernel, Link, Span
from ._work import elements, fits, is_light

# What may become a bitcast, and XLA records those as the argument's that they rename.
_RENAMES = {"reshape", "squeeze", "expand_dims", "broadcast_in_dim", "transpose"}
# What XLA adds on its own: to keep a value, to move it, to count a loop's turns.
_ITS_OWN = {"copy", "copy-start", "bitcast", "tuple", "get-tuple-element"}


def kernels(marks: Marks, steps: Sequence[Step]) -> tuple[Kernel, ...]:
    """Make the public records of the steps that do work."""
    working = [step for step in steps if step.is_kernel]
    return tuple(_kernel(marks, step, i) for i, step in enumerate(working))


def _kernel(marks: Marks, step: Step, index: int) -> Kernel:
    raws = [raw for raw, _ in step.inside]
    recorded, inferred = set[int](), set[int]()
    for raw in raws:
        (inferred if raw.name in marks.inferred else recorded).update(marks.work(raw))
    members = recorded | inferred or {*marks.work(step.raw)}
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
        inferred=tuple(sorted(inferred - recorded)),
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
    # The instructions that cost nothing: lone ones, and those in kernels.
    idle: dict[int, list[Raw]] = defaultdict(list)
    for step in steps:
        insides = [raw for raw, _ in step.inside if raw.opcode in FREE]
        for raw in insides if step.is_kernel else [step.raw]:
            for index in marks.of(raw):
                idle[index].append(raw)
    # One of each kind is enough to ask whether it may be an equation's work.
    unexplained = {
        (raw.opcode, raw.type, marks.is_constant(raw)): raw
        for raw in marks.unexplained()
        if _is_work(raw)
    }
    bitcasts = [one for one in marks.module.instructions() if one.opcode == "bitcast"]
    loose = [one for one in bitcasts if not marks.of(one)]

    def fate(eqn: Equation) -> str:
        if eqn.index in within:
            return "kernel"
        # What JAX lowered to nothing, such as a stop_gradient, is no instruction's.
        raws = list(unexplained.values()) if eqn.tags[-1] in lowered else []
        found = _fate(eqn, idle[eqn.index], marks, raws)
        is_loose = eqn.primitive in _RENAMES and any(fits(eqn, one) for one in loose)
        return "view" if found == "gone" and is_loose else found

    return tuple(
        replace(
            eqn,
            kernels=tuple(within.get(eqn.index, ())),
            fate=fate(eqn),
            expression=expression(eqn.span),
        )
        for eqn in equations
    )


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
    is_constant = eqn.fixed or elements(eqn.outputs[0] if eqn.outputs else "") in sizes
    return "folded" if is_constant else "gone"


def links(equations: Sequence[Equation]) -> tuple[Link, ...]:
    """Group the equations by the expression they came from, in source order.

    The outer one of two that begin together comes first, and what has no span last.
    """
    groups: dict[Span | None, list[Equation]] = defaultdict(list)
    for eqn in equations:
        groups[eqn.span].append(eqn)

    def order(span: Span | None) -> tuple[bool, str, int, int, int, int]:
        if span is None:
            return True, "", 0, 0, 0, 0
        place = (span.line, span.column, -span.end_line, -span.end_column)
        return False, span.path, *place

    return tuple(
        Link(
            expression=groups[span][0].expression,
            span=span,
            equations=tuple(eqn.index for eqn in groups[span]),
            kernels=tuple(sorted({k for eqn in groups[span] for k in eqn.kernels})),
        )
        for span in sorted(groups, key=order)
    )
