"""measure: a timing that can be trusted."""

from __future__ import annotations

import functools
import gc
import inspect
import json
import math
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Self

import jax
import numpy as np

from .. import _internals
from ._show import as_html, as_text, plot

# One sample lasts at least this long, by timing several calls together where one is
# shorter: a hundred times what reading the clock costs.
_SAMPLE_SECONDS = 50e-6
_MIN_SAMPLES = 9
_MAX_SAMPLES = 2000
_MIN_STAGES, _MAX_STAGES = 2, 5


@dataclass(frozen=True, slots=True)
class Spread:
    """A quantity that was seen several times: its middle and its spread.

    Attributes:
        median: the middle value, in seconds for a time, without a unit for a ratio.
        low: the lower quartile: a quarter of the samples lie below.
        high: the upper quartile.
        least: the lower end of a 95% interval for the median, from the order of the
            samples alone (no assumption on how they are distributed).
        most: the upper end of that interval.
        samples: how many samples.
        calls: how many calls one sample is the mean of.
    """

    median: float
    low: float
    high: float
    least: float
    most: float
    samples: int
    calls: int = 1

    @classmethod
    def of(cls, values: Any, calls: int = 1) -> Self:
        """Summarize samples, each the mean of `calls` calls."""
        values = np.sort(np.asarray(values, float))
        if not values.size:
            raise ValueError("a spread needs at least one sample")
        low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
        first, last = _median_ranks(values.size)
        return cls(
            float(median),
            float(low),
            float(high),
            float(values[first]),
            float(values[last]),
            int(values.size),
            calls,
        )

    @property
    def precision(self) -> float:
        """Half the width of the interval for the median, relative to the median."""
        if self.samples < 6:  # too few for an interval that holds 95%
            return math.inf
        return (self.most - self.least) / 2 / self.median if self.median else 0.0


def _median_ranks(n: int) -> tuple[int, int]:
    """Which of n sorted samples bound the median with 95% confidence.

    The number of samples below the median is binomial(n, 1/2); its normal
    approximation is good to one rank from six samples on.
    """
    reach = 0.98 * math.sqrt(n)
    first = max(math.floor(n / 2 - reach - 0.5), 0)
    return first, n - 1 - first


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where and when numbers were measured.

    Attributes:
        platform: JAX's name for the kind of device, such as ``"cpu"``.
        device: the model of the device.
        device_count: how many devices JAX saw.
        cpus: how many CPU cores the machine has.
        jax: the version of JAX.
        jaxlib: the version of jaxlib.
        numpy: the version of NumPy.
        python: the version of Python.
        date: date and time, in UTC and ISO 8601.
    """

    platform: str
    device: str
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
        import jaxlib

        device = jax.devices()[0]
        return cls(
            platform=device.platform,
            device=device.device_kind,
            device_count=jax.device_count(),
            cpus=os.cpu_count() or 1,
            jax=jax.__version__,
            jaxlib=jaxlib.__version__,
            numpy=np.__version__,
            python=platform.python_version(),
            date=datetime.now(UTC).isoformat(timespec="seconds"),
        )


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
        data = json.loads(text)
        if not isinstance(data, dict) or data.pop("kind", None) != cls.__name__:
            raise ValueError(f"this is not the JSON of a {cls.__name__}")
        return cls._from_dict(data)

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
        compile: from StableHLO to an executable; None likewise.
        first: the first call: of the compiled function where it is jitted, of the
            function as it is where not.
        steady: the calls after the warm-up.
        provenance: where and when.
        reached: whether `steady` is as precise as was asked for.
        note: what a reader must know about these numbers, or an empty text.
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

    @property
    def stages(self) -> dict[str, Spread]:
        """The stages that there are, in the order in which they happen."""
        names = ("trace", "lower", "compile", "first", "steady")
        found = {name: getattr(self, name) for name in names}
        return {name: spread for name, spread in found.items() if spread is not None}

    @property
    def cold(self) -> float:
        """Seconds until the first result, the medians of all stages up to it added."""
        return sum(s.median for name, s in self.stages.items() if name != "steady")

    @classmethod
    def _from_dict(cls, data: dict[str, Any]) -> Self:
        for name in ("trace", "lower", "compile", "first", "steady"):
            data[name] = data[name] and Spread(**data[name])
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
    """

    times: dict[str, Spread]
    ratios: dict[str, Spread]
    baseline: str
    provenance: Provenance
    reached: bool

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


# --------------------------------------------------------------------- one function


def _is_jitted(fn: Any) -> bool:
    return isinstance(fn, jax.stages.Wrapped)


