"""measure: the statistics on a clock that the test turns, then real functions."""

import functools
import json
import re
import sys
import threading
import time
import timeit
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import justafter._internals as internals
from justafter import Comparison, Measurement, Spread, measure
from justafter._measure._busy import Waiting
from justafter._measure._run import in_blocks

pytest_plugins = ["pytester"]

QUICK = {"budget": 0.05, "precision": 0.5}


class Clock:
    """Time that passes only when a function under test says so."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds

    def work(self, *seconds):
        """A function that takes these seconds, one after the other, round and round."""
        calls = []

        def fn():
            calls.append(1)
            self.now += seconds[(len(calls) - 1) % len(seconds)]
            return 0

        return fn


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    # Others on this machine are no part of a time that the test turns.
    monkeypatch.setattr(Waiting, "share_until", lambda self, later: 0.0)
    monkeypatch.setattr(time, "perf_counter", clock)
    monkeypatch.setattr(time, "sleep", clock.sleep)
    return clock


# --------------------------------------------------------------------------- statistics


SHUFFLED = [4, 17, 9, 1, 20, 12, 6, 15, 2, 21, 11, 8, 18, 3, 13, 19, 5, 10, 16, 7, 14]


def test_a_spread_says_median_quartiles_and_interval():
    spread = Spread.of(SHUFFLED)
    assert sorted(SHUFFLED) == list(range(1, 22))
    assert (spread.low, spread.median, spread.high) == (6, 11, 16)
    assert 4 < spread.least < 11 < spread.most < 18
    assert spread.samples == 21
    assert not spread.is_dependent
    # The same numbers, one after the other: a drift, and next to nothing is known.
    drifting = Spread.of(range(1, 22))
    assert drifting.is_dependent
    assert drifting.precision > 4 * spread.precision
    assert (drifting.low, drifting.median, drifting.high) == (6, 11, 16)


def autocorrelated(rng, size, weight):
    """Numbers of which each is `weight` of the last, and the rest new."""
    wait = int(10 / (1 - weight))
    new = rng.standard_normal((size[0], size[1] + wait))
    for i in range(1, new.shape[1]):
        new[:, i] = weight * new[:, i - 1] + np.sqrt(1 - weight**2) * new[:, i]
    return new[:, wait:]


def bursts(rng, size):
    """Quiet, with stretches of a twentieth in which all is slow."""
    values = 0.3 * rng.standard_normal(size)
    length = max(size[1] // 20, 1)
    for row in values:
        for start in rng.integers(0, size[1], rng.poisson(3)):
            row[start : start + length] += 3
    return values


KINDS = {
    "independent": lambda rng, size: rng.standard_normal(size),
    "autocorrelated 0.9": lambda rng, size: autocorrelated(rng, size, 0.9),
    "autocorrelated 0.99": lambda rng, size: autocorrelated(rng, size, 0.99),
    "drifting": lambda rng, size: (
        0.3 * rng.standard_normal(size)
        + np.linspace(-1, 1, size[1]) * rng.choice([-1, 1], (size[0], 1))
    ),
    "bursts": bursts,
}


@pytest.mark.parametrize("count", [9, 12, 16, 20, 60, 200, 2000])
@pytest.mark.parametrize("kind", KINDS)
def test_the_interval_holds_what_it_says(kind, count):
    rng, draws = np.random.default_rng(0), 400
    values = np.exp(0.1 * KINDS[kind](rng, (draws, count)))
    truth = 1.0
    if kind == "bursts":  # a twentieth now and then moves the middle a little
        truth = np.median(np.exp(0.1 * bursts(rng, (draws, count))))
    spreads = [Spread.of(row) for row in values]
    held = np.mean([one.least <= truth <= one.most for one in spreads])
    assert held >= 0.9, f"{held:.1%}"
    if kind == "independent" and count >= 20:  # and it is not wide without need
        deviation = 1.25 * 0.1 / np.sqrt(count)
        assert np.median([one.precision for one in spreads]) < 4 * deviation


# Looking again and again, and stopping when it looks good, is what measure does.
@pytest.mark.parametrize("seconds", [0.01, 0.03, 0.1])
@pytest.mark.parametrize("weight", [0, 0.9, 0.99])
def test_the_interval_holds_when_sampling_stops_early(clock, seconds, weight):
    rng, held, stopped = np.random.default_rng(0), [], 0
    for _ in range(60):
        rows = autocorrelated(rng, (1, int(2 / seconds)), weight)
        series = seconds * np.exp(0.1 * rows[0])
        # Without measure around it, which collects garbage each time.
        values, work = [], clock.work(*series)

        def take(values=values, work=work):
            before = clock()
            work()
            values.append(clock() - before)

        def is_enough(values=values):
            return Spread.of(values).precision <= 0.1

        enough, _ = in_blocks(take, work, is_enough, lambda: False, budget=1.0)
        stopped += enough
        spread = Spread.of(values)
        held.append(spread.least <= seconds <= spread.most)
    assert np.mean(held) >= 0.9
    assert stopped


def test_an_interval_of_few_samples_is_wide_and_says_what_gives_more(clock):
    noise = 1 + 0.01 * np.random.default_rng(0).standard_normal(5000)
    slow = measure(clock.work(*0.2 * noise), budget=1.0, precision=1e-9)
    assert slow.steady.samples == 9
    assert "9 samples hardly tell whether they depend on each other" in slow.note
    assert "budget=4 allows 20" in slow.note
    longer = measure(clock.work(*0.2 * noise), budget=4.1, precision=1e-9)
    assert longer.steady.samples >= 20
    assert "depend on each other" not in longer.note
    few = measure(clock.work(*0.2 * noise), precision=1e-9, max_calls=7)
    assert "samples are too few for an interval" in few.note
    assert few.steady.precision == float("inf")
    c = measure.compare({"a": clock.work(0.2), "b": clock.work(0.1)}, budget=1.0)
    assert "9 rounds hardly tell" in c.note
    assert "budget=3 allows 20" in c.note


def test_few_samples_claim_no_precision():
    assert Spread.of([1.0, 1.0]).precision == float("inf")
    with pytest.raises(ValueError, match="at least one sample"):
        Spread.of([])


def test_a_steady_function_is_timed_exactly(clock):
    m = measure(clock.work(3e-3))
    assert m.steady.median == pytest.approx(3e-3)
    assert m.steady.low == pytest.approx(m.steady.high)
    assert m.reached


def test_short_calls_are_timed_together(clock):
    m = measure(clock.work(1e-6))
    assert m.steady.calls >= 50
    assert m.steady.median == pytest.approx(1e-6)
    assert measure(clock.work(1e-3)).steady.calls == 1


def test_more_runs_for_a_noisy_function_and_for_more_precision(clock):
    noise = [1e-3 * (1 + 0.3 * np.sin(i * i)) for i in range(997)]
    calm = measure(clock.work(1e-3), precision=0.02, budget=0.05)
    noisy = measure(clock.work(*noise), precision=0.02, budget=10)
    noisier = measure(clock.work(*noise), precision=0.1, budget=0.05)
    assert noisy.reached
    assert noisy.steady.precision <= 0.02
    assert noisy.steady.samples > calm.steady.samples
    assert noisy.steady.samples > noisier.steady.samples


def test_the_budget_ends_it_and_the_result_says_so(clock):
    noise = [1e-3 * (1 + i % 7) for i in range(97)]
    m = measure(clock.work(*noise), precision=1e-6, budget=0.2)
    assert not m.reached
    assert clock.now < 0.5
    assert "not reached" in repr(m)


def test_a_slow_function_still_runs_a_few_times(clock):
    m = measure(clock.work(10.0), budget=1.0)
    assert m.steady.samples == 9
    assert m.steady.median == 10.0


def test_the_first_calls_are_not_in_the_steady_state(clock):
    seconds = [5.0, 1.0, 1.0, 1.0, *[1e-3] * 1000]
    m = measure(clock.work(*seconds), budget=0.1)
    assert m.first.median == 5.0
    assert m.steady.samples >= 9
    assert m.steady.median == pytest.approx(1e-3)


def test_compare_gives_ratios(clock):
    both = {"slow": clock.work(4e-3), "fast": clock.work(1e-3)}
    c = measure.compare(both)
    assert c.baseline == "slow"
    assert c.ratios["fast"].median == pytest.approx(0.25)
    assert c.ratios["slow"].median == 1.0
    assert measure.compare(both, baseline="fast").ratios["slow"].median == (
        pytest.approx(4)
    )
    assert c["fast"].median == pytest.approx(1e-3)


def test_compare_takes_turns_so_drift_does_not_decide(clock):
    # A machine that gets slower all the time: whoever came last would lose.
    def drifting(seconds):
        def fn():
            clock.now += seconds * (1 + clock.now)
            return 0

        return fn

    c = measure.compare({"a": drifting(1e-3), "b": drifting(2e-3)}, budget=2)
    assert c["a"].high > 1.3 * c["a"].low, "the drift is there"
    assert c.ratios["b"].median == pytest.approx(2, rel=0.02)
    assert c.ratios["b"].high < 1.02 * c.ratios["b"].low


def test_measure_and_timeit_agree_on_a_clock(clock):
    noise = [1e-3 * (1 + 0.3 * np.sin(i * i)) for i in range(997)]
    m = measure(clock.work(*noise), budget=5)
    theirs = timeit.repeat(clock.work(*noise), number=1, repeat=997, timer=clock)
    assert m.steady.low <= np.median(theirs) <= m.steady.high
    assert m.steady.median == pytest.approx(np.median(theirs), rel=0.02)


@pytest.mark.parametrize("kind", ["numpy", "jax"])
def test_measure_and_timeit_agree(kind):
    if kind == "numpy":
        fn, x = np.sort, np.random.default_rng(0).random(20_000)
        call = functools.partial(fn, x)
    else:
        fn, x = jax.jit(lambda x: jnp.sort(x)), jnp.asarray(np.arange(20_000.0)[::-1])
        call = lambda: fn(x).block_until_ready()  # noqa: E731
        call()

    def agrees():
        ours = measure(fn, x, budget=0.2).steady
        theirs = np.median(timeit.repeat(call, number=1, repeat=101))
        low, high = ours.low / 1.2, ours.high * 1.2
        near = low <= theirs <= high
        far = low <= theirs * 10 <= high or low <= theirs / 10 <= high
        return near and not far

    # What else the machine does falls on one of the two alone, now and then; the clock
    # above shows the exact agreement. A wrong answer is wrong five times in five.
    assert any(agrees() for _ in range(5))


def test_a_busy_machine_widens_the_interval(clock, monkeypatch):
    quiet = measure(clock.work(1e-3))
    assert quiet.reached
    monkeypatch.setattr(Waiting, "share_until", lambda self, later: 0.5)
    busy = measure(clock.work(1e-3))
    assert busy.steady.median == pytest.approx(1e-3)
    assert busy.steady.least == pytest.approx(0.25e-3)
    assert busy.steady.most == pytest.approx(4e-3)
    assert not busy.reached
    assert "50% of its time the process waited for a CPU" in busy.note


@pytest.mark.skipif(not Waiting.now().ran, reason="the system does not tell")
def test_waiting_is_seen():
    before, start = Waiting.now(), time.process_time()
    while time.process_time() - start < 0.05:
        pass
    after = Waiting.now()
    assert after.ran - before.ran >= 0.04
    assert 0 <= before.share_until(after) < 1
    assert Waiting(1, 1).share_until(Waiting(2, 4)) == 0.75


# ------------------------------------------------------------------------------- stages


def test_a_jitted_function_has_all_stages():
    m = measure(jax.jit(lambda x: jnp.sin(x) @ x), jnp.ones((50, 50)), **QUICK)
    assert list(m.stages) == ["trace", "lower", "compile", "first", "steady"]
    assert all(spread.median > 0 for spread in m.stages.values())
    assert m.compile.samples >= 2
    assert m.cold > m.compile.median


def test_stages_are_not_hidden_by_the_cache():
    ran = []

    @jax.jit
    def step(x):
        ran.append(1)
        return x + 1

    step(1.0)
    m = measure(step, 1.0, **QUICK)
    assert m.trace.samples >= 2
    assert len(ran) == 1 + m.trace.samples
    before = step._cache_size() if hasattr(step, "_cache_size") else None
    step(1.0)
    assert len(ran) == 1 + m.trace.samples, "measuring leaves the function's cache"
    assert before in (None, 1)


def test_options_of_jit_are_kept():
    @functools.partial(
        jax.jit, static_argnums=1, static_argnames="kind", donate_argnames="x"
    )
    def step(x, n, *, kind="a"):
        assert isinstance(n, int)
        assert isinstance(kind, str)
        return x * n

    x = jnp.ones(10)
    m = measure(step, x, 3, kind="b", **QUICK)
    assert m.name == "step"
    assert not x.is_deleted()


def test_a_plain_function_has_no_stages():
    m = measure(lambda x: jnp.sin(x) + 1, jnp.ones(10), **QUICK)
    assert list(m.stages) == ["first", "steady"]
    assert (m.trace, m.lower, m.compile) == (None, None, None)
    assert m.first.samples == 1
    assert "one call" in repr(m)


def test_numpy_functions():
    m = measure(np.sort, np.arange(100), **QUICK)
    assert m.name == "sort"
    assert list(m.stages) == ["first", "steady"]


def test_it_waits_for_the_result(monkeypatch):
    waited = []
    real = jax.block_until_ready
    monkeypatch.setattr(
        jax, "block_until_ready", lambda tree: (waited.append(1), real(tree))[1]
    )
    step = jax.jit(lambda x: {"a": x @ x})
    m = measure(step, jnp.ones((20, 20)), **QUICK)
    assert len(waited) > m.steady.samples


def test_returning_nothing(monkeypatch):
    seen, barriers = [], []
    barrier = jax.effects_barrier
    monkeypatch.setattr(jax, "effects_barrier", lambda: (barriers.append(1), barrier()))

    @jax.jit
    def step(x):
        jax.debug.callback(lambda value: seen.append(float(value)), x)

    m = measure(step, 1.0, **QUICK)
    assert "returns nothing" in m.note
    assert "returns nothing" in repr(m)
    # Each sample ends with its effects done, so none is outstanding.
    assert len(barriers) >= m.steady.samples
    assert len(seen) >= m.steady.samples * m.steady.calls
    assert measure(lambda: None, **QUICK).steady.median > 0


def test_donated_buffers():
    step = jax.jit(lambda state, x: state + x, donate_argnums=0)
    state, x = jnp.zeros(100), jnp.ones(100)
    m = measure(step, state, x, **QUICK)
    assert m.steady.samples >= 9
    assert not state.is_deleted()

    def outer(state):
        return step(state, x)

    assert measure(outer, state, **QUICK).steady.samples >= 9
    c = measure.compare({"donates": outer, "keeps": lambda s: s + x}, state, **QUICK)
    assert c["donates"].samples >= 9
    assert not state.is_deleted()


def test_a_jit_that_cannot_be_remade_is_still_timed(monkeypatch):
    monkeypatch.setattr(internals, "jit_again", lambda fun, jitted: None)
    m = measure(jax.jit(lambda x: x + 1), 1.0, **QUICK)
    assert list(m.stages) == ["first", "steady"]
    assert "not taken apart" in m.note


def test_the_garbage_collector_is_put_back():
    import gc

    states = []
    measure(lambda: states.append(gc.isenabled()), **QUICK)
    assert gc.isenabled()
    assert states[-1] is False
    with pytest.raises(ZeroDivisionError):
        measure(failing_later(), **QUICK)
    assert gc.isenabled()


def failing_later():
    calls = []

    def fn():
        calls.append(1)
        return 1 / (5 - len(calls))

    return fn


# --------------------------------------------------------------------------- bad input


def test_not_callable():
    with pytest.raises(TypeError, match=r"fn is a float.*measure\(f, x\)"):
        measure(1.0)
    with pytest.raises(TypeError, match="candidate 'b' is a float"):
        measure.compare({"a": len, "b": 1.0}, [])


def test_bad_options():
    with pytest.raises(ValueError, match="precision must be a positive number"):
        measure(len, [], precision=0)
    with pytest.raises(ValueError, match="budget must be a positive number"):
        measure(len, [], budget="1s")
    with pytest.raises(TypeError, match="has a parameter named 'budget'"):
        measure(lambda budget: budget, budget=3)
    with pytest.raises(TypeError, match="has a parameter named 'baseline'"):
        measure.compare({"a": len, "b": lambda baseline: 1}, baseline="a")


def test_bad_candidates():
    with pytest.raises(TypeError, match=r"needs candidates by name.*got a list"):
        measure.compare([len, sum])
    with pytest.raises(ValueError, match="two candidates"):
        measure.compare({"a": len})
    with pytest.raises(ValueError, match="no candidate is named 'c'; there are: a, b"):
        measure.compare({"a": len, "b": sum}, [], baseline="c")


def test_arguments_that_do_not_fit_are_the_users_error():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        measure(lambda x, y: x, 1)

    @jax.jit
    def step(x, y):
        return x

    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        measure(step, 1)


def test_a_function_that_fails_is_the_users_error():
    @jax.jit
    def step(x):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        measure(step, 1.0)


# ------------------------------------------------------------------ what it waits for


class Box:
    """An object that JAX knows nothing of."""

    def __init__(self, array):
        self.array = array

    def method(self):
        return self.array


def objects(array):
    """An array of NumPy's that holds objects."""
    return np.array([Box(array), None], dtype=object)


