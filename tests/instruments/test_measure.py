"""measure: the statistics on a clock that the test turns, then real functions."""

import functools
import time
from collections import deque

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from justafter import Spread, measure
from justafter._internals import _stages

from .running import printed

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
        calls = []

        def fn():
            calls.append(1)
            self.now += seconds[(len(calls) - 1) % len(seconds)]
            return 0

        return fn


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock)
    monkeypatch.setattr(time, "sleep", clock.sleep)
    return clock


def test_a_spread_says_median_minimum_and_interval():
    spread = Spread.of(np.random.default_rng(0).permutation(21) + 1)
    assert (spread.minimum, spread.median) == (1, 11)
    assert (spread.least, spread.most) == (6, 16)
    assert spread.samples == 21
    assert Spread.of([3.0, 1.0, 2.0, 5.0, 4.0, 6.0]).least == 1.0


def autocorrelated(rng, size, weight):
    """Numbers of which each is `weight` of the last, and the rest new."""
    wait = int(10 / (1 - weight))
    new = rng.standard_normal((size[0], size[1] + wait))
    for i in range(1, new.shape[1]):
        new[:, i] = weight * new[:, i - 1] + np.sqrt(1 - weight**2) * new[:, i]
    return new[:, wait:]


# Order statistics hold for any distribution of independent groups; groups that are
# made of many samples also take up what the samples of one moment have in common.
@pytest.mark.parametrize(
    ("count", "weight", "at_least"),
    [(n, 0, 0.93) for n in (6, 9, 20, 39, 40, 200)] + [(2000, 0.9, 0.9)],
)
def test_the_interval_holds_what_it_says(count, weight, at_least):
    values = np.exp(autocorrelated(np.random.default_rng(0), (1000, count), weight))
    spreads = [Spread.of(row) for row in values]
    held = np.mean([one.least <= 1.0 <= one.most for one in spreads])
    assert held >= at_least
    narrow = np.median([one.precision for one in spreads])
    assert narrow < 4 * 1.25 / np.sqrt(count * (1 - weight) / (1 + weight))


@pytest.mark.parametrize("truth", [1.0, 1.03])
def test_a_ratio_holds_on_a_busy_machine(clock, truth):
    rng, held, precise = np.random.default_rng(0), 0, []

    def loaded(seconds):
        def fn():  # others get the CPU for 4 ms, in half of the moments often
            often = 0.2 if int(clock.now * 10) % 2 else 0.02
            clock.now += seconds * rng.normal(1, 0.02) + 4e-3 * (rng.random() < often)
            return 0

        return fn

    for _ in range(8):
        both = {"a": loaded(1e-3), "b": loaded(truth * 1e-3)}
        ratio = measure.compare(both, budget=0.2, precision=1e-9).ratios["b"]
        held += ratio.least <= truth <= ratio.most
        precise.append(ratio.precision)
    assert held >= 6
    assert np.median(precise) < 0.03


def test_few_samples_claim_no_precision():
    assert Spread.of([1.0, 1.0]).precision == float("inf")
    with pytest.raises(ValueError, match="at least one sample"):
        Spread.of([])


def test_a_steady_function_is_timed_exactly_and_short_calls_together(clock):
    m = measure(clock.work(3e-3))
    assert m.steady.median == pytest.approx(3e-3)
    assert m.steady.least == pytest.approx(m.steady.most)
    assert m.reached
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
    assert measure(clock.work(1.0), budget=0.1).steady.samples == 6


def test_the_first_calls_are_not_in_the_steady_state(clock):
    seconds = [5.0, 1.0, 1.0, 1.0, *[1e-3] * 1000]
    m = measure(clock.work(*seconds), budget=0.1)
    assert m.first.median == 5.0
    assert m.steady.samples >= 6
    assert m.steady.median == pytest.approx(1e-3)


def test_compare_takes_turns_so_drift_does_not_decide(clock):
    # A machine that gets slower all the time: whoever came last would lose.
    def drifting(seconds):
        def fn():
            clock.now += seconds * (1 + clock.now)
            return 0

        return fn

    c = measure.compare({"a": drifting(1e-3), "b": drifting(2e-3)}, budget=2)
    assert c["a"].median > 1.3 * c["a"].minimum, "the drift is there"
    assert c.ratios["b"].median == pytest.approx(2, rel=0.02)
    assert c.ratios["b"].most < 1.02 * c.ratios["b"].least


def test_a_function_beside_itself_gets_as_many_calls(clock):
    noise = np.random.default_rng(0).uniform(1.4e-6, 1.7e-6, 997)
    slow_at_first = [3.5e-6] * 40 + [1.6e-6] * 100_000
    for one, other in ((noise, noise), ([1.6e-6], slow_at_first)):
        both = {"a": clock.work(*one), "b": clock.work(*other)}
        c = measure.compare(both, budget=0.02)
        assert c["a"].calls == c["b"].calls


def test_options_of_jit_are_kept():
    def step(x, n, *, kind="a"):
        assert isinstance(n, int)
        assert isinstance(kind, str)
        return x * n

    x, static = jnp.ones(10), {"static_argnums": 1, "static_argnames": "kind"}
    m = measure(jax.jit(step, donate_argnames="x", **static), x, 3, kind="b", **QUICK)
    assert m.name == "step"
    assert not x.is_deleted()


def test_a_plain_function_has_no_stages():
    m = measure(lambda x: jnp.sin(x) + 1, jnp.ones(10), **QUICK)
    assert list(m.stages) == ["first", "steady"]
    says = "'compile' here; of the stages there are: first, steady"
    with pytest.raises(AttributeError, match=says):
        m.compile  # noqa: B018
    assert m.first.samples == 1
    assert "one call" in repr(m)


