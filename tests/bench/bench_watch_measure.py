"""What the instruments cost, as ratios within one run.

    python -m tests.bench.bench_watch_measure [NAME ...]

Each line compares candidates that ran in turns in this process.
"""

import argparse
import time

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


def _ratio(spread) -> str:
    return f"{spread.median:.3f} ({spread.least:.3f} to {spread.most:.3f})"


if __name__ == "__main__":
    every = {part.__name__: part for part in (hits, misses, timer)}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[*every], metavar="NAME")
    for name in parser.parse_args().names:
        every[name]()
