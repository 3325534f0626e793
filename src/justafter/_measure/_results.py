"""What a measurement gives: plain data, that turns into JSON and back."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Self

from ._provenance import Provenance
from ._show import as_html, as_text, plot
from ._spread import FEWEST, Spread

_STAGES = ("trace", "lower", "compile", "load", "first", "steady")


@dataclass(frozen=True, slots=True)
class _Plain:
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
        except json.JSONDecodeError as error:
            raise ValueError(f"this is no JSON: {error}") from None
        return cls.from_data(data)

    @classmethod
    def from_data(cls, data: Any) -> Self:
        """The result that JSON text stands for.

        Raises:
            ValueError: `data` is not such a result.
        """
        if not isinstance(data, dict) or data.get("kind") != cls.__name__:
            raise ValueError(f"this is not the JSON of a {cls.__name__}")
        try:
            return cls._from_dict({k: v for k, v in data.items() if k != "kind"})
        except (KeyError, TypeError) as error:
            raise ValueError(
                f"this is not the JSON of a {cls.__name__}: {error}"
            ) from None

    @classmethod
    def _from_dict(cls, data: dict[str, Any]) -> Self:
        raise NotImplementedError

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)


@dataclass(frozen=True, slots=True, repr=False)
class Measurement(_Plain):
    """What one function costs, stage by stage; times in seconds.

    Attributes:
        name: the function's name.
        trace: from Python to a jaxpr; None for a function that is not jitted.
        lower: from the jaxpr to StableHLO; None likewise.
        compile: from StableHLO to an executable; None likewise, and where all came
            from the persistent compilation cache.
        first: the first call: of the compiled function where it is jitted, of the
            function as it is where not.
        steady: the calls after the warm-up.
        provenance: where and when.
        reached: whether `steady` is as precise as was asked for.
        note: what a reader must know about these numbers, or an empty text.
        load: reading an executable from the persistent compilation cache; None where
            none was read.
    """

    name: str
    trace: Spread | None
    lower: Spread | None
    compile: Spread | None
    first: Spread
    steady: Spread
    provenance: Provenance
    reached: bool
    note: str = ""
    load: Spread | None = None

    @property
    def stages(self) -> dict[str, Spread]:
        """The stages that there are, in the order in which they happen."""
        found = {name: getattr(self, name) for name in _STAGES}
        return {name: spread for name, spread in found.items() if spread is not None}

    @property
    def cold(self) -> float:
        """Seconds until the first result, the medians of all stages up to it added.

        Where executables were compiled and loaded, compiling counts.
        """
        skipped = {"steady", "load"} if self.compile is not None else {"steady"}
        return sum(s.median for name, s in self.stages.items() if name not in skipped)

    def against(self, earlier: Measurement, tolerance: float = 0.05) -> Change:
        """Set this measurement beside an earlier one of the same function.

        Args:
            earlier: what was measured then.
            tolerance: a ratio of times this close to 1 is no change.

        Returns:
            A :class:`Change`, with a verdict that respects both spreads.

        Raises:
            TypeError: `earlier` is not a `Measurement`.
            ValueError: `tolerance` is negative, or 1 or more.
        """
        if not isinstance(earlier, Measurement):
            kind = type(earlier).__name__
            raise TypeError(f"a Measurement is set against another, not a {kind}")
        if not 0 <= tolerance < 1:
            raise ValueError(f"tolerance must be from 0 to below 1, got {tolerance!r}")
        return Change.of(self, earlier, tolerance)

    @classmethod
    def _from_dict(cls, data: dict[str, Any]) -> Self:
        for name in _STAGES:
            value = data.get(name)
            data[name] = None if value is None else Spread(**value)
        return cls(**data | {"provenance": Provenance(**data["provenance"])})


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

    def plot(self, ax: Any = None) -> Any:
        """Draw the times with their quartiles.

        Args:
            ax: matplotlib axes; new ones if not given.

        Returns:
            The axes.
        """
        return plot(self, ax)

    @classmethod
    def _from_dict(cls, data: dict[str, Any]) -> Self:
        for name in ("times", "ratios"):
            data[name] = {key: Spread(**value) for key, value in data[name].items()}
        return cls(**data | {"provenance": Provenance(**data["provenance"])})


@dataclass(frozen=True, slots=True, repr=False)
class Change(_Plain):
    """One function measured twice, and whether it became slower.

    Attributes:
        name: the function's name.
        then: the steady state of the earlier measurement.
        now: that of the later one.
        ratio: the time now as a multiple of the time then.
        least: the lower end of the interval for the ratio, from both intervals.
        most: its upper end.
        verdict: ``"faster"`` or ``"slower"`` if the whole interval lies beyond the
            tolerance; ``"unchanged"`` if it lies within; ``"cannot tell"`` otherwise.
        tolerance: a ratio this close to 1 is no change.
        differences: what was not the same: the device, a version.
    """

    name: str
    then: Spread
    now: Spread
    ratio: float
    least: float
    most: float
    verdict: str
    tolerance: float
    differences: tuple[str, ...] = ()

    @classmethod
    def of(cls, now: Measurement, then: Measurement, tolerance: float) -> Change:
        """Compare the steady states."""
        a, b = now.steady, then.steady
        least, most = _ratio(a.least, b.most), _ratio(a.most, b.least)
        few = min(a.samples, b.samples) < FEWEST
        return cls(
            name=now.name,
            then=b,
            now=a,
            ratio=_ratio(a.median, b.median),
            least=least,
            most=most,
            verdict="cannot tell" if few else _verdict(least, most, tolerance),
            tolerance=tolerance,
            differences=tuple(now.provenance.differences(then.provenance)),
        )

    @classmethod
    def _from_dict(cls, data: dict[str, Any]) -> Self:
        spreads = {name: Spread(**data[name]) for name in ("then", "now")}
        return cls(**data | spreads | {"differences": tuple(data["differences"])})


def _ratio(a: float, b: float) -> float:
    return a / b if b else float("inf") if a else 1.0


def _verdict(least: float, most: float, tolerance: float) -> str:
    low, high = 1 - tolerance, 1 + tolerance
    if least > high:
        return "slower"
    if most < low:
        return "faster"
    return "unchanged" if low <= least and most <= high else "cannot tell"