def _fresh(fn: Any) -> Any | None:
    """A jit of the same function with the same options that nothing has cached."""
    fun = getattr(fn, "__wrapped__", None)
    if fun is None:
        return None

    @functools.wraps(fun)
    def again(*args: Any, **kwargs: Any) -> Any:
        return fun(*args, **kwargs)

    return _internals.jit_again(again, fn)


def _copy(leaf: Any) -> Any:
    return leaf.copy() if _is_concrete(leaf) else leaf


def _is_concrete(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer)


def _deleted(tree: Any) -> bool:
    leaves = jax.tree.leaves(tree)
    return any(_is_concrete(leaf) and leaf.is_deleted() for leaf in leaves)


def _no_wait(result: Any) -> None:
    """A result without JAX arrays is there when the call returns."""


def _method_wait(result: Any) -> None:
    result.block_until_ready()


def _effects_wait(result: Any) -> None:
    jax.effects_barrier()


class _Runner:
    """Runs one function on one set of arguments, and always waits for the result."""

    def __init__(self, fn: Callable, args: tuple, kwargs: dict[str, Any]):
        self.fn, self.args, self.kwargs = fn, args, kwargs
        self.donates = False
        self.wait: Callable[[Any], None] = jax.block_until_ready
        self.calls = 1
        self.note = ""

    def first(self) -> float:
        """Seconds for one call; learns how to wait, and whether inputs are consumed.

        The caller's own arrays are never handed over: the call gets copies.
        """
        args, kwargs = self._arguments(copied=True)
        start = time.perf_counter()
        result = jax.block_until_ready(self.fn(*args, **kwargs))
        seconds = time.perf_counter() - start
        self.donates = _deleted((args, kwargs))
        self._learn(result)
        return seconds

    def _learn(self, result: Any) -> None:
        leaves = jax.tree.leaves(result)
        if isinstance(result, jax.Array):
            self.wait = _method_wait
        elif any(isinstance(leaf, jax.Array) for leaf in leaves):
            self.wait = jax.block_until_ready
        elif leaves:
            self.wait = _no_wait
        else:
            self.wait = _effects_wait
            self.note = (
                "returns nothing to wait for: timed until the calls had returned and "
                "their side effects were done"
            )

    def _arguments(self, copied: bool) -> tuple[tuple, dict]:
        if not copied:
            return self.args, self.kwargs
        return jax.block_until_ready(jax.tree.map(_copy, (self.args, self.kwargs)))

    def sample(self) -> float:
        """Seconds a call, over `self.calls` calls."""
        if self.donates:
            return self._sample_donating()
        fn, args, kwargs, wait = self.fn, self.args, self.kwargs, self.wait
        again = range(self.calls)
        start = time.perf_counter()
        if kwargs:
            for _ in again:
                wait(fn(*args, **kwargs))
        elif wait is _no_wait or wait is _effects_wait:
            for _ in again:
                fn(*args)
            wait(None)
        else:
            for _ in again:
                wait(fn(*args))
        return (time.perf_counter() - start) / self.calls

    def _sample_donating(self) -> float:
        seconds = 0.0
        for _ in range(self.calls):
            args, kwargs = self._arguments(copied=True)
            start = time.perf_counter()
            self.wait(self.fn(*args, **kwargs))
            seconds += time.perf_counter() - start
        return seconds / self.calls

    def warm_up(self, budget: float) -> None:
        """Run until a sample is long enough to be timed; a fifth of the budget."""
        end = time.perf_counter() + budget / 5
        for _ in range(2):
            seconds = self.sample()
        while seconds * self.calls < _SAMPLE_SECONDS:
            self.calls *= 2
            seconds = self.sample()
        while time.perf_counter() < min(end, end - budget / 5 + 20 * seconds):
            self.sample()


class _Collected:
    """Keeps Python's garbage collector out of the timings, as timeit does."""

    def __enter__(self) -> None:
        self.was = gc.isenabled()
        gc.collect()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self.was:
            gc.enable()


def _due(samples: int, start: float, budget: float) -> bool:
    """Whether to look at the precision after this sample.

    Not before a fifth of the budget is spent: samples of one quiet moment agree with
    each other, and not with the next. Later only now and then, for looking costs time.
    """
    spent = time.perf_counter() - start
    if samples < _MIN_SAMPLES or spent < budget / 5:
        return samples >= _MAX_SAMPLES
    return samples <= 64 or samples % 16 == 0 or spent > budget


