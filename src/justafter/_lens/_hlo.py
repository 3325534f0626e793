"""Reads the text of an optimized HLO module, from the CPU or the GPU backend."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from .._internals import _equations

_COMPUTATION = re.compile(r"^(?P<entry>ENTRY )?%?(?P<name>[^\s(]+).*\{\s*$")
_INSTRUCTION = re.compile(r"^\s+(?P<root>ROOT )?%?(?P<name>[^\s=]+) = (?P<rest>.+)$")
_QUOTED = r'"((?:[^"\\]|\\.)*)"'
_TOKEN = re.compile(rf"{_QUOTED}|[(){{}}\[\],]")
_NESTING = re.compile(r'["({\[]')
_LAYOUT = re.compile(r"(?<=\])\{[^{}]*\}")
_COMMENT = re.compile(r"/\*.*?\*/")
_OP_NAME = re.compile(rf"op_name={_QUOTED}")
_LENGTH = re.compile(r'"known_trip_count":\{"n":"(\d+)"')

# Instructions that only name, group or rename values.
FREE = {
    "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all",
    "opt-barrier", "partition-id", "replica-id", "add-dependency", "domain",
}  # fmt: skip
RENAMING = {"bitcast", "get-tuple-element"}
CONTROL = {"while", "conditional", "call"}


@dataclass(frozen=True)
class Raw:
    """One line of HLO, taken apart."""

    name: str
    type: str
    opcode: str
    operands: tuple[str, ...]
    rest: str
    is_root: bool
    inside: str = ""

    @functools.cached_property
    def attributes(self) -> dict[str, str]:
        """The attributes after the operands, by key."""
        pairs = (part.partition("=") for part in split(self.rest))
        return {key: value for key, _, value in pairs}

    @functools.cached_property
    def op_name(self) -> str:
        """The path of scopes and the primitive: ``jit(f)/jvp()/mul``."""
        found = _OP_NAME.search(self.rest)
        return re.sub(r"\\(.)", r"\1", found.group(1)) if found else ""

    @functools.cached_property
    def inputs(self) -> tuple[str, ...]:
        """The names of the operands."""
        return tuple(rename(one, {}) for one in self.operands)

    def called(self) -> list[tuple[str, str]]:
        """List the computations it runs: what each is to it, and its name."""
        if self.opcode not in CONTROL and "calls=" not in self.rest:
            return []  # most lines: taking the attributes apart would only cost
        a = self.attributes
        if self.opcode == "while":
            return [("test", bare(a["condition"])), ("body", bare(a["body"]))]
        if self.opcode == "conditional":
            # Without a list the first branch is the one for True; a ``cond`` in JAX
            # counts from False.
            keys = ("false_computation", "true_computation")
            branches = split(a.get("branch_computations", "").strip("{}"))
            branches = branches or [a[key] for key in keys]
            return [(f"branch {i}", bare(name)) for i, name in enumerate(branches)]
        inner = a.get("calls") or (a.get("to_apply") if self.opcode == "call" else None)
        return [("", bare(inner))] if inner else []

    def text(self, names: dict[str, str]) -> str:
        """Write it without layouts and attributes, operands renamed by ``names``."""
        operands = ", ".join(rename(one, names) for one in self.operands)
        return f"{self.name} = {self.type} {self.opcode}({operands})"


@dataclass
class Module:
    """An HLO module: its computations."""

    computations: dict[str, list[Raw]] = field(default_factory=dict)
    entry: str = ""
    partitions: int = 1

    def instructions(self) -> Iterator[Raw]:
        """Yield every instruction of every computation."""
        for body in self.computations.values():
            yield from body

    @functools.cached_property
    def by_name(self) -> dict[str, Raw]:
        """Every instruction by its name."""
        return {raw.name: raw for raw in self.instructions()}

    @functools.cached_property
    def callers(self) -> dict[str, Raw]:
        """The instruction that runs a computation, by the computation's name."""
        return {name: raw for raw in self.instructions() for _, name in raw.called()}

    @functools.cached_property
    def users(self) -> dict[str, list[Raw]]:
        """The instructions that read a value, by its name."""
        found: dict[str, list[Raw]] = {}
        for raw in self.instructions():
            for name in raw.inputs:
                found.setdefault(name, []).append(raw)
        return found

    @functools.cached_property
    def names(self) -> dict[str, str]:
        """For each parameter inside a fusion, the name of what is passed."""
        return {
            one.name: raw.inputs[int(one.operands[0])]
            for raw in self.instructions()
            if raw.opcode == "fusion"
            for one in self.computations.get(raw.called()[0][1], [])
            if one.opcode == "parameter" and int(one.operands[0]) < len(raw.operands)
        }


def parse(text: str) -> Module:
    """Read the text that ``compiled.as_text()`` gives, line by line."""
    module, name = Module(), ""
    current: list[Raw] | None = None
    for line in _equations.plain_names(text).splitlines():
        if line.startswith("HloModule"):
            found = re.search(r"num_partitions=(\d+)", line)
            module.partitions = int(found.group(1)) if found else 1
        elif instruction := _INSTRUCTION.match(line):
            if current is not None:
                current.append(read_instruction(instruction, name))
        elif computation := _COMPUTATION.match(line):
            name = computation["name"]
            current = module.computations.setdefault(name, [])
            if computation["entry"]:
                module.entry = name
    return module


