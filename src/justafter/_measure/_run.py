"""measure: stages, steady state and comparisons."""

from __future__ import annotations

import functools
import gc
import inspect
import math
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from .. import _functions, _internals
from . import _saved
from ._busy import ORDINARY, Waiting
from ._provenance import Provenance
from ._results import Comparison, Measurement
from ._runner import Runner, is_lazy
from ._spread import FEW, FEWEST, Samples, Spread

# Samples are taken in blocks that are spread over the budget: those of one moment
# agree with each other, and not with the next.
_BLOCKS, _BLOCK_SAMPLES, _MIN_SAMPLES = 20, 100, FEWEST
_MIN_STAGES, _MAX_STAGES = 2, 5
# After so many blocks it is looked whether that is enough: each look is another chance
# to stop where a few samples happen to agree.
_LOOKS = (10, 15, 20)
_MAX_CALLS = 100_000

Fun = Callable[..., Any]


class _Uncollected:
    """Keeps Python's garbage collector out of the timings, as timeit does."""

    def __enter__(self) -> None:
        self.was = gc.isenabled()
        gc.collect()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self.was:
            gc.enable()


def in_blocks(
    take: Callable[[], None],
    warm: Callable[[], object],
    is_enough: Callable[[], bool],
    is_spent: Callable[[], bool],
    budget: float,
    most: int = _BLOCK_SAMPLES,
) -> tuple[bool, bool]:
    """Take samples in blocks over the budget.

    Args:
        take: takes one sample, or one round of them.
        warm: runs once without timing, after a pause.
        is_enough: whether the samples are as precise as was asked for; looked at
            when half the budget is spent.
        is_spent: whether no more calls are allowed.
        budget: seconds to spread the blocks over.
        most: how many samples a block has at most.

    Returns:
        Whether it was enough, and whether it was interrupted.
    """
    clock, count = time.perf_counter, 0
    start = clock()
    try:
        for block in range(_BLOCKS):
            due = start + block * budget / _BLOCKS
            if (pause := due - clock()) > 0:
                time.sleep(pause)
                warm()
            end = due + budget / _BLOCKS
            for i in range(most):
                if is_spent() or (i and clock() >= end):
                    break
                take()
                count += 1
            is_over = clock() - start >= budget or is_spent()
            if count >= _MIN_SAMPLES and block + 1 in _LOOKS and is_enough():
                return True, False
            if is_over and (count >= _MIN_SAMPLES or is_spent()):
                return count >= _MIN_SAMPLES and is_enough(), False
    except KeyboardInterrupt:
        if not count:
            raise
        return False, True
    return is_enough(), False


def _steady(
    runner: Runner, precision: float, budget: float
) -> tuple[Spread, bool, list[str]]:
    values: list[float] = []

    def spread() -> Spread:
        share = before.share_until(Waiting.now())
        found = Spread.of(values, runner.calls)
        return found.widened(share) if share > ORDINARY else found

    with _Uncollected():
        runner.warm_up(budget)
        before = Waiting.now()
        reached, interrupted = in_blocks(
            lambda: values.append(runner.sample()),
            runner.sample,
            lambda: spread().precision <= precision,
            lambda: runner.is_spent and bool(values),
            budget,
            runner.room(_BLOCKS, _BLOCK_SAMPLES),
        )
    found, share = spread(), before.share_until(Waiting.now())
    said = _about(runner, found, interrupted, share)
    if runner.is_spent and not reached:
        said.append("stopped at the number of calls that was allowed")
    return found, reached, said


def _about(
    runner: Runner, spread: Spread, interrupted: bool, share: float
) -> list[str]:
    said = [f"interrupted after {spread.samples} samples"] * interrupted
    if share > 0.1:
        said.append(
            f"the machine was busy: {share:.0%} of its time the process waited for a "
            "CPU, and the interval is wide"
        )
    elif spread.samples < FEW:
        seconds = spread.median * spread.calls
        said.append(_few(spread.samples, "samples", seconds, runner.is_spent))
    elif spread.is_dependent:
        said.append("the samples drift or come in runs: the interval is wide")
    return said


