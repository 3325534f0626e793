"""What the instruments cost, as ratios within one run.

    python -m tests.bench.bench_watch_measure [NAME ...]

Each line compares candidates that ran in turns in this process.
"""

import subprocess
import sys
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from justafter import measure, watch


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
    import timeit

    def nothing() -> int:
        return 0

    ours = measure(nothing, budget=0.5).steady.median
    theirs = np.median(timeit.repeat(nothing, number=10_000, repeat=15)) / 10_000
    print(f"an empty call, measure / timeit: {ours / theirs:.2f}")


def coverage(repetitions: int = 30) -> None:
    """How often the stated interval holds the median of all repetitions."""
    step, x = jax.jit(lambda x: jnp.tanh(x @ x) / 10), jnp.ones((200, 200))
    found = [measure(step, x, budget=0.5).steady for _ in range(repetitions)]
    truth = np.median([one.median for one in found])
    held = sum(one.least <= truth <= one.most for one in found)
    width = np.median([one.precision for one in found])
    medians = np.array([one.median for one in found]) / truth
    print(
        f"the 95% interval held in {held} of {repetitions}; its half width "
        f"{width:.1%} (median), the medians from {medians.min():.2f} to "
        f"{medians.max():.2f} of their middle"
    )


def ratios(repetitions: int = 30, load: int = 8) -> None:
    """How often the interval holds a known ratio, while other processes spin.

    The truth is known because both candidates make the same call, so many times each.
    """
    import timeit

    step, x = jax.jit(lambda x: jnp.tanh(x @ x)), jnp.ones((24, 24))

    def repeated(times: int) -> Callable[[], None]:
        def calls() -> None:
            for _ in range(times):
                step(x).block_until_ready()

        return calls

    spin = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(spin) for _ in range(load)]
    try:
        for base, times in ((10, 10), (33, 34), (10, 15), (10, 20)):
            held, medians, minima, least = 0, [], [], []
            for _ in range(repetitions):
                both = {"a": repeated(base), "b": repeated(times)}
                result = measure.compare(both, budget=0.25)
                spread = result.ratios["b"]
                held += spread.least <= times / base <= spread.most
                medians.append(spread.median)
                minima.append(result["b"].minimum / result["a"].minimum)
                theirs = {n: timeit.repeat(f, number=10) for n, f in both.items()}
                least.append(min(theirs["b"]) / min(theirs["a"]))
            print(
                f"a ratio of {times / base:.2f}: held in {held} of {repetitions}; "
                f"medians {_range(medians)}, minima {_range(minima)}, "
                f"minima of timeit {_range(least)}"
            )
    finally:
        for one in others:
            one.kill()
            one.wait()


def _range(values: list[float]) -> str:
    low, middle, high = np.quantile(values, [0, 0.5, 1])
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def imports() -> None:
    """What importing this package adds to importing JAX, in processor time."""
    program = (
        "from time import process_time as now; start = now(); import jax; "
        "middle = now(); import justafter; print(middle - start, now() - middle)"
    )
    command = [sys.executable, "-c", program]
    rounds = [
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
        for _ in range(9)
    ]
    jax_takes, added = np.median([[*map(float, one.split())] for one in rounds], axis=0)
    print(
        f"import justafter adds {added * 1e3:.1f} ms to importing JAX, which takes "
        f"{jax_takes * 1e3:.0f} ms"
    )


def _ratio(spread) -> str:
    return f"{spread.median:.3f} ({spread.low:.3f} to {spread.high:.3f})"


if __name__ == "__main__":
    parts = (hits, misses, timer, imports, coverage, ratios)
    every = {part.__name__: part for part in parts}
    for name in sys.argv[1:] or every:
        every[name]()