def read_instruction(match: re.Match[str], inside: str) -> Raw:
    """Take an instruction apart: type, opcode, operands, and what follows."""
    name, is_root = match["name"], bool(match["root"])
    rest = _COMMENT.sub("", match["rest"])
    end = closing(rest, 0) + 1 if rest.startswith("(") else rest.index(" ")
    type_, rest = _LAYOUT.sub("", rest[:end]), rest[end:].lstrip()
    opcode, _, _ = rest.partition("(")
    stop = closing(rest, len(opcode))
    operands = tuple(split(rest[len(opcode) + 1 : stop]))
    after = rest[stop + 1 :].lstrip(", ")
    return Raw(name, type_, opcode, operands, after, is_root, inside)


def tokens(text: str, start: int = 0) -> Iterator[tuple[int, str, int]]:
    """Yield brackets and commas outside quotes: position, character, bracket depth."""
    depth = 0
    for match in _TOKEN.finditer(text, start):
        depth += (match[0] in "({[") - (match[0] in ")}]")
        yield match.start(), match[0], depth


def closing(text: str, start: int) -> int:
    """Find the bracket that closes the one at ``start``."""
    first = text.find(")", start)
    if first > start and not _NESTING.search(text, start + 1, first):
        return first
    for i, _, depth in tokens(text, start):
        if depth == 0:
            return i
    return len(text)


def split(text: str) -> list[str]:
    """Split at the commas that are in no bracket and no string."""
    if not _NESTING.search(text):
        return [part for one in text.split(",") if (part := one.strip())]
    commas = [i for i, char, depth in tokens(text) if char == "," and depth == 0]
    bounds = zip([-1, *commas], [*commas, len(text)], strict=True)
    return [part for a, b in bounds if (part := text[a + 1 : b].strip())]


def bare(name: str) -> str:
    """Give a name without its percent sign."""
    return name.strip().lstrip("%")


def rename(operand: str, names: dict[str, str]) -> str:
    """Write an operand by its name alone, or by what ``names`` says."""
    name = operand.rpartition("%")[2]
    return names.get(name, name)


@dataclass(frozen=True)
class Step:
    """One instruction of the running program and, for a fusion, its insides."""

    raw: Raw
    where: tuple[str, ...]
    inside: tuple[tuple[Raw, str], ...] = ()
    # How often it runs in one call; None where that is not known.
    runs: int | None = 1

    @property
    def is_kernel(self) -> bool:
        """Say whether it does work of its own."""
        opcode = self.raw.opcode
        # An asynchronous operation is counted once, where it starts.
        is_end = opcode.endswith(("-done", "-update"))
        return opcode not in FREE | CONTROL and not is_end

    @property
    def kind(self) -> str:
        """Say what kind of kernel it is."""
        if self.raw.opcode == "custom-call":
            target = self.raw.attributes.get("custom_call_target", "").strip('"')
            return f"custom call {target}".strip()
        if self.raw.opcode != "fusion":
            return self.raw.opcode
        work = [raw.opcode for raw, _ in self.inside if raw.opcode not in FREE]
        if len(work) == 1:
            return work[0]
        kind = self.raw.attributes.get("kind", "").removeprefix("k").lower()
        return f"{kind} fusion".strip()


def steps(
    module: Module,
    name: str | None = None,
    where: tuple[str, ...] = (),
    runs: int | None = 1,
) -> list[Step]:
    """List what a computation runs, in order, through loops, branches and calls.

    `where` are the loops and branches around it; it runs `runs` times in a call.
    """
    found = []
    for raw in module.computations.get(module.entry if name is None else name, []):
        if raw.opcode not in CONTROL:
            found.append(Step(raw, where, tuple(_inside(module, raw)), runs))
            continue
        found.append(Step(raw, where, runs=runs))
        for label, inner in raw.called():
            here = (*where, f"{raw.opcode} {label}") if raw.opcode != "call" else where
            found += steps(module, inner, here, _times(raw, label, runs))
    return found


def _times(raw: Raw, label: str, runs: int | None) -> int | None:
    """How often a computation runs that an instruction calls."""
    if raw.opcode == "call" or runs is None:
        return runs
    found = _LENGTH.search(raw.rest)
    if raw.opcode != "while" or found is None:
        return None
    return runs * (int(found[1]) + (label == "test"))


def _inside(module: Module, raw: Raw) -> Iterator[tuple[Raw, str]]:
    """Yield a fusion's instructions, parameters written by what is passed."""
    if not (called := raw.called()):
        yield raw, raw.text({})
        return
    for one in module.computations.get(called[0][1], []):
        if one.called():
            yield from _inside(module, one)
        elif one.opcode != "parameter":
            yield one, one.text(module.names)