def test_a_jit_that_cannot_be_remade_is_still_timed(monkeypatch):
    monkeypatch.setattr(_stages, "jit_again", lambda fun, jitted: None)
    m = measure(jax.jit(lambda x: x + 1), 1.0, **QUICK)
    assert list(m.stages) == ["first", "steady"]
    assert "not taken apart" in m.note


@pytest.mark.parametrize(("call", "error", "says"), [
    (lambda: measure(len, [], precision=0), ValueError, "precision must be a positive"),
    (lambda: measure(len, [], budget="1s"), ValueError, "budget must be a positive"),
    (lambda: measure.compare({"a": len, "b": 1.0}, []), TypeError,
     "candidate 'b' is not callable"),
    (lambda: measure.compare([len, sum]), TypeError, "by name.*got a list"),
    (lambda: measure.compare({"a": len}), ValueError, "two candidates"),
])  # fmt: skip
def test_bad_input(call, error, says):
    with pytest.raises(error, match=says):
        call()


class Box:
    def __init__(self, array):
        self.array = array

    def method(self):
        return self.array


class Slots:
    __slots__ = ("array",)

    def __init__(self, array):
        self.array = array


def slow_step():
    """A jitted function that takes long on the device, and returns at once."""

    @jax.jit
    def step(x):
        return jax.lax.fori_loop(0, 100, lambda _, x: jnp.tanh(x @ x) / 10, x)

    x = jnp.ones((120, 120))
    step(x).block_until_ready()
    return step, x


@pytest.mark.parametrize(
    "wrap",
    [
        *(Box, Slots, lambda a: {"a": Box([a])}, lambda a: [Box(Box((a,)))]),
        *(lambda a: {Box(a)}, lambda a: deque([a]), lambda a: lambda: a),
        *(lambda a: functools.partial(jnp.add, a), lambda a: Box(a).method),
    ],
)
def test_arrays_in_objects_are_waited_for(wrap):
    step, x = slow_step()
    both = {"bare": lambda: step(x), "held": lambda: wrap(step(x))}
    c = measure.compare(both, budget=0.05)
    assert c.ratios["held"].median > 0.1  # without waiting, a hundredth


def test_a_body_that_does_not_run_says_so():
    async def later(x):
        return jnp.sin(x)

    def lazy(x):
        yield jnp.sin(x)

    assert "returns a coroutine" in measure(later, 1.0, **QUICK).note
    assert "returns a map" in measure(lambda: map(len, []), **QUICK).note
    c = measure.compare({"lazy": lambda: lazy(1.0), "list": lambda: [1]}, **QUICK)
    assert "lazy returns a generator" in c.note
    assert not c.reached
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


def test_samples_are_spread_over_the_budget(clock):
    moments = []

    def fn():
        moments.append(clock.now)
        clock.now += 1e-4

    measure(fn, precision=0.5, budget=1.0)
    assert moments[-1] - moments[0] > 0.4
    gaps = np.diff(moments)
    assert (gaps > 0.02).sum() >= 9


CACHED = """
import sys, jax, jax.numpy as jnp
from justafter import lens, measure
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
hits = []
jax.monitoring.register_event_listener(lambda name, **_: hits.append(name))
x, lenses = jnp.ones((9, 9)).copy(), []

@jax.jit
def step(x):
    return jnp.sin(x) @ x

def look():
    view = lens(step, x)
    lenses.append([(eqn.primitive, eqn.fate, eqn.kernels) for eqn in view.equations])

for run in (lambda: step(x), lambda: measure(step, x, budget=0.05), look):
    hits.clear()
    jax.block_until_ready(run())
    print(sum(name.endswith("cache_hits") for name in hits), end=" ")
print(*lenses)
"""


def test_nothing_that_is_measured_or_under_a_lens_comes_from_a_cache(tmp_path):
    first, second = (printed(CACHED, tmp_path).split(maxsplit=3) for _ in range(2))
    assert first[0] == "0"
    assert second[0] == "1", "without an instrument it is loaded"
    assert first[1:] == second[1:] == ["0", "0", first[3]]
    assert first[3].count("'kernel'") == 2
    # A lens leaves nothing there: its program has numbers.
    assert len([*tmp_path.glob("*step*-cache")]) == 1


@pytest.fixture(scope="module")
def results():
    step, x = jax.jit(lambda x: x * 2), jnp.ones(10)
    both = {"eager": lambda x: x * 2, "<jit> & co": step}
    return measure(step, x, **QUICK), measure.compare(both, x, **QUICK)


def test_text_and_html(results):
    m, c = results
    for result in results:
        shown = result._repr_html_()
        assert 'class="ja-table"' in shown
        assert "html[data-theme=dark] .ja-table" in shown
        assert "prefers-color-scheme:dark" in shown
        assert f"JAX {jax.__version__}" in result.provenance
        assert result.provenance in repr(result)
    assert "&lt;jit&gt; &amp; co" in c._repr_html_()
    assert "<jit>" not in c._repr_html_()
    assert "time / eager" in repr(c)
    head = [line.split()[0] for line in repr(m).splitlines()[1:7]]
    assert head == ["stage", "trace", "lower", "compile", "first", "steady"]
    # The interval of two to five samples does not hold in 95% of cases.
    lines = repr(m).splitlines()
    few = [m.stages[line.split()[0]].samples < 6 for line in lines[2:7]]
    assert ["all: " in line for line in lines[2:7]] == few == [True] * 4 + [False]