def _steady(runner: _Runner, precision: float, budget: float) -> tuple[Spread, bool]:
    with _Collected():
        runner.warm_up(budget)
        values, start = [], time.perf_counter()
        while True:
            values.append(runner.sample())
            if not _due(len(values), start, budget):
                continue
            spread = Spread.of(values, runner.calls)
            if spread.precision <= precision:
                return spread, True
            spent = time.perf_counter() - start
            if spent > budget or len(values) >= _MAX_SAMPLES:
                return spread, False


def _stages(
    fn: Any, args: tuple, kwargs: dict[str, Any], budget: float
) -> tuple[dict[str, Spread], _Runner, str]:
    """The stages up to the first call, each repeated on a jit that knows nothing."""
    if not _is_jitted(fn) or (fresh := _fresh(fn)) is None:
        runner = _Runner(fn, args, kwargs)
        note = ""
        if _is_jitted(fn):
            note = "stages not taken apart: this JAX does not tell how fn was jitted"
        return {"first": Spread.of([runner.first()])}, runner, note
    seen: dict[str, list[float]] = {
        n: [] for n in ("trace", "lower", "compile", "first")
    }
    begin = time.perf_counter()
    while True:
        runner = _Runner(fresh, args, kwargs)
        for name, seconds in _once(fresh, runner):
            seen[name].append(seconds)
        done = len(seen["first"])
        spent = time.perf_counter() - begin
        if done >= _MIN_STAGES and (done >= _MAX_STAGES or spent > budget / 2):
            break
        fresh = _fresh(fn)
    return {name: Spread.of(values) for name, values in seen.items()}, runner, ""


def _once(fresh: Any, runner: _Runner) -> Iterator[tuple[str, float]]:
    clock = time.perf_counter
    start = clock()
    traced = fresh.trace(*runner.args, **runner.kwargs)
    yield "trace", clock() - start
    start = clock()
    lowered = traced.lower()
    yield "lower", clock() - start
    start = clock()
    lowered.compile()
    yield "compile", clock() - start
    yield "first", runner.first()


# ------------------------------------------------------------------------- the door


class _Measure:
    """Time a function so that the number can be trusted.

    ``measure(fn, *args, **kwargs)`` separates tracing, lowering, compilation, the first
    call and the steady state; it always waits for the result, warms up, and repeats
    until the median is known to `precision`, or the time budget is spent.

    The stages of a jitted function are taken on new jits of the same function with the
    same options, so that what was cached before does not hide them. Functions jitted
    inside it keep their caches. For a function that is not jitted there are no such
    stages: `first` is one call as the process stands, and `steady` the calls after it.

    The caller's arrays are never donated: where a function consumes its inputs, each
    call gets a copy, made outside the timing.

    Args:
        fn: any function: jitted, plain Python, NumPy.
        *args: its arguments.
        precision: half the width of the 95% interval for the median, relative to it,
            at which to stop.
        budget: seconds to spend on the steady state at most, and half as much on
            repeating the stages. A function slower than that still runs a few times.
        **kwargs: its keyword arguments.

    Returns:
        A `Measurement`.

    Raises:
        TypeError: `fn` is not callable, or has a parameter of its own that is named
            like an option.
        ValueError: `precision` or `budget` is not a positive number.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> m = measure(jax.jit(lambda x: x @ x), jnp.ones((64, 64)), budget=0.1)
        >>> list(m.stages)
        ['trace', 'lower', 'compile', 'first', 'steady']
        >>> m.steady.low <= m.steady.median <= m.steady.high
        True
    """

    def __call__(
        self,
        fn: Callable,
        /,
        *args: Any,
        precision: float = 0.02,
        budget: float = 1.0,
        **kwargs: Any,
    ) -> Measurement:
        _check_callable(fn, "fn")
        _check_options(fn, precision, budget)
        stages, runner, note = _stages(fn, args, kwargs, budget)
        steady, reached = _steady(runner, precision, budget)
        return Measurement(
            name=_name(fn),
            trace=stages.get("trace"),
            lower=stages.get("lower"),
            compile=stages.get("compile"),
            first=stages["first"],
            steady=steady,
            provenance=Provenance.now(),
            reached=reached,
            note=note or runner.note,
        )

    def compare(
        self,
        candidates: Mapping[str, Callable],
        /,
        *args: Any,
        baseline: str | None = None,
        precision: float = 0.02,
        budget: float = 1.0,
        **kwargs: Any,
    ) -> Comparison:
        """Time several functions on the same arguments, in turns.

        One sample of each is a round; each round starts with another candidate. The
        ratios are taken within a round, so a machine that slows down does not decide.

        Args:
            candidates: functions by name.
            *args: the arguments that each gets.
            baseline: the candidate that the others are compared with; the first if
                not given.
            precision: half the width of the 95% interval for a ratio's median,
                relative to it, at which to stop.
            budget: seconds to spend on each candidate at most.
            **kwargs: the keyword arguments that each gets.

        Returns:
            A `Comparison`.

        Raises:
            TypeError: `candidates` is not a mapping of names to functions.
            ValueError: fewer than two candidates, or an unknown baseline.

        Example:
            >>> import numpy as np
            >>> both = {"sum": np.sum, "mean": np.mean}
            >>> c = measure.compare(both, np.ones(100), budget=0.05)
            >>> c.baseline, c.ratios["sum"].median
            ('sum', 1.0)
        """
        _check_candidates(candidates, baseline)
        for fn in candidates.values():
            _check_options(fn, precision, budget, extra=("baseline",))
        baseline = next(iter(candidates)) if baseline is None else baseline
        runners = {n: _Runner(fn, args, kwargs) for n, fn in candidates.items()}
        rounds, reached = _rounds(runners, baseline, precision, budget)
        base = np.asarray(rounds[baseline])
        return Comparison(
            times={n: Spread.of(v, runners[n].calls) for n, v in rounds.items()},
            ratios={n: Spread.of(v / base) for n, v in rounds.items()},
            baseline=baseline,
            provenance=Provenance.now(),
            reached=reached,
        )

    def __repr__(self) -> str:
        return "measure(fn, *args, precision=0.02, budget=1.0, **kwargs)"