class Slots:
    __slots__ = ("array",)

    def __init__(self, array):
        self.array = array


def slow_step():
    """A jitted function that takes long on the device, and returns at once."""

    @jax.jit
    def step(x):
        return jax.lax.fori_loop(0, 300, lambda _, x: jnp.tanh(x @ x) / 10, x)

    x = jnp.ones((120, 120))
    step(x).block_until_ready()
    return step, x


@pytest.mark.parametrize(
    "wrap",
    [
        *(Box, Slots, lambda a: {"a": Box([a])}, lambda a: [Box(Box((a,)))]),
        *(lambda a: {Box(a)}, lambda a: deque([a]), objects, lambda a: lambda: a),
        *(lambda a: functools.partial(jnp.add, a), lambda a: Box(a).method),
    ],
    ids=[
        *("attribute", "slots", "nested", "deep", "set", "deque", "objects", "closure"),
        *("partial", "method"),
    ],
)
def test_arrays_in_objects_are_waited_for(wrap):
    step, x = slow_step()
    c = measure.compare(
        {"bare": lambda: step(x), "held": lambda: wrap(step(x))}, budget=0.3
    )
    assert c.ratios["held"].median > 0.5  # without waiting, a hundredth


def test_a_step_that_changes_its_own_state_says_so():
    step, x = slow_step()

    class Trainer:
        def __init__(self):
            self.state = x

        def advance(self):
            self.state = step(self.state)

    trainer = Trainer()
    c = measure.compare(
        {"bare": lambda: step(x), "method": trainer.advance}, budget=0.3
    )
    assert c.ratios["method"].median > 0.5
    m = measure(trainer.advance, **QUICK)
    assert "changes its own state (self.state)" in m.note
    assert "changes its own state" in repr(m)
    held = {"x": x}

    def closed():
        held["x"] = step(held["x"])

    assert "changes its own state (held['x'])" in measure(closed, **QUICK).note
    assert "changes" not in measure(step, x, **QUICK).note
    rows, table = [], {}
    grown = {
        "bare": lambda: step(x),
        "list": lambda: rows.append(step(x)),
        "dict": lambda: table.update({len(table): Box(step(x))}),
    }
    c = measure.compare(grown, budget=0.3)
    assert min(c.ratios["list"].median, c.ratios["dict"].median) > 0.5


