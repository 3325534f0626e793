"""What a log keeps: traces and compilations, function by function."""

from __future__ import annotations

from dataclasses import dataclass, field

from .. import _functions
from .._internals import _events
from ._signature import Signature, places_of
from ._why import DERIVED, DROPPED, FIRST, Reason, why_moved


@dataclass(frozen=True, slots=True)
class Trace:
    """One run of a function's Python body under tracing.

    Attributes:
        call: the call as JAX saw it, such as ``x: float32[3], n=2``.
        why: the reasons.
        raised: the name of the exception it ended in, or None.
        where: the file and line of yours that made the call, such as ``train.py:12``.
    """

    call: str
    why: tuple[Reason, ...]
    raised: str | None = None
    where: str = ""


@dataclass(frozen=True, slots=True)
class Compilation:
    """One compilation by XLA, or one load from JAX's persistent cache.

    `why` are the reasons of the trace it belongs to, or its own; for the others see
    :class:`Trace`.
    """

    why: tuple[Reason, ...]
    where: str = ""


@dataclass(slots=True)
class Record:
    """What a log knows of one function.

    `history` holds the traces and `compiled` the compilations, in order; `library` is
    the installed package that the function is a part of, or empty.
    """

    name: str
    qualname: str
    module: str
    history: list[Trace] = field(default_factory=list)
    compiled: list[Compilation] = field(default_factory=list)
    library: str = ""
    _place: tuple[str, int] = field(default=("", 0), repr=False)
    _signatures: list[Signature] = field(default_factory=list, repr=False)
    _seen: int = field(default=0, repr=False)  # the larger, the later
    _running: int = field(default=0, repr=False)  # traces that have not ended

    @property
    def traces(self) -> int:
        """How often the body ran under tracing."""
        return len(self.history)

    @property
    def compilations(self) -> int:
        """How often XLA compiled a program of this function, or loaded one."""
        return len(self.compiled)

    @property
    def _described(self) -> str:
        """Its full name, and where it is defined."""
        path, line = self._place
        where = f" ({_functions.file_label(path)}:{line})" if path else ""
        return f"{self.module}.{self.qualname}{where}"

    @property
    def why(self) -> tuple[str, ...]:
        """The kinds of reason, one tuple entry a retrace, in order."""
        return tuple(
            ", ".join(reason.kind for reason in trace.why)
            for trace in self.history
            if trace.why != (FIRST,)
        )

    def _why_compiled(self, run: _events.JitRun | None) -> tuple[Reason, ...]:
        """The reasons of the trace that a program is made of, or its own."""
        places = places_of(run) if run is not None else {}
        is_own = run is not None and run.fun is not None and all(places.values())
        known = [one for one in self._signatures if not is_own or one.is_of(run)]  # type: ignore[arg-type]
        fresh = [one for one in known if not one.placed]
        if fresh:  # the newest trace that was not compiled is compiled with this
            fresh[-1].placed.append(places if is_own else {})
            return fresh[-1].reasons
        if not is_own:
            return (DERIVED,)
        if not known:
            return (DERIVED if self.compiled or self.history else FIRST,)
        before = next((one for one in reversed(known[-1].placed) if one), None)
        known[-1].placed.append(places)
        return ((why_moved(places, before) or DROPPED) if before else DERIVED,)
