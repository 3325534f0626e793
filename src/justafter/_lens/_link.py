"""Joins equations and HLO: which kernel holds which equation."""

from collections import defaultdict
from dataclasses import dataclass, replace

from ._hlo import FREE, Raw, Step
from ._marks import Marks, elements
from ._model import Equation, Instruction, Kernel, Link, Span

_PLUMBING = (FREE - {"bitcast"}) | {"call"}


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
    instructions = tuple(instruction(marks, *one) for one in step.inside)
    members = {e for i in instructions if i.opcode not in FREE for e in i.equations}
    if not members or marks.is_inferred(step.raw):
        members.update(marks.of(step.raw))
    return Kernel(
        index=index,
        name=step.raw.name,
        kind=step.kind,
        type=step.raw.type,
        members=tuple(sorted(members)),
        instructions=instructions,
        where=step.where,
    )


def rows(marks: Marks, steps: list[Step]) -> list[Row]:
    """Turn the program's steps into kernels and lone instructions."""
    found, count = [], 0
    for step in steps:
        if step.is_kernel:
            found.append(Row(step.where, kernel=kernel(marks, step, count)))
            count += 1
        else:
            one = instruction(marks, step.raw, step.raw.text({}))
            found.append(Row(step.where, instruction=one))
    return found


def with_fates(
    equations: list[Equation], rows: list[Row], rewritten: set[int]
) -> tuple[Equation, ...]:
    """Fill in the kernels and the fate of each equation."""
    kernels, loose = defaultdict(list), defaultdict(list)
    for row in rows:
        if row.kernel is None:
            idle = [row.instruction]
        else:
            idle = [i for i in row.kernel.instructions if i.opcode in FREE]
            for member in row.kernel.members:
                kernels[member].append(row.kernel.index)
        for one in idle:
            for index in one.equations:
                loose[index].append(one)

    def filled(eqn: Equation) -> Equation:
        found = tuple(kernels[eqn.index])
        end = "kernel" if found else fate(eqn, loose[eqn.index], rewritten)
        return replace(eqn, kernels=found, fate=end)

    return tuple(map(filled, equations))


def fate(eqn: Equation, loose: list[Instruction], rewritten: set[int]) -> str:
    """Say what became of an equation that is in no kernel."""
    if eqn.index in rewritten:
        return "rewritten"
    if any(one.opcode not in ("constant", "parameter") for one in loose):
        return "view"
    # A constant that only helped, such as a sum's zero, has another size.
    sizes = [elements(one.type) for one in loose if one.opcode == "constant"]
    if not eqn.regions and elements(eqn.outputs[0] if eqn.outputs else "") in sizes:
        return "folded"
    if eqn.fate == "gone" and eqn.regions:
        return "wrapper"
    return eqn.fate


def shown_rows(rows: list[Row], equations: tuple[Equation, ...]) -> list[Row]:
    """Leave out the instructions that only carry values around."""

    def tells(one: Instruction) -> bool:
        if one.opcode == "constant":
            return any(equations[i].fate == "folded" for i in one.equations)
        return bool(one.equations) and one.opcode not in _PLUMBING

    return [row for row in rows if row.kernel is not None or tells(row.instruction)]


def links(equations: tuple[Equation, ...]) -> tuple[Link, ...]:
    """Group the equations by the expression they came from, in source order."""
    groups = defaultdict(list)
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
    return (
        False, span.path, span.line, span.column, -span.end_line, -span.end_column
    )  # fmt: skip