def test_state_that_is_no_jax_array_is_told_as_well():
    class Counter:
        def __init__(self):
            self.count, self.buffer = 0, np.zeros(3)

        def step(self):
            self.count += 1
            self.buffer += 1

    note = measure(Counter().step, **QUICK).note
    assert "changes its own state (self.count, self.buffer)" in note
    values, rows = np.arange(3.0), []
    assert (
        "(argument 0)" in measure(lambda a: np.add(a, 1, out=a), values, **QUICK).note
    )
    assert "(rows)" in measure(lambda: rows.append(1), **QUICK).note


def test_what_is_kept_once_is_no_state():
    class Lazy:
        def __init__(self):
            self.table, self.out = None, np.zeros(3)

        def look(self):
            if self.table is None:
                self.table = jnp.arange(9)
            np.add(1, 2, out=self.out)  # the same each time
            return self.table

    assert "changes" not in measure(Lazy().look, **QUICK).note


def test_an_error_in_a_later_call_says_which():
    values = iter([1, 2, 3])
    with pytest.raises(StopIteration) as caught:
        measure(next, values, **QUICK)
    (note,) = caught.value.__notes__
    assert re.match(r"raised in calls? 4\b", note)
    assert "with the same arguments" in note
    with pytest.raises(ZeroDivisionError) as caught:
        measure(lambda: 1 / 0, **QUICK)
    assert not hasattr(caught.value, "__notes__")  # in the first: no news


