"""What a lens is made of: plain data, no behavior beyond small properties."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Span:
    """A stretch of Python source: lines from 1, columns from 0, the end excluded."""

    file: str
    function: str
    line: int
    column: int
    end_line: int
    end_column: int
    path: str = field(default="", repr=False)


@dataclass(frozen=True)
class Source:
    """One function's source text, with its common indentation removed."""

    name: str
    file: str
    line: int
    text: str
    cuts: tuple[int, ...] = field(default=(), repr=False)
    path: str = field(default="", repr=False)

    @property
    def end_line(self) -> int:
        """The last line's number in the file."""
        return self.line + self.text.count("\n")

    def holds(self, other: Span | Source) -> bool:
        """Whether a span or another piece lies in this piece."""
        is_within = self.line <= other.line and other.end_line <= self.end_line
        return self.path == other.path and is_within

    def offsets(self, span: Span) -> tuple[int, int]:
        """Turn a span into start and end positions in ``text``."""
        lines = self.text.split("\n")

        def offset(line: int, column: int) -> int:
            row = line - self.line
            before = sum(len(text) + 1 for text in lines[:row])
            return before + min(max(column - self.cuts[row], 0), len(lines[row]))

        return offset(span.line, span.column), offset(span.end_line, span.end_column)


@dataclass(frozen=True)
class Equation:
    """One equation of the jaxpr, where it came from and what became of it.

    Attributes:
        outputs: the types of its results, such as ``("f32[3,4]",)``.
        span: the Python expression it came from; None if JAX kept none.
        expression: the text of that expression; None where there is no source.
        scope: transformations and named scopes around it, such as
            ``"transpose(jvp())"`` for the backward pass.
        fate: ``"kernel"`` if kernels compute it; ``"view"`` if what is left of it costs
            nothing at run time (a bitcast, a loop's frame); ``"folded"`` if that is a
            constant in the compiled program; ``"unused"`` if nothing needs its result;
            ``"gone"`` if XLA records nothing of it and no kernel can be its work (it
            was merged with an equal one, simplified away, or is a bitcast that bears
            another's mark); ``"unknown"`` if one can, and XLA kept no record of which;
            ``"wrapper"`` if it holds equations and does nothing itself.
        kernels: indices into ``Lens.kernels``.
        fixed: True if it depends on no argument.
        parent: index of the equation that holds it (a ``scan``, say), or None.
        region: which of the parent's ``regions``, the jaxprs inside it, it is in.
    """

    index: int
    primitive: str
    text: str
    outputs: tuple[str, ...]
    span: Span | None = None
    expression: str | None = None
    scope: str = ""
    fate: str = "gone"
    kernels: tuple[int, ...] = ()
    parent: int | None = None
    depth: int = 0
    region: int = 0
    regions: tuple[str, ...] = ()
    fixed: bool = False
    inputs: tuple[str, ...] = ()
    tags: tuple[int, ...] = field(default=(), repr=False)

    @property
    def gone(self) -> bool:
        """True if nothing of it is left to do when the program runs."""
        return self.fate in ("folded", "unused", "gone")


@dataclass(frozen=True)
class Instruction:
    """One HLO instruction, and the equations that it came from.

    `equations` are indices into ``Lens.equations``: several where XLA merged some, none
    where XLA kept no record.
    """

    name: str
    opcode: str
    type: str
    text: str
    equations: tuple[int, ...] = ()


@dataclass(frozen=True)
class Kernel:
    """One unit of work in the compiled program: a fusion or a lone operation.

    Attributes:
        kind: ``"loop fusion"``, ``"input fusion"``, ..., or the operation alone.
        members: indices into ``Lens.equations``: what ended up in it.
        where: the loops and branches around it, outermost first.
        runs: how often it runs in one call: more than once in a loop; None where it
            is in a loop of unknown length, or in a branch.
        inferred: those of the members that XLA's own record does not name. Each is
            the only equation of the work's kind, dtype and size that the flow of
            values leads to.
        lost: True if it does work of which it cannot be told which equation made it.
    """

    index: int
    name: str
    kind: str
    type: str
    members: tuple[int, ...]
    instructions: tuple[Instruction, ...]
    where: tuple[str, ...] = ()
    runs: int | None = 1
    inferred: tuple[int, ...] = ()
    lost: bool = False

    @property
    def appeared(self) -> bool:
        """True if no equation can have made it: XLA added it."""
        return not (self.members or self.lost)


@dataclass(frozen=True)
class Link:
    """One expression, the equations it became, and the kernels they became.

    `equations` and `kernels` are indices. The expression and its span are None for
    equations that come from no source of yours.
    """

    expression: str | None
    span: Span | None
    equations: tuple[int, ...]
    kernels: tuple[int, ...]


@dataclass(frozen=True)
class Costs:
    """Estimated work and memory of one call, and the measured compile time.

    XLA estimates each kernel. The lens multiplies that by the length of the loops
    around the kernel, and of an input whose rows are gathered it counts those rows
    alone. A kernel that XLA cannot estimate has None for both figures; the sums for a
    program or an expression leave it out, so they can be 0.0, and `unknown` counts it.
    Under sharding the figures are for each device.

    Attributes:
        flops: floating-point operations, an exponential or a sine counted as one; of
            a whole program those that are known.
        temp_bytes: memory for what lies between, at its largest.
        unknown: how many kernels the figures leave out: those that call out of the
            program, and those in a branch or in a loop of unknown length.
    """

    flops: float | None = None
    bytes_accessed: float | None = None
    temp_bytes: int | None = None
    compile_seconds: float | None = field(default=None, compare=False)
    devices: int = 1
    unknown: int = 0
