"""What a measurement gives: plain data, that turns into JSON and back."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Self

import jax

from .. import _table
from ._show import below, of_comparison, of_measurement
from ._spread import Spread

STAGES = ("trace", "lower", "compile", "load", "first", "steady")


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where and when numbers were measured.

    Attributes:
        platform: JAX's name for the kind of device, such as ``"cpu"``.
        device_kind: JAX's name for the model of the device, such as ``"NVIDIA H100"``.
        device_count: how many devices JAX saw.
        cpus: how many CPU cores the machine has.
        jax: the version of JAX; `jaxlib`, `numpy` and `python` likewise.
        date: date and time, in UTC and ISO 8601.

    Example:
        >>> import jax
        >>> Provenance.now().jax == jax.__version__
        True
    """

    platform: str
    device_kind: str
    device_count: int
    cpus: int
    jax: str
    jaxlib: str
    numpy: str
    python: str
    date: str

    @classmethod
    def now(cls) -> Self:
        """Of this process, at this moment (UTC)."""
        device = jax.devices()[0]
        return cls(
            platform=device.platform,
            device_kind=device.device_kind,
            device_count=jax.device_count(),
            cpus=os.cpu_count() or 1,
            jax=jax.__version__,
            jaxlib=version("jaxlib"),
            numpy=version("numpy"),
            python=platform.python_version(),
            date=datetime.now(UTC).isoformat(timespec="seconds"),
        )


@dataclass(frozen=True, slots=True, repr=False)
class _Plain(_table.Shown):
    """Results are plain data: they turn into JSON and back."""

    def to_json(self) -> str:
        """This result as JSON text."""
        return json.dumps({"kind": type(self).__name__} | asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The result that `to_json` wrote.

        Raises:
            ValueError: `text` is not such a result.
        """
        try:
            data = json.loads(text)
            if data.pop("kind") != cls.__name__:
                raise ValueError("it is another kind of result")
            data["provenance"] = Provenance(**data["provenance"])
            for name in {"stages", "times", "ratios"} & data.keys():
                data[name] = {key: Spread(**one) for key, one in data[name].items()}
            return cls(**data)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"this is no JSON of a {cls.__name__}: {error}") from None


@dataclass(frozen=True, slots=True, repr=False)
class Measurement(_Plain):
    """What one function costs, stage by stage; times in seconds.

    Attributes:
        name: the function's name.
        stages: a `Spread` for each stage that there is, in the order in which they
            happen: ``"trace"`` from Python to a jaxpr, ``"lower"`` from there to
            StableHLO, ``"compile"`` to an executable, or ``"load"`` where it was read
            from the persistent compilation cache; ``"first"`` the first call of what
            was compiled; ``"steady"`` the calls after the warm-up. A function that is
            not jitted has the last two alone.
        provenance: where and when.
        reached: whether `steady` is as precise as was asked for.
        note: what a reader must know about these numbers, or an empty text.
    """

    name: str
    stages: dict[str, Spread]
    provenance: Provenance
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
        """Seconds until the first result, the medians of all stages up to it added.

        Where executables were compiled and loaded, compiling counts.
        """
        skipped = {"steady", "load"} if "compile" in self.stages else {"steady"}
        return sum(s.median for name, s in self.stages.items() if name not in skipped)


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(_Plain):
    """Several candidates, run in turns.

    Attributes:
        times: seconds a call, by name.
        ratios: each candidate's time as a multiple of the baseline's, by name; taken
            round by round, so that what slows the machine down slows both.
        baseline: the name of the candidate that the others are compared with.
        provenance: where and when.
        reached: whether each ratio is as precise as was asked for.
        note: what a reader must know about these numbers, or an empty text.
    """

    times: dict[str, Spread]
    ratios: dict[str, Spread]
    baseline: str
    provenance: Provenance
    reached: bool
    note: str = ""

    def __getitem__(self, name: str) -> Spread:
        return self.times[name]

    def _parts(self) -> tuple[str, list[_table.Row], list[str]]:
        return "", of_comparison(self), below(self)