def test_a_body_that_does_not_run_says_so():
    def lazy(x):
        yield jnp.sin(x)

    m = measure(lazy, 1.0, **QUICK)
    assert "returns a generator, whose work was not run" in m.note
    assert not m.reached

    async def later(x):
        return jnp.sin(x)

    assert "returns a coroutine" in measure(later, 1.0, **QUICK).note
    assert "returns a map" in measure(lambda: map(len, []), **QUICK).note
    c = measure.compare({"lazy": lambda: lazy(1.0), "list": lambda: [1]}, **QUICK)
    assert "lazy returns a generator" in c.note
    assert not c.reached


def test_a_future_is_waited_for():
    with ThreadPoolExecutor(1) as pool:
        m = measure(lambda: pool.submit(time.sleep, 0.01), **QUICK)
    assert m.steady.median > 0.009


def test_all_that_was_started_is_waited_for():
    def thread():
        started = threading.Thread(target=time.sleep, args=(0.01,))
        started.start()
        return started

    m = measure(thread, **QUICK)
    assert min(m.steady.median, m.first.median) > 0.009
    with ThreadPoolExecutor(1) as pool:
        m = measure(lambda: {"a": [pool.submit(time.sleep, 0.01)]}, **QUICK)
    assert min(m.steady.median, m.first.median) > 0.009


