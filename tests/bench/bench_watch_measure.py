"""What the instruments cost, as ratios within one run.

    python -m tests.bench.bench_watch_measure [NAME ...]

Each line compares candidates that ran in turns in this process.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from justafter import measure, watch
from tests.instruments.running import busy


def hits() -> None:
    """A cache hit, plain and watched."""
    plain, watched = (jax.jit(lambda x: x + 1) for _ in range(2))
    x = jnp.ones(8)
    with watch(only=watched):
        result = measure.compare({"plain": plain, "watched": watched}, x, budget=2)
    print("a hit, watched / plain:", _ratio(result.ratios["watched"]))


def misses() -> None:
    """A trace, plain and watched; and the thousandth retrace against the tenth."""

    def one_trace() -> float:
        step = jax.jit(lambda x: jnp.tanh(x) @ x)
        start = time.perf_counter()
        step.trace(jax.ShapeDtypeStruct((8, 8), "float32"))
        return time.perf_counter() - start

    one_trace()
    plain, watched = [], []
    for _ in range(100):
        plain.append(one_trace())
        with watch():
            watched.append(one_trace())
    print(f"a trace, watched / plain: {np.median(watched) / np.median(plain):.2f}")

    step, seconds = jax.jit(lambda x: x + 1), []
    with watch(only=step):
        for n in range(1, 1001):
            start = time.perf_counter()
            step.trace(jax.ShapeDtypeStruct((n,), "float32"))
            seconds.append(time.perf_counter() - start)
    growth = np.median(seconds[-100:]) / np.median(seconds[10:110])
    print(f"a retrace, the 950th / the 60th: {growth:.2f}")


def timer() -> None:
    """What measure adds to a call that does next to nothing, against timeit."""

    def nothing() -> int:
        return 0

    ours = measure(nothing, budget=0.5).steady.median
    theirs = np.median(timeit.repeat(nothing, number=10_000, repeat=15)) / 10_000
    print(f"an empty call, measure / timeit: {ours / theirs:.2f}")


# Both candidates make the same call, so many times each: their ratio is known.
RATIOS = ((10, 10), (33, 34), (10, 15), (10, 20))
BENCHMARKS = """
import jax, jax.numpy as jnp, pytest
step, x = jax.jit(lambda x: jnp.tanh(x @ x)), jnp.ones((24, 24))

@pytest.mark.parametrize("times", {times})
def test(benchmark, times):
    benchmark(lambda: [step(x).block_until_ready() for _ in range(times)])
"""


def ratios(repetitions: int = 30, load: int = 8) -> None:
    """What each tool says of a known ratio, while other processes spin.

    `measure` gives a verdict: its interval leaves out 1 on the right side, on the wrong
    one, or cannot tell; of two equal candidates it is right to leave 1 in. The others
    give a ratio of two minima, and of two medians, without an interval.
    """
    step, x = jax.jit(lambda x: jnp.tanh(x @ x)), jnp.ones((24, 24))

    def repeated(times: int) -> Callable[[], None]:
        def calls() -> None:
            for _ in range(times):
                step(x).block_until_ready()

        return calls

    print(
        f"{repetitions} times each, {load} other processes on {os.cpu_count()} cores\n"
        "ratio  right  wrong  cannot tell  truth inside  half width  measure's median"
        "     its minima           timeit's minima      pytest-benchmark's medians"
    )
    for base, times in RATIOS:
        truth, found, theirs = times / base, [], []
        with busy(load):
            for _ in range(repetitions):
                both = {"a": repeated(base), "b": repeated(times)}
                found.append(measure.compare(both, budget=0.25))
                least = [min(timeit.repeat(f, number=10)) for f in both.values()]
                theirs.append(least[1] / least[0])
            benchmark = _of_benchmark(base, times, repetitions)
        spreads = [one.ratios["b"] for one in found]
        out = [one.least > 1 or one.most < 1 for one in spreads]
        right = [one.least > 1 for one in spreads] if times > base else []
        right = right or [not one for one in out]
        wrong = sum(a and not b for a, b in zip(out, right, strict=True))
        inside = sum(one.least <= truth <= one.most for one in spreads)
        told = sum(right), wrong, repetitions - sum(right) - wrong, inside
        minima = [one["b"].minimum / one["a"].minimum for one in found]
        columns = [_range([one.median for one in spreads]), _range(minima)]
        columns += [_range(theirs), benchmark]
        width = np.median([one.precision for one in spreads])
        counts = "{:6} {:6} {:12} {:13}".format(*told)
        print(f"{truth:5.2f} {counts} {width:11.1%}  {'  '.join(columns)}", flush=True)


def _of_benchmark(base: int, times: int, repetitions: int) -> str:
    """The ratio of two medians by pytest-benchmark, run after run in one process."""
    if find_spec("pytest_benchmark") is None:
        return "not installed"
    with tempfile.TemporaryDirectory() as folder:
        test, report = Path(folder, "test_ratio.py"), Path(folder, "report.json")
        test.write_text(BENCHMARKS.format(times=[base, times] * repetitions))
        options = ["--benchmark-max-time=0.25", "--benchmark-min-rounds=3"]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += [*options, f"--benchmark-json={report}", str(test)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder)
        benchmarks = json.loads(report.read_text())["benchmarks"]
    seconds = [one["stats"]["median"] for one in benchmarks]
    pairs = zip(seconds[::2], seconds[1::2], strict=True)
    return _range([second / first for first, second in pairs])


def _range(values: list[float]) -> str:
    low, middle, high = np.quantile(values, [0, 0.5, 1])
    return f"{middle:5.2f} ({low:.2f} to {high:5.2f})"


def _ratio(spread) -> str:
    return f"{spread.median:.3f} ({spread.least:.3f} to {spread.most:.3f})"


if __name__ == "__main__":
    every = {part.__name__: part for part in (hits, misses, timer, ratios)}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[*every], metavar="NAME")
    for name in parser.parse_args().names:
        every[name]()
