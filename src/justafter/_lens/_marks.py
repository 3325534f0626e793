"""Finds the equations that an HLO instruction came from."""

import math
import re
from collections import defaultdict
from collections.abc import Iterator

from .._internals import _equations as _internals
from ._hlo import CONTROL, FREE, RENAMING, Module, Raw, bare, rename
from ._model import Equation, Span
from ._source import Sources

Start = tuple[str, int, int]
Group = tuple[str, int]

# Operations that XLA rewrites without keeping metadata, and the primitives that
# they can only have come from.
_KINDS = {
    "dot": re.compile(r"dot_general"),
    "convolution": re.compile(r"conv_general_dilated"),
    "reduce-window": re.compile(r"cum\w+|reduce_window\w*"),
    "sort": re.compile(r"sort"),
    "fft": re.compile(r"fft"),
}


def start(span: Span | None) -> Start | None:
    """Give the place where a span starts: file, line, column."""
    return None if span is None else (span.file, span.line, span.column)


def elements(type_: str) -> int:
    """Count the elements of an array type; of a tuple, those of its first.

    >>> elements("f32[3,4]"), elements("(s32[], f32[2])")
    (12, 1)
    """
    found = re.search(r"\[([\d,]*)\]", type_)
    sizes = found.group(1).split(",") if found and found.group(1) else []
    return math.prod(int(size) for size in sizes if size)


class Marks:
    """Knows the equations of each instruction of a module.

    By the numbers that ``_internals.tagged`` left in the metadata; where a JAX
    version does not allow those, by the primitive and where its expression starts.
    Where XLA dropped the metadata, by what the instruction computes, if that leaves
    no choice.

    Attributes:
        rewritten: equations that XLA computes in an instruction without metadata,
            where it cannot be said in which.
    """

    def __init__(
        self, equations: list[Equation], module: Module, sources: Sources
    ) -> None:
        self._module, self._sources = module, sources
        self._by_tags = {eqn.tags: eqn.index for eqn in equations if eqn.tags}
        self._by_start, self._ends = {}, {}
        for eqn in reversed(equations):
            self._by_start[start(eqn.span), eqn.primitive] = eqn.index
            for cut in range(len(eqn.tags)):
                self._ends[eqn.tags[cut:]] = eqn.index
        self._raws = {raw.name: raw for raw in module.instructions()}
        self._inferred: dict[str, tuple[int, ...]] = {}
        self._inferred = dict(self._results())
        self.rewritten: set[int] = set()
        self._infer_by_kind(equations)

    def of(self, raw: Raw) -> tuple[int, ...]:
        """List the equations of an instruction: several where XLA merged some."""
        return self._inferred.get(raw.name) or tuple(self._recorded(raw))

    def is_inferred(self, raw: Raw) -> bool:
        """Say whether an instruction has no metadata, but an equation."""
        return raw.name in self._inferred

    def start(self, raw: Raw) -> Start | None:
        """Read where an instruction's expression starts, from the module's tables.

        Where it ends is not to be had: expressions that start at one place share
        one entry there, with the end of whichever came first.
        """
        return start(self._sources.span(self._module.location(raw.frame)))

    def _recorded(self, raw: Raw) -> Iterator[int]:
        # XLA joins the names of merged instructions with semicolons.
        for name in raw.op_name.split(";"):
            index = self._named(name, raw)
            if index is not None:
                yield index

    def _named(self, name: str, raw: Raw) -> int | None:
        if self._by_tags:
            tags = _internals.tags(name)
            # XLA may cut a path's head where it inlines a computation.
            return self._by_tags.get(tags, self._ends.get(tags))
        return self._by_start.get((self.start(raw), name.rsplit("/", 1)[-1]))

    def _results(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield instructions without metadata that compute an equation's result.

        XLA rewrites a product of a vector, say, as one of matrices, and leaves the
        equation's mark only on the bitcast back to the wanted shape.
        """
        for raw in self._raws.values():
            indices = self.of(raw)
            if indices and raw.opcode in RENAMING:
                source = self._producer(raw)
                if source is not None and not source.op_name:
                    yield source.name, indices

    def _producer(self, raw: Raw) -> Raw | None:
        """Follow a renamed value back to the instruction that computes it."""
        seen: set[str] = set()
        found: Raw | None = raw
        while found is not None and found.opcode in (*RENAMING, "parameter"):
            if found.name in seen:
                return None
            seen.add(found.name)
            if found.opcode == "parameter":
                name = self._module.names.get(found.name, "")
            else:
                name = bare(rename(found.operands[0], {}))
            found = self._raws.get(name)
        if found is None or found.opcode in FREE | CONTROL:
            return None
        return found

    def _infer_by_kind(self, equations: list[Equation]) -> None:
        """Join a lone product without metadata to the lone product without HLO."""
        unmarked, done = self._unmarked()
        for (opcode, size), names in unmarked.items():
            open_ = [
                eqn.index
                for eqn in equations
                if _KINDS[opcode].fullmatch(eqn.primitive)
                and eqn.fate != "unused"
                and elements(eqn.outputs[0]) == size
                and (eqn.index, opcode) not in done
            ]
            if len(open_) == len(names) == 1:
                self._inferred[names[0]] = (open_[0],)
            else:
                self.rewritten.update(open_)

    def _unmarked(
        self,
    ) -> tuple[dict[Group, list[str]], set[tuple[int, str]]]:
        """Group the operations without equations by kind and size.

        Beside them, the equations that have such an operation.
        """
        found, done = defaultdict(list), set()
        around = self._module.fusions()
        for raw in self._raws.values():
            if raw.opcode not in _KINDS:
                continue
            fusion = around.get(raw.name)
            indices = self.of(raw) or (self.of(fusion) if fusion else ())
            done.update((index, raw.opcode) for index in indices)
            if not indices:
                found[raw.opcode, elements(raw.type)].append(raw.name)
        return found, done
