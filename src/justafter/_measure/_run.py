"""measure: stages, steady state and comparisons."""

from __future__ import annotations

import functools
import gc
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from .. import _functions
from .._internals import _stages
from ._results import STAGES, Comparison, Measurement, provenance
from ._runner import Runner
from ._spread import FEWEST, GROUPS, Spread

# Rounds of samples are taken in groups that are spread over the budget: those of one
# moment agree with each other, and not with the next.
_ROUNDS_OF_A_GROUP = 100
_MIN_STAGES, _MAX_STAGES = 2, 5

Fun = Callable[..., Any]


class _Rounds:
    """Samples of several functions in turns: a round is one sample of each."""

    def __init__(self, runners: Mapping[str, Runner], budget: float) -> None:
        self.runners, self.baseline = runners, next(iter(runners))
        self.budget = budget * len(runners)
        self.seen: dict[str, list[float]] = {name: [] for name in runners}

    @property
    def count(self) -> int:
        return len(self.seen[self.baseline])

    def times(self) -> dict[str, Spread]:
        """Seconds a call, by name."""
        return {n: Spread.of(v, self.runners[n].calls) for n, v in self.seen.items()}

    def ratios(self) -> dict[str, Spread]:
        """Multiples of the baseline's time, taken within each round.

        The median is one of logarithms, so that 1.1 and 1 / 1.1 cancel.
        """
        base, found = np.log(self.seen[self.baseline]), dict[str, Spread]()
        for name, values in self.seen.items():
            one = Spread.of(np.log(values) - base)
            logs = one.median, one.least, one.most, one.minimum
            median, least, most, minimum = map(math.exp, logs)
            found[name] = Spread(median, least, most, minimum, one.samples)
        return found

    def run(self, precision: float) -> dict[str, Any]:
        """Take rounds over the budget; what a result says about them."""
        # What a function makes the garbage collector do belongs to its time; what was
        # left before it does not.
        gc.collect()
        for runner in self.runners.values():
            runner.warm_up(self.budget / len(self.runners))
        # Functions that take about as long get equally many calls a sample. A guess at
        # how long that is may be off by two, so within four counts as alike.
        calls = [one.calls for one in self.runners.values()]
        for one in self.runners.values():
            one.calls = max(n for n in calls if n <= 4 * one.calls)
        notes = [
            f"{n} {note}".strip()
            for n, one in self.runners.items()
            for note in one.notes
        ]
        is_timed = all(one.is_timed for one in self.runners.values())
        return {
            "reached": self._take_groups(precision) and is_timed,
            "provenance": provenance(),
            "note": "; ".join(notes),
        }

    def _take_groups(self, precision: float) -> bool:
        clock, taken = time.perf_counter, dict[str, float]()
        start = clock()
        for group in range(GROUPS):
            due = start + group * self.budget / GROUPS
            if (pause := due - clock()) > 0:
                time.sleep(pause)
                for one in self.runners.values():
                    one.sample()  # awake again
            end = max(due, clock()) + self.budget / GROUPS
            for i in range(_ROUNDS_OF_A_GROUP):
                if i and clock() >= end:
                    break
                turn = self.count % len(self.runners)
                names = [*self.runners]
                for name in names[turn:] + names[:turn]:
                    taken[name] = self.runners[name].sample()
                for name, seconds in taken.items():
                    self.seen[name].append(seconds)
            is_late = clock() - start >= self.budget and self.count >= FEWEST
            # Looked at once before the end: each look is another chance to stop where
            # a few samples happen to agree.
            if is_late or (group + 1 == GROUPS // 2 and self._is_precise(precision)):
                break
        return self._is_precise(precision)

    def _is_precise(self, precision: float) -> bool:
        ratios = self.ratios() if len(self.runners) > 1 else self.times()
        return all(one.precision <= precision for one in ratios.values())


def _fresh(fn: Any) -> Any | None:
    """A jit of the same function with the same options that nothing has cached."""
    fun = getattr(fn, "__wrapped__", None)
    if fun is None or not _functions.is_jax_jitted(fn):
        return None

    @functools.wraps(fun)
    def again(*args: Any, **kwargs: Any) -> Any:
        return fun(*args, **kwargs)

    return _stages.jit_again(again, fn)


def _first_stages(
    fn: Any, args: Any, kwargs: Any, budget: float
) -> tuple[dict[str, Spread], Runner]:
    """The stages up to the first call, each repeated on a jit that knows nothing."""
    seen: dict[str, list[float]] = {}
    begin = time.perf_counter()
    for done in range(_MAX_STAGES):
        fresh = _fresh(fn)
        if fresh is None:
            runner = Runner(fn, args, kwargs)
            seen["first"] = [runner.first()]
            if _functions.is_jitted(fn):
                library = type(fn).__module__.partition(".")[0]
                why = f"{library} jitted this function"
                if _functions.is_jax_jitted(fn):
                    why = "this JAX does not tell how fn was jitted"
                runner.notes.append(f"stages not taken apart: {why}")
            break
        if done >= _MIN_STAGES and time.perf_counter() - begin > budget / 2:
            break
        runner = Runner(fresh, args, kwargs)
        for name, seconds in _once(fresh, runner):
            seen.setdefault(name, []).append(seconds)
    return {name: Spread.of(seen[name]) for name in STAGES if name in seen}, runner


def _once(fresh: Any, runner: Runner) -> Iterator[tuple[str, float]]:
    """Each stage of one jit, and its seconds."""

    def timed(call: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, float]:
        start = time.perf_counter()
        return call(*args, **kwargs), time.perf_counter() - start

    traced, seconds = timed(fresh.trace, *runner.args, **runner.kwargs)
    yield "trace", seconds
    lowered, seconds = timed(traced.lower)
    yield "lower", seconds
    with _stages.without_persistent_cache():
        _, seconds = timed(lowered.compile)
    yield "compile", seconds
    yield "first", runner.first()


class Measure:
    """Time a function so that the number can be trusted.

    It waits for the result, warms up, and repeats for half of the budget, or for all
    of it where the median is not yet known to `precision`. The stages of a jitted
    function are taken on new jits of the same function with the same options. Where a
    function donates its inputs, each call gets a copy, made outside the timing.

    Args:
        fn: any function: jitted, plain Python, NumPy.
        *args: its arguments; `**kwargs` likewise.
        precision: half the width of the 95% interval for the median, relative to it,
            that is enough.
        budget: seconds for the steady state, after a warm-up of about a tenth of it;
            the stages are repeated for half as long. A function slower than that still
            runs a few times, and each stage twice.

    Raises:
        TypeError: `fn` is not callable, or has a parameter named like an option.
        ValueError: `precision` or `budget` is not a positive number, or a call uses up
            what it is given, such as an iterator.
        RuntimeError: called while JAX traces, where nothing runs.
    """

    def __call__(
        self,
        fn: Fun,
        /,
        *args: Any,
        precision: float = 0.02,
        budget: float = 1.0,
        **kwargs: Any,
    ) -> Measurement:
        options = {"precision": precision, "budget": budget}
        _check({"fn": fn}, options)
        plain, given = _functions.unbound(fn, args)
        stages, runner = _first_stages(plain, given, kwargs, budget)
        rounds = _Rounds({"": runner}, budget)
        facts = rounds.run(precision)
        stages["steady"] = rounds.times()[""]
        return Measurement(_functions.name_of(fn), stages, **facts)

    def compare(
        self,
        candidates: Mapping[str, Fun],
        /,
        *args: Any,
        precision: float = 0.02,
        budget: float = 1.0,
        **kwargs: Any,
    ) -> Comparison:
        """Time several functions on the same arguments, in turns.

        Args:
            candidates: functions by name; the others are compared with the first.
            *args: the arguments that each gets; `**kwargs` likewise.
            precision: as for `measure`, of each ratio's median.
            budget: as for `measure`, of each candidate.

        Raises:
            TypeError: `candidates` is not a mapping of names to functions.
            ValueError: fewer than two candidates; `measure` has the others.
        """
        if not isinstance(candidates, Mapping):
            raise TypeError(
                "measure.compare needs candidates by name, such as "
                f'{{"eager": f, "jit": jax.jit(f)}}, got a {type(candidates).__name__}'
            )
        if len(candidates) < 2:
            raise ValueError("measure.compare needs two candidates at least")
        options = {"precision": precision, "budget": budget}
        labels = {f"candidate {name!r}": fn for name, fn in candidates.items()}
        _check(labels, options)
        runners = {name: Runner(fn, args, kwargs) for name, fn in candidates.items()}
        for runner in runners.values():
            runner.first()
        rounds = _Rounds(runners, budget)
        facts = rounds.run(precision)
        return Comparison(rounds.times(), rounds.ratios(), rounds.baseline, **facts)


def _check(candidates: Mapping[str, Any], options: dict[str, Any]) -> None:
    """Raise for what cannot be measured, and say what to do instead."""
    for name, value in options.items():
        if not (isinstance(value, int | float) and 0 < value < math.inf):
            raise ValueError(f"{name} must be a positive number, got {value!r}")
    for label, fn in candidates.items():
        if not callable(fn):
            raise TypeError(
                f"measure needs a function to call, and {label} is not callable. "
                "Pass the function and its arguments apart: measure(f, x), not "
                "measure(f(x))"
            )
        own = _functions.name_of(fn)
        for name in options:
            if name in _functions.parameters(fn):
                raise TypeError(
                    f"{own} has a parameter named {name!r}, which is an option of "
                    f"measure: wrap the call, measure(lambda: {own}(...))"
                )
    if _stages.is_tracing():
        raise RuntimeError(
            "measure runs a function and waits for it, and JAX is tracing here, which "
            "runs nothing: call measure outside of jit, grad, vmap and scan"
        )


measure = Measure()