def _few(count: int, what: str, seconds: float, is_spent: bool) -> str:
    """That the interval is wide for want of samples, and what would mend it."""
    if count < FEWEST:
        return f"{count} {what} are too few for an interval"
    more = "more calls allow" if is_spent else f"budget={FEW * seconds:.2g} allows"
    return (
        f"{count} {what} hardly tell whether they depend on each other, and the "
        f"interval is wide: {more} {FEW}"
    )


# --- stages -----------------------------------------------------------------------


def _fresh(fn: Any) -> Any | None:
    """A jit of the same function with the same options that nothing has cached."""
    fun = getattr(fn, "__wrapped__", None)
    if fun is None or not _functions.is_jax_jitted(fn):
        return None

    @functools.wraps(fun)
    def again(*args: Any, **kwargs: Any) -> Any:
        return fun(*args, **kwargs)

    return _internals.jit_again(again, fn)


def _stages(
    fn: Any, args: Any, kwargs: Any, budget: float, limit: int
) -> tuple[dict[str, Spread], Runner]:
    """The stages up to the first call, each repeated on a jit that knows nothing."""
    fresh = _fresh(fn) if _functions.is_jitted(fn) else None
    if fresh is None:
        runner = Runner(fn, args, kwargs, limit)
        seconds = runner.first()
        if _functions.is_jitted(fn):
            runner.notes.append(_not_apart(fn))
        return {"first": Spread.of([seconds])}, runner
    seen: dict[str, list[float]] = {}
    runner = Runner(fresh, args, kwargs, limit)
    begin = time.perf_counter()
    while True:
        for name, seconds in _once(fresh, runner):
            seen.setdefault(name, []).append(seconds)
        done = len(seen["first"])
        spent = time.perf_counter() - begin
        # One call is left for the steady state.
        if done >= limit - 1 or (
            done >= _MIN_STAGES and (done >= _MAX_STAGES or spent > budget / 2)
        ):
            break
        fresh = _fresh(fn)
        runner = Runner(fresh, args, kwargs, limit)  # type: ignore[arg-type]
        runner.made = done
    return {name: Spread.of(values) for name, values in seen.items()}, runner


def _not_apart(fn: Any) -> str:
    if _functions.is_jax_jitted(fn):
        return "stages not taken apart: this JAX does not tell how fn was jitted"
    library = type(fn).__module__.partition(".")[0]
    return f"stages not taken apart: {library} jitted this function"


def _once(fresh: Any, runner: Runner) -> Iterator[tuple[str, float]]:
    clock = time.perf_counter
    start = clock()
    traced = fresh.trace(*runner.args, **runner.kwargs)
    yield "trace", clock() - start
    start = clock()
    lowered = traced.lower()
    yield "lower", clock() - start
    with _internals.loads() as loaded:
        start = clock()
        lowered.compile()
        seconds = clock() - start
    yield "load" if loaded else "compile", seconds
    yield "first", runner.first()


# --- the door ---------------------------------------------------------------------