class Rows:
    """An iterator of a class of its own."""

    def __iter__(self):
        return self

    def __next__(self):
        raise StopIteration


@pytest.mark.parametrize("lazy", [Rows, lambda: enumerate([1]), lambda: reversed([1])])
def test_an_iterator_is_no_result(lazy):
    for fn in (lazy, lambda: {"rows": lazy()}, lambda: (np.ones(3), lazy())):
        m = measure(fn, **QUICK)
        assert "whose work was not run" in m.note
        assert not m.reached


def test_a_function_as_a_result_says_so():
    note = measure(lambda: lambda x: x, **QUICK).note
    assert "returns a function, which was not called" in note


def test_measure_inside_jit_says_where_it_is():
    def inner(x):
        return measure(jnp.sin, x, **QUICK)

    for wrap in (jax.jit, jax.grad, jax.vmap):
        with pytest.raises(RuntimeError, match="JAX is tracing here"):
            wrap(inner)(jnp.ones(3))
    with pytest.raises(RuntimeError, match="JAX is tracing here"):
        jax.jit(lambda x: measure.compare({"a": len, "b": len}, [], **QUICK))(1.0)
    assert measure(jnp.sin, 1.0, **QUICK).steady.median > 0


# ------------------------------------------------------------------------ where it ends


