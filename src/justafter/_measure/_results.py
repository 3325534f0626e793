"""What a measurement gives: plain data, that turns into JSON and back."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Self

from ._provenance import Provenance
from ._show import as_html, as_text
from ._spread import Spread


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
            if data.pop("kind") != cls.__name__:
                raise ValueError("it is another kind of result")
            data["provenance"] = Provenance(**data["provenance"])
            for name in {"stages", "times", "ratios"} & data.keys():
                data[name] = {key: Spread(**one) for key, one in data[name].items()}
            return cls(**data)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"this is no JSON of a {cls.__name__}: {error}") from None

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)


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

    def _stage(self, name: str) -> Spread:
        try:
            return self.stages[name]
        except KeyError:
            known = ", ".join(self.stages)
            text = f"{self.name} has no stage {name!r} here; there are: {known}"
            raise AttributeError(text) from None

    @property
    def trace(self) -> Spread:
        """The stage of this name."""
        return self._stage("trace")

    @property
    def lower(self) -> Spread:
        """The stage of this name."""
        return self._stage("lower")

    @property
    def compile(self) -> Spread:
        """The stage of this name."""
        return self._stage("compile")

    @property
    def first(self) -> Spread:
        """The stage of this name."""
        return self._stage("first")

    @property
    def steady(self) -> Spread:
        """The stage of this name."""
        return self._stage("steady")

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
