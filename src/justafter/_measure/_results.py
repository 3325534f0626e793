"""What a measurement gives: plain data."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version

import jax

from .. import _table
from ._spread import FEWEST, Spread

_UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
STAGES = ("trace", "lower", "compile", "first", "steady")


def provenance() -> str:
    """Where and when: devices, cores, versions, and the day (UTC)."""
    device = jax.devices()[0]
    devices = f"{jax.device_count()} {device.device_kind}"
    if device.platform != device.device_kind:
        devices += f" ({device.platform})"
    return (
        f"{devices}, {os.cpu_count() or 1} CPU cores; JAX {jax.__version__}, "
        f"jaxlib {version('jaxlib')}, NumPy {version('numpy')}, "
        f"Python {platform.python_version()}; {datetime.now(UTC).date()}"
    )


def _digits(value: float) -> str:
    """Three digits, without an exponent."""
    for places, bound in ((0, 99.95), (1, 9.995), (2, 0.9995)):
        if abs(value) >= bound:
            return f"{value:.{places}f}"
    return f"{value:.3g}"


def _seconds(*times: float) -> str:
    """One time, or the first and the last one, with the unit of the largest."""
    known = (one for one in _UNITS if abs(times[-1]) >= one[1])
    unit, size = next(known, _UNITS[-1])
    return f"{' to '.join(_digits(one / size) for one in times)} {unit}"


def _runs(spread: Spread) -> str:
    calls = f" of {spread.calls} calls" if spread.calls > 1 else ""
    return f"{spread.samples}{calls}"


def _below(note: str, reached: bool, provenance: str) -> list[str]:
    """What is said below a table: notes, and where it was measured."""
    missed = "the precision asked for was not reached in the budget"
    return [*[note] * bool(note), *[missed] * (not reached), provenance]


@dataclass(frozen=True, slots=True, repr=False)
class Measurement(_table.Shown):
    """What one function costs, stage by stage; times in seconds.

    Attributes:
        name: the function's name.
        stages: a `Spread` for each, in order: ``"trace"`` from Python to a jaxpr,
            ``"lower"`` to StableHLO, ``"compile"`` to an executable, ``"first"`` its
            first call, ``"steady"`` the calls after the warm-up. A function that is
            not jitted has the last two alone.
        provenance: the devices, the versions and the day.
        reached: whether `steady` is as precise as was asked for.
        note: what a reader must know about these numbers, or an empty text.
    """

    name: str
    stages: dict[str, Spread]
    provenance: str
    reached: bool
    note: str = ""

    def __getattr__(self, name: str) -> Spread:
        """The `Spread` of a stage: ``m.compile`` is ``m.stages["compile"]``."""
        known = self.stages if name in STAGES else {}
        if name in known:
            return known[name]
        stages = f"; of the stages there are: {', '.join(known)}" * bool(known)
        raise AttributeError(f"a Measurement has no attribute {name!r} here{stages}")

    def _parts(self) -> tuple[str, list[_table.Row], list[str]]:
        rows = [("stage", "median", "95% interval", "minimum", "runs")]
        for name, one in self.stages.items():
            # Fewer samples give no such interval: all that there are.
            interval = "all: " * (one.samples < FEWEST) + _seconds(one.least, one.most)
            interval = "one call" if one.samples == 1 else interval
            label = "first call" if name == "first" else name
            times = _seconds(one.median), interval, _seconds(one.minimum)
            rows.append((label, *times, _runs(one)))
        return self.name, [*rows], _below(self.note, self.reached, self.provenance)

    @property
    def cold(self) -> float:
        """Seconds until the first result, the medians of all stages up to it added."""
        return sum(s.median for name, s in self.stages.items() if name != "steady")


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(_table.Shown):
    """Several candidates, run in turns.

    Attributes:
        times: seconds a call, by name.
        ratios: each candidate's time as a multiple of the baseline's, by name; taken
            round by round, so that what slows the machine down slows both.
        baseline: the name of the candidate that the others are compared with.
        reached: whether each ratio is as precise as was asked for.
    """

    times: dict[str, Spread]
    ratios: dict[str, Spread]
    baseline: str
    provenance: str
    reached: bool
    note: str = ""

    def __getitem__(self, name: str) -> Spread:
        return self.times[name]

    def _parts(self) -> tuple[str, list[_table.Row], list[str]]:
        head = ("candidate", "median", "minimum", f"time / {self.baseline}")
        rows = [(*head, "95% interval", "rounds")]
        for name, one in self.times.items():
            ratio, cells = self.ratios[name], ("1", "")
            if name != self.baseline:
                interval = f"{_digits(ratio.least)} to {_digits(ratio.most)}"
                cells = _digits(ratio.median), interval
            times = _seconds(one.median), _seconds(one.minimum)
            rows.append((name, *times, *cells, _runs(one)))
        return "", [*rows], _below(self.note, self.reached, self.provenance)