def test_ctrl_c_keeps_what_was_measured(clock):
    calls = []

    def fn():
        calls.append(1)
        clock.now += 1e-3
        if len(calls) == 60:
            raise KeyboardInterrupt

    m = measure(fn, precision=1e-9, budget=10)
    assert 9 <= m.steady.samples < 60
    assert m.steady.median == pytest.approx(1e-3)
    assert not m.reached
    assert "interrupted after" in m.note
    calls.clear()
    c = measure.compare({"a": fn, "b": lambda: clock.sleep(1e-3)}, precision=1e-9)
    assert "interrupted after" in c.note
    assert c["a"].samples == c["b"].samples

    def at_once():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(at_once)


@pytest.mark.parametrize("limit", [1, 2, 30, 500])
def test_the_number_of_calls_is_capped(limit):
    calls = []
    m = measure(lambda: calls.append(1), budget=0.1, max_calls=limit)
    # One call is the first, and one is measured, whatever the limit.
    assert len(calls) <= max(limit, 2)
    if limit <= 2:
        assert "number of calls" in m.note
    with pytest.raises(ValueError, match="max_calls must be 1 or more"):
        measure(len, [], max_calls=0)


@pytest.mark.parametrize("limit", [2, 3, 30])
def test_the_calls_of_a_jitted_function_are_capped(limit):
    runs = []

    @jax.jit
    def step(x):
        jax.debug.callback(lambda: runs.append(1))
        return x

    measure(step, 1.0, budget=0.1, max_calls=limit)
    jax.effects_barrier()
    assert 2 <= len(runs) <= limit


