"""What a lens costs, as a ratio to compiling the same function.

Run it with ``python -m tests.bench.bench_lens``. Each figure
is the median of several rounds; in every round the function is traced, lowered and
compiled, and then looked at, one right after the other, so both meet the same load on
the machine. What the lens adds is given as a ratio to compiling alone.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
from flax import linen

from justafter import lens

WIDTH = 64
Case = tuple[Callable[..., Any], tuple[Any, ...]]


def spec(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, "float32")


def thousand(x):
    for _ in range(500):
        x = jnp.sin(x) * 1.5
    return x


class Block(linen.Module):
    @linen.compact
    def __call__(self, x):
        h = linen.LayerNorm()(x)
        x = x + linen.MultiHeadDotProductAttention(num_heads=4)(h, h)
        h = linen.Dense(4 * WIDTH)(linen.LayerNorm()(x))
        return x + linen.Dense(WIDTH)(linen.gelu(h))


class Deep(linen.Module):
    @linen.compact
    def __call__(self, x):
        for _ in range(48):
            x = x + linen.gelu(linen.Dense(WIDTH)(linen.LayerNorm()(x)))
        return x


def of_flax(model: linen.Module, *rows: int, wrap: Callable = jax.grad) -> Case:
    """A step with a module of Flax's, differentiated unless `wrap` does otherwise."""
    x = spec(*rows, WIDTH)
    params = jax.eval_shape(model.init, jax.random.key(0), x)
    return wrap(lambda params, x: jnp.mean(model.apply(params, x) ** 2)), (params, x)


def end(y):
    term = diffrax.ODETerm(lambda t, y, args: -y)
    control = diffrax.PIDController(rtol=1e-3, atol=1e-3)
    times = (0.0, 1.0, 0.1)
    return diffrax.diffeqsolve(
        term, diffrax.Tsit5(), *times, y, stepsize_controller=control
    ).ys.sum()


CASES: dict[str, Callable[[], Case]] = {
    "1000 equations": lambda: (thousand, (spec(16),)),
    "Flax block": lambda: of_flax(Block(), 2, 32, wrap=lambda fn: fn),
    "its gradient": lambda: of_flax(Block(), 2, 32),
    "48 Flax layers": lambda: of_flax(Deep(), 32),
    "Diffrax gradient": lambda: (jax.grad(end), (spec(2),)),
}


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def one_round(fn: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, float]:
    """Compile, look, and render, each once and without caches."""
    jax.clear_caches()
    lowering, lowered = seconds(lambda: jax.jit(fn).trace(*args).lower())
    compiling, _ = seconds(lowered.compile)
    jax.clear_caches()
    looking, view = seconds(lambda: lens(fn, *args))
    rendering, html = seconds(view._repr_html_)
    # Beside what the same function takes without a lens, in the same round.
    around = looking - view.costs.compile_seconds
    added = around - lowering
    return {
        "equations": len(view.equations),
        "kernels": len(view.kernels),
        "lens": added / compiling,
        "with tracing and lowering": around / compiling,
        "of tracing, lowering and compiling": added / (lowering + compiling),
        "HTML": rendering / compiling,
        "kB": len(html.encode()) / 1e3,
    }


def main() -> None:
    """Print a line of medians for each case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=CASES, help="one case")
    options = parser.parse_args()
    print("compiling = 1; medians of", options.rounds, "rounds")
    for name in [options.only] if options.only else CASES:
        case = CASES[name]()
        one_round(*case)
        runs = [one_round(*case) for _ in range(options.rounds)]
        found = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        print(f"{name:<20}", ", ".join(f"{k} {v:.4g}" for k, v in found.items()))


if __name__ == "__main__":
    main()