class Measure:
    """Time a function so that the number can be trusted.

    ``measure(fn, *args, **kwargs)`` separates tracing, lowering, compilation, the first
    call and the steady state; it always waits for the result, warms up, and repeats
    until the median is known to `precision`, or the time budget is spent.

    The stages of a jitted function are taken on new jits of the same function with the
    same options, so that what was cached before does not hide them. Functions jitted
    inside it keep their caches. An executable that JAX reads from its persistent cache
    counts as `load`, not as `compile`. For a function that is not jitted there are no
    such stages: `first` is one call as the process stands, and `steady` the calls
    after it.

    Samples are taken in blocks that are spread over the budget, half of it at least.
    It waits for all arrays that a call returns, in objects of any class, and for those
    that it puts into its object, its closure or its arguments. Ctrl-C ends the steady
    state and keeps what was measured.

    The caller's arrays are never donated: where a function consumes its inputs, each
    call gets a copy, made outside the timing.

    Args:
        fn: any function: jitted, plain Python, NumPy.
        *args: its arguments.
        precision: half the width of the 95% interval for the median, relative to it,
            at which to stop.
        budget: seconds to spend on the steady state at most, and half as much on
            repeating the stages. A function slower than that still runs a few times.
        max_calls: how often the function is called at most.
        **kwargs: its keyword arguments.

    Returns:
        A `Measurement`.

    Raises:
        TypeError: `fn` is not callable, or has a parameter of its own that is named
            like an option.
        ValueError: `precision` or `budget` is not a positive number, or `max_calls`
            is below 1.
        RuntimeError: called while JAX traces, where nothing runs.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from justafter import measure
        >>> m = measure(jax.jit(lambda x: x @ x), jnp.ones((64, 64)), budget=0.1)
        >>> list(m.stages)
        ['trace', 'lower', 'compile', 'first', 'steady']
        >>> m.steady.low <= m.steady.median <= m.steady.high
        True
    """

    def __call__(
        self,
        fn: Fun,
        /,
        *args: Any,
        precision: float = 0.02,
        budget: float = 1.0,
        max_calls: int = _MAX_CALLS,
        **kwargs: Any,
    ) -> Measurement:
        _check_callable(fn, "fn")
        _check_options(fn, precision, budget, max_calls)
        _check_running(args, kwargs)
        stages, runner = _stages(fn, args, kwargs, budget, max_calls)
        steady, reached, said = _steady(runner, precision, budget)
        return Measurement(
            name=_functions.name_of(fn),
            trace=stages.get("trace"),
            lower=stages.get("lower"),
            compile=stages.get("compile"),
            load=stages.get("load"),
            first=stages["first"],
            steady=steady,
            provenance=Provenance.now(),
            reached=reached and runner.is_timed,
            note="; ".join([*runner.notes, *said]),
        )

    def compare(
        self,
        candidates: Mapping[str, Fun],
        /,
        *args: Any,
        baseline: str | None = None,
        precision: float = 0.02,
        budget: float = 1.0,
        max_calls: int = _MAX_CALLS,
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
            max_calls: how often each is called at most.
            **kwargs: the keyword arguments that each gets.

        Returns:
            A `Comparison`.

        Raises:
            TypeError: `candidates` is not a mapping of names to functions.
            ValueError: fewer than two candidates, or an unknown baseline.
            RuntimeError: called while JAX traces, where nothing runs.

        Example:
            >>> import numpy as np
            >>> both = {"sum": np.sum, "mean": np.mean}
            >>> c = measure.compare(both, np.ones(100), budget=0.05)
            >>> c.baseline, c.ratios["sum"].median
            ('sum', 1.0)
        """
        _check_candidates(candidates, baseline)
        for fn in candidates.values():
            _check_options(fn, precision, budget, max_calls, extra=("baseline",))
        _check_running(args, kwargs)
        baseline = next(iter(candidates)) if baseline is None else baseline
        runners = {
            name: Runner(fn, args, kwargs, max_calls) for name, fn in candidates.items()
        }
        rounds, reached, said = _rounds(runners, baseline, precision, budget)
        base = rounds[baseline]
        return Comparison(
            times={n: Spread.of(v, runners[n].calls) for n, v in rounds.items()},
            ratios={n: Spread.of(v / base) for n, v in rounds.items()},
            baseline=baseline,
            provenance=Provenance.now(),
            reached=reached and all(one.is_timed for one in runners.values()),
            note="; ".join(said),
        )

    @staticmethod
    def save(path: str | Path, /, *measurements: Measurement) -> None:
        """Keep measurements in a file, to set a later run beside them.

        Args:
            path: the file; it is written anew.
            *measurements: each with a name of its own.

        Raises:
            ValueError: two have one name.

        Example:
            >>> import tempfile, numpy as np
            >>> path = tempfile.mkdtemp() + "/then.json"
            >>> measure.save(path, measure(np.sort, np.arange(99), budget=0.05))
            >>> then = measure.load(path)
            >>> now = measure(np.sort, np.arange(99), budget=0.05)
            >>> now.against(then["sort"], tolerance=0.9).verdict == "slower"
            False
        """
        _saved.save(path, *measurements)

    @staticmethod
    def load(path: str | Path, /) -> dict[str, Measurement]:
        """The measurements in a file that `measure.save` wrote, by name.

        Raises:
            OSError: there is no such file.
            ValueError: it is no such file; the message names it.
        """
        return _saved.load(path)

    def __repr__(self) -> str:
        return "measure(fn, *args, precision=0.02, budget=1.0, **kwargs)"


def _rounds(
    runners: dict[str, Runner], baseline: str, precision: float, budget: float
) -> tuple[dict[str, Samples], bool, list[str]]:
    for runner in runners.values():
        runner.first()
    names, seen = list(runners), {name: list[float]() for name in runners}

    def take() -> None:
        turn = len(seen[baseline]) % len(names)
        found = {name: runners[name].sample() for name in names[turn:] + names[:turn]}
        for name, seconds in found.items():
            seen[name].append(seconds)

    def is_enough() -> bool:
        base = np.asarray(seen[baseline])
        ratios = (Spread.of(np.asarray(v) / base) for v in seen.values())
        return all(ratio.precision <= precision for ratio in ratios)

    def is_spent() -> bool:
        return bool(seen[baseline]) and any(one.is_spent for one in runners.values())

    with _Uncollected():
        for runner in runners.values():
            runner.warm_up(budget)
        reached, interrupted = in_blocks(
            take,
            lambda: [one.sample() for one in runners.values()],
            is_enough,
            is_spent,
            budget * len(names),
            min(one.room(_BLOCKS, _BLOCK_SAMPLES) for one in runners.values()),
        )
    said = [f"{n} {note}" for n, one in runners.items() for note in one.notes]
    count = len(seen[baseline])
    said += [f"interrupted after {count} rounds"] * interrupted
    if count < FEW:
        seconds = sum(map(sum, seen.values())) / count / len(names)
        said.append(_few(count, "rounds", seconds, is_spent()))
    return {name: np.asarray(values) for name, values in seen.items()}, reached, said


# --- bad input --------------------------------------------------------------------


def _kind(value: Any) -> str:
    is_array = isinstance(value, jax.Array)
    return "a jax.Array" if is_array else f"a {type(value).__name__}"


def _check_running(args: Any, kwargs: Any) -> None:
    leaves = jax.tree.leaves((args, kwargs), is_leaf=is_lazy)
    is_traced = any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
    if is_traced or _internals.is_tracing():
        raise RuntimeError(
            "measure runs a function and waits for it, and JAX is tracing here, which "
            "runs nothing: call measure outside of jit, grad, vmap and scan"
        )


def _check_callable(fn: Any, what: str) -> None:
    if not callable(fn):
        raise TypeError(
            f"measure needs a function to call, and {what} is {_kind(fn)}. "
            "Pass the function and its arguments apart: measure(f, x), not "
            "measure(f(x))"
        )


def _check_options(
    fn: Fun,
    precision: float,
    budget: float,
    max_calls: int,
    extra: tuple[str, ...] = (),
) -> None:
    for name, value in (("precision", precision), ("budget", budget)):
        if not isinstance(value, int | float) or not 0 < value < math.inf:
            raise ValueError(f"{name} must be a positive number, got {value!r}")
    if type(max_calls) is not int or max_calls < 1:
        raise ValueError(f"max_calls must be 1 or more, got {max_calls!r}")
    try:
        own = inspect.signature(fn).parameters
    except (TypeError, ValueError):  # a builtin that does not tell
        return
    name_ = _functions.name_of(fn)
    for name in ("precision", "budget", "max_calls", *extra):
        if name in own:
            raise TypeError(
                f"{name_} has a parameter named {name!r}, which is an option of "
                f"measure: wrap the call, measure(lambda: {name_}(...))"
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


measure = Measure()
