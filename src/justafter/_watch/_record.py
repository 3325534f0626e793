"""What a log keeps: traces and compilations, function by function."""

from __future__ import annotations

from dataclasses import dataclass, field

import jax

from .. import _internals
from ._signature import Placement, Signature, placements
from ._why import FIRST, Reason, why_moved


@dataclass(frozen=True, slots=True)
class Trace:
    """One run of a function's Python body under tracing.

    Attributes:
        number: 1 for the function's first trace in this log.
        call: the call as JAX saw it, such as ``x: float32[3], n=2``.
        why: the reasons; the first trace of all has the reason "first call".
        seconds: the time it took, the traces inside it included.
        raised: the name of the exception it ended in, or None.
        where: the file and line of your code that made the call, such as
            ``train.py:12``; empty where no code of yours did.
    """

    number: int
    call: str
    why: tuple[Reason, ...]
    seconds: float = field(compare=False)
    raised: str | None = None
    where: str = ""


@dataclass(frozen=True, slots=True)
class Compilation:
    """One compilation by XLA, or one load from JAX's persistent cache.

    Attributes:
        number: 1 for the function's first compilation in this log.
        why: the reasons of the trace it belongs to, or its own.
        seconds: the time it took.
        loaded: whether it came from the persistent compilation cache.
        where: the file and line of your code that made the call.
    """

    number: int
    why: tuple[Reason, ...]
    seconds: float = field(compare=False)
    loaded: bool = False
    where: str = ""


@dataclass(slots=True)
class Record:
    """What a log knows of one function.

    Attributes:
        name: the function's ``__name__``.
        qualname: its ``__qualname__``.
        module: its ``__module__``.
        history: the traces, in order.
        compiled: the compilations, in order.
        library: the installed package that the function is a part of, or empty.
    """

    name: str
    qualname: str
    module: str
    history: list[Trace] = field(default_factory=list)
    compiled: list[Compilation] = field(default_factory=list)
    library: str = ""
    _place: tuple[str, int] = field(default=("", 0), repr=False)
    _signatures: list[Signature] = field(default_factory=list, repr=False)

    @property
    def traces(self) -> int:
        """How often the body ran under tracing."""
        return len(self.history)

    @property
    def compilations(self) -> int:
        """How often XLA compiled a program of this function, or loaded one."""
        return len(self.compiled)

    @property
    def loads(self) -> int:
        """How many of the compilations were loads from the persistent cache."""
        return sum(one.loaded for one in self.compiled)

    @property
    def compile_seconds(self) -> float:
        """The seconds that all compilations and loads took together."""
        return sum(one.seconds for one in self.compiled)

    @property
    def why(self) -> tuple[str, ...]:
        """The kinds of reason, one tuple entry a retrace, in order."""
        return tuple(
            ", ".join(reason.kind for reason in trace.why)
            for trace in self.history
            if trace.why != (FIRST,)
        )

    def _why_compiled(self, run: _internals.JitRun | None) -> tuple[Reason, ...]:
        """The reasons of the trace that a program is made of, or its own."""
        placed = placements(run) if run is not None else ()
        fresh = [one for one in self._signatures if not one.placed]
        if run is None or run.fun is None or not all(place for _, place in placed):
            # Made of a trace: the newest that was not compiled is compiled with it.
            return _compiled(fresh, ()) or (_TRANSFORMED,)
        avals = [jax.typeof(leaf) for leaf in run.leaves]
        types = [(tuple(aval.shape), str(aval.dtype)) for aval in avals]
        same = [
            one
            for one in self._signatures
            if one.fun() is run.fun
            and [(leaf.shape, leaf.dtype) for leaf in one.leaves.values()] == types
        ]
        if reasons := _compiled([one for one in same if not one.placed], placed):
            return reasons
        if not same:
            return (_AS_IT_IS if self.compiled or self.history else FIRST,)
        known = next((p for p in reversed(same[-1].placed) if p), None)
        same[-1].placed.append(placed)
        return (_AS_IT_IS if known is None else why_moved(placed, known) or _DROPPED,)


def _compiled(
    fresh: list[Signature], placed: tuple[Placement, ...]
) -> tuple[Reason, ...]:
    """The reasons of the newest trace that was not compiled yet, and now is."""
    for trace in fresh[-1:]:
        trace.placed.append(placed)
        return trace.reasons
    return ()


_TRANSFORMED = Reason(
    "transformation",
    "a derivative or another transformation, or .compile() ahead of time",
)
_AS_IT_IS = Reason(
    "transformation", "compiled as it is, after a program made of the same trace"
)
_DROPPED = Reason(
    "cache emptied",
    "the same trace was compiled before: its entry was cleared or dropped",
)