def _rounds(
    runners: dict[str, _Runner], baseline: str, precision: float, budget: float
) -> tuple[dict[str, np.ndarray], bool]:
    for runner in runners.values():
        runner.first()
    with _Collected():
        for runner in runners.values():
            runner.warm_up(budget)
        names, allowed = list(runners), budget * len(runners)
        seen: dict[str, list[float]] = {name: [] for name in names}
        start, count = time.perf_counter(), 0
        while True:
            turn = count % len(names)
            for name in names[turn:] + names[:turn]:
                seen[name].append(runners[name].sample())
            count += 1
            if not _due(count, start, allowed):
                continue
            rounds = {name: np.asarray(values) for name, values in seen.items()}
            base = rounds[baseline]
            ratios = [Spread.of(v / base) for n, v in rounds.items() if n != baseline]
            if all(ratio.precision <= precision for ratio in ratios):
                return rounds, True
            spent = time.perf_counter() - start
            if spent > allowed or count >= _MAX_SAMPLES:
                return rounds, False


def _name(fn: Callable) -> str:
    inner = fn
    while isinstance(inner, functools.partial):
        inner = inner.func
    return getattr(inner, "__name__", type(inner).__name__)


def _kind(value: Any) -> str:
    return "a jax.Array" if _is_concrete(value) else f"a {type(value).__name__}"


def _check_callable(fn: Any, what: str) -> None:
    if not callable(fn):
        raise TypeError(
            f"measure needs a function to call, and {what} is {_kind(fn)}. "
            "Pass the function and its arguments apart: measure(f, x), not "
            "measure(f(x))"
        )


def _check_options(
    fn: Callable, precision: float, budget: float, extra: tuple[str, ...] = ()
) -> None:
    for name, value in (("precision", precision), ("budget", budget)):
        if not isinstance(value, int | float) or not 0 < value < math.inf:
            raise ValueError(f"{name} must be a positive number, got {value!r}")
    try:
        own = inspect.signature(fn).parameters
    except (TypeError, ValueError):  # a builtin that does not tell
        return
    for name in ("precision", "budget", *extra):
        if name in own:
            raise TypeError(
                f"{_name(fn)} has a parameter named {name!r}, which is an option of "
                f"measure: wrap the call, measure(lambda: {_name(fn)}(...))"
            )


def _check_candidates(candidates: Any, baseline: str | None) -> None:
    if not isinstance(candidates, Mapping):
        raise TypeError(
            "measure.compare needs candidates by name, such as "
            f'{{"eager": f, "jit": jax.jit(f)}}, got a {type(candidates).__name__}'
        )
    if len(candidates) < 2:
        raise ValueError("measure.compare needs two candidates at least")
    for name, fn in candidates.items():
        _check_callable(fn, f"candidate {name!r}")
    if baseline is not None and baseline not in candidates:
        known = ", ".join(candidates)
        raise ValueError(f"no candidate is named {baseline!r}; there are: {known}")


measure = _Measure()
