"""What the instruments cost, as ratios within one run.

    python -m tests.bench.bench_instruments [NAME ...]

Each line compares candidates that ran in turns in this process.
"""

import argparse
import statistics
import time
import timeit
from collections.abc import Callable
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
from flax import linen

from justafter import lens, measure, watch
from tests.instruments.running import shaped


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def misses() -> None:
    """A trace, plain and watched; and the thousandth retrace against the tenth."""

    def one_trace() -> float:
        step = jax.jit(lambda x: jnp.tanh(x) @ x)
        return seconds(lambda: step.trace(shaped(8, 8)))[0]

    one_trace()
    plain, watched = [], []
    for _ in range(100):
        plain.append(one_trace())
        with watch():
            watched.append(one_trace())
    ratio = statistics.median(watched) / statistics.median(plain)
    print(f"a trace, watched / plain: {ratio:.2f}")

    step, retraces = jax.jit(lambda x: x + 1), []
    with watch(only=step):
        for n in range(1, 1001):
            start = time.perf_counter()
            step.trace(shaped(n))
            retraces.append(time.perf_counter() - start)
    growth = statistics.median(retraces[-100:]) / statistics.median(retraces[10:110])
    print(f"a retrace, the 950th / the 60th: {growth:.2f}")


def timer() -> None:
    """What measure adds to a call that does next to nothing, against timeit."""

    def nothing() -> int:
        return 0

    ours = measure(nothing, budget=0.5).steady.median
    theirs = timeit.repeat(nothing, number=10_000, repeat=15)
    ratio = ours * 10_000 / statistics.median(theirs)
    print(f"an empty call, measure / timeit: {ratio:.2f}")


def thousand(x):
    for _ in range(500):
        x = jnp.sin(x) * 1.5
    return x


def of_flax() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The gradient of a block of a transformer."""
    layers = [linen.LayerNorm(), linen.MultiHeadDotProductAttention(num_heads=4)]
    layers += [linen.LayerNorm(), linen.Dense(256), linen.gelu, linen.Dense(64)]
    model, x = linen.Sequential(layers), shaped(2, 32, 64)
    params = jax.eval_shape(model.init, jax.random.key(0), x)
    return jax.grad(lambda params, x: jnp.mean(model.apply(params, x))), (params, x)


def end(y):
    term = diffrax.ODETerm(lambda t, y, args: -y)
    return diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 1.0, 0.1, y).ys.sum()


def lenses(rounds: int = 3) -> None:
    """What a lens adds to tracing and lowering, and its HTML, against compiling."""
    cases = {
        "1000 equations": (thousand, (shaped(16),)),
        "Flax block": of_flax(),
        "Diffrax gradient": (jax.grad(end), (shaped(2),)),
    }
    for name, (fn, args) in cases.items():
        ratios = []
        for _ in range(rounds):
            # All in one round, without caches, so that they meet the same load.
            jax.clear_caches()
            traced, lowered = seconds(lambda: jax.jit(fn).trace(*args).lower())  # noqa: B023
            compiling, _ = seconds(lowered.compile)
            jax.clear_caches()
            looking, view = seconds(lambda: lens(fn, *args))  # noqa: B023 (called here)
            rendering, _ = seconds(view._repr_html_)
            added = looking - view.costs.compile_seconds - traced
            ratios.append((added / compiling, rendering / compiling))
        added, html = map(statistics.median, zip(*ratios, strict=True))
        print(f"{name}, lens / compiling: {added:.2f}, and its HTML: {html:.2f}")


if __name__ == "__main__":
    every = {part.__name__: part for part in (misses, timer, lenses)}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[*every], metavar="NAME")
    for name in parser.parse_args().names:
        every[name]()
