"""What a measurement gives: plain data."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version

import jax

from .. import _table
from ._show import below, of_comparison, of_measurement
from ._spread import Spread

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


@dataclass(frozen=True, slots=True, repr=False)
class Measurement(_table.Shown):
    """What one function costs, stage by stage; times in seconds.

    Attributes:
        name: the function's name.
        stages: a `Spread` for each stage that there is, in the order in which they
            happen: ``"trace"`` from Python to a jaxpr, ``"lower"`` from there to
            StableHLO, ``"compile"`` to an executable, ``"first"`` the first call of
            what was compiled, ``"steady"`` the calls after the warm-up. A function
            that is not jitted has the last two alone.
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
        if name not in STAGES:
            raise AttributeError(f"a Measurement has no attribute {name!r}")
        if name in self.stages:
            return self.stages[name]
        known = ", ".join(self.stages)
        text = f"{self.name} has no stage {name!r} here; there are: {known}"
        raise AttributeError(text)

    def _parts(self) -> tuple[str, list[_table.Row], list[str]]:
        return self.name, of_measurement(self), below(self)

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
        provenance: the devices, the versions and the day.
        reached: whether each ratio is as precise as was asked for.
        note: what a reader must know about these numbers, or an empty text.
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
        return "", of_comparison(self), below(self)