def test_samples_are_spread_over_the_budget(clock):
    moments = []

    def fn():
        moments.append(clock.now)
        clock.now += 1e-4

    measure(fn, precision=0.5, budget=1.0)
    assert moments[-1] - moments[0] > 0.4
    gaps = np.diff(moments)
    assert (gaps > 0.02).sum() >= 9


# ------------------------------------------------------------------- cached executables

CACHED = """
import sys, jax, jax.numpy as jnp
from justafter import measure
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
m = measure(jax.jit(lambda x: jnp.sin(x) @ x), jnp.ones((9, 9)), budget=0.05)
print(*m.stages, m.compile and m.compile.samples, "load from cache" in repr(m))
assert m.cold >= (m.compile or m.load).median
"""


def test_loads_from_a_cache_are_told_from_compiles(tmp_path):
    import subprocess

    seen = []
    for _ in range(2):
        command = [sys.executable, "-c", CACHED, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        seen.append(done.stdout.strip())
    assert seen == [
        "trace lower compile load first steady 1 True",
        "trace lower load first steady None True",
    ]


# ------------------------------------------------------------------- saved and compared


def timed(name, *seconds):
    """A measurement of samples as given."""
    import dataclasses

    m = measure(len, [], **QUICK)
    return dataclasses.replace(m, name=name, steady=Spread.of(seconds))


def around(middle, width=0.01):
    rng = np.random.default_rng(0)
    return middle * (1 + width * rng.standard_normal(100))


@pytest.mark.parametrize(
    ("now", "verdict"),
    [
        (around(1.0), "unchanged"),
        (around(1.2), "slower"),
        (around(0.8), "faster"),
        (around(1.05), "cannot tell"),
        (around(1.2, width=1.0), "cannot tell"),
        (np.linspace(1.0, 1.4, 100), "cannot tell"),
        ([1.2, 1.2], "cannot tell"),
    ],
)
def test_a_verdict_respects_the_spread(now, verdict):
    then = timed("f", *around(1.0))
    change = timed("f", *now).against(then)
    assert change.verdict == verdict
    assert change.least <= change.ratio <= change.most or verdict == "cannot tell"
    assert verdict in repr(change)
    assert type(change).from_json(change.to_json()) == change


def test_what_was_not_the_same_is_said():
    import dataclasses

    then, now = timed("f", *around(1.0)), timed("f", *around(1.0))
    other = dataclasses.replace(then.provenance, jax="0.1", date="2001-01-01")
    change = now.against(dataclasses.replace(then, provenance=other))
    assert change.differences == (f"jax 0.1 then, {jax.__version__} now",)
    assert "not the same: jax 0.1 then" in repr(change)
    with pytest.raises(TypeError, match="not a str"):
        now.against("then.json")
    with pytest.raises(ValueError, match="tolerance must be"):
        now.against(then, tolerance=-1)


def test_files_of_measurements(tmp_path):
    path = tmp_path / "then.json"
    both = timed("f", *around(1.0)), timed("g", *around(2.0))
    measure.save(path, *both)
    assert measure.load(path) == {"f": both[0], "g": both[1]}
    with pytest.raises(ValueError, match="two measurements are named 'f'"):
        measure.save(path, both[0], both[0])
    assert measure.load(path).keys() == {"f", "g"}, "the file is as it was"
    path.write_text("[]")
    with pytest.raises(ValueError, match=r"then\.json: this is no file of measurem"):
        measure.load(path)
    path.write_text('{"kind": "Measurements", "format": 99}')
    with pytest.raises(ValueError, match="format 99"):
        measure.load(path)
    with pytest.raises(FileNotFoundError):
        measure.load(tmp_path / "none.json")


def test_the_command_that_compares_files(tmp_path, capsys):
    from justafter.__main__ import main

    then, now = str(tmp_path / "then.json"), str(tmp_path / "now.json")
    measure.save(then, timed("f", *around(1.0)), timed("g", *around(1.0)))
    measure.save(now, timed("f", *around(1.0)), timed("h", *around(1.0)))
    assert main([then, now]) == 0
    shown = capsys.readouterr().out
    assert "unchanged" in shown
    assert "only then: g" in shown
    assert "only now: h" in shown
    measure.save(now, timed("f", *around(1.5)))
    assert main([then, now]) == 1
    assert "slower" in capsys.readouterr().out
    assert main([then, now, "--tolerance", "0.9"]) == 0
    measure.save(now, timed("x", *around(1.5)))
    assert main([then, now]) == 2
    assert main([then, str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().err


@pytest.mark.usefixtures("clock")
def test_the_fixture_that_compares(pytester, monkeypatch):
    pytester.makeconftest("pytest_plugins = ['justafter.pytest_plugin']")
    pytester.makepyfile(
        """
        import os, time
        import pytest

        def test_sleep(measured):
            seconds = float(os.environ["SECONDS"])
            m = measured(time.sleep, seconds, budget=0.3, tolerance=0.3)
            assert m.steady.median == pytest.approx(seconds)
        """
    )
    options = ["-p", "no:cacheprovider"]

    def run(seconds, *more):
        monkeypatch.setenv("SECONDS", str(seconds))
        return pytester.runpytest_inprocess(*options, *more)

    run(0.01).assert_outcomes(passed=1)
    run(0.01, "--measured-save", "then.json").assert_outcomes(passed=1)
    run(0.01, "--measured", "then.json").assert_outcomes(passed=1)
    slower = run(0.1, "--measured", "then.json")
    slower.assert_outcomes(failed=1)
    slower.stdout.fnmatch_lines(["*slower than in then.json*", "*slower*"])
    missing = run(0.01, "--measured", "none.json")
    missing.assert_outcomes(errors=1)
    missing.stdout.fnmatch_lines(["*write it with --measured-save*"])


# ------------------------------------------------------------------------- plain data


@pytest.fixture(scope="module")
def results():
    step, x = jax.jit(lambda x: x * 2), jnp.ones(10)
    both = {"eager": lambda x: x * 2, "<jit> & co": step}
    return measure(step, x, **QUICK), measure.compare(both, x, **QUICK)


def test_json_and_back(results):
    for result in results:
        text = result.to_json()
        assert type(result).from_json(text) == result
        assert json.loads(text)["provenance"]["jax"] == jax.__version__
    plain = measure(len, [], **QUICK)
    assert Measurement.from_json(plain.to_json()) == plain


def test_json_of_something_else(results):
    _, c = results
    with pytest.raises(ValueError, match="not the JSON of a Measurement"):
        Measurement.from_json(c.to_json())
    with pytest.raises(ValueError, match="not the JSON of a Comparison"):
        Comparison.from_json("[]")


def test_provenance(results):
    facts = results[0].provenance
    device = jax.devices()[0]
    assert facts.platform == device.platform
    assert facts.device_kind == device.device_kind
    assert facts.device_count == jax.device_count()
    assert facts.python == ".".join(map(str, sys.version_info[:3]))
    assert facts.date.startswith("20")
    assert facts.date.endswith("+00:00")


def test_text_and_html(results):
    m, c = results
    for result in results:
        shown = result._repr_html_()
        assert 'class="ja-measure"' in shown
        assert "html[data-theme=dark] .ja-measure" in shown
        assert result.provenance.jax in repr(result)
    assert "&lt;jit&gt; &amp; co" in c._repr_html_()
    assert "<jit>" not in c._repr_html_()
    assert "time / eager" in repr(c)
    head = [line.split()[0] for line in repr(m).splitlines()[1:7]]
    assert head == ["stage", "trace", "lower", "compile", "first", "steady"]


def test_every_number_in_html_is_marked_measured(results):
    import re

    for result in results:
        shown = re.sub(r"<style>.*?</style>", "", result._repr_html_(), flags=re.S)
        shown = re.sub(r'<span class="measured">.*?</span>', "", shown)
        assert not re.search(r"\d", re.sub(r"<[^>]*>", "", shown))


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(2.0, "2.00 s"), (0.0123, "12.3 ms"), (4.56e-5, "45.6 µs"), (7.8e-9, "7.80 ns")],
)
def test_units(seconds, shown):
    from justafter._measure._show import _time

    assert _time(Spread.of([seconds]))[0] == shown


def test_the_plot_has_units_and_names(results):
    pytest.importorskip("matplotlib").use("agg")
    import matplotlib.pyplot as plt

    ax = results[1].plot()
    assert ax.get_xlabel().startswith("time per call (")
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["eager", "<jit> & co"]
    _, given = plt.subplots()
    assert results[1].plot(given) is given
    plt.close("all")


def test_matplotlib_is_not_imported_before_a_plot():
    import subprocess

    program = "import sys, justafter; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
