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

import jax
import jax.numpy as jnp

from justafter import lens


def thousand(x):
    """A function of a thousand equations."""
    for _ in range(500):
        x = jnp.sin(x) * 1.5
    return x


def spec(*shape: int) -> jax.ShapeDtypeStruct:
    """Describe a float32 array."""
    return jax.ShapeDtypeStruct(shape, "float32")


WIDTH = 64
Case = tuple[Callable[..., Any], tuple[Any, ...]]


def of_flax(differentiate: bool) -> Case:
    """A block of Flax's layers, and the gradient of a step with it."""
    from flax import linen

    class Block(linen.Module):
        @linen.compact
        def __call__(self, x):
            h = linen.LayerNorm()(x)
            x = x + linen.MultiHeadDotProductAttention(num_heads=4)(h, h)
            h = linen.Dense(4 * WIDTH)(linen.LayerNorm()(x))
            return x + linen.Dense(WIDTH)(linen.gelu(h))

    model, x = Block(), spec(2, 32, WIDTH)
    params = jax.eval_shape(model.init, jax.random.key(0), x)

    def step(params, x):
        return jnp.mean(model.apply(params, x) ** 2)

    return (jax.grad(step) if differentiate else step), (params, x)


def of_layers(count: int) -> Case:
    """The gradient of a step with so many of Flax's layers, one after the other."""
    from flax import linen

    class Deep(linen.Module):
        @linen.compact
        def __call__(self, x):
            for _ in range(count):
                x = x + linen.gelu(linen.Dense(WIDTH)(linen.LayerNorm()(x)))
            return x

    model, x = Deep(), spec(32, WIDTH)
    params = jax.eval_shape(model.init, jax.random.key(0), x)

    def step(params, x):
        return jnp.mean(model.apply(params, x) ** 2)

    return jax.grad(step), (params, x)


def of_diffrax() -> Case:
    """The gradient of a differential equation's solution."""
    import diffrax

    def end(y):
        term = diffrax.ODETerm(lambda t, y, args: -y)
        steps = diffrax.PIDController(rtol=1e-3, atol=1e-3)
        solution = diffrax.diffeqsolve(
            term, diffrax.Tsit5(), 0.0, 1.0, 0.1, y, stepsize_controller=steps
        )
        return solution.ys.sum()

    return jax.grad(end), (spec(2),)


def cases() -> dict[str, Case]:
    """All functions to look at."""
    return {
        "1000 equations": (thousand, (spec(16),)),
        "Flax block": of_flax(differentiate=False),
        "its gradient": of_flax(differentiate=True),
        "48 Flax layers": of_layers(48),
        "Diffrax gradient": of_diffrax(),
    }


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """Time one call."""
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
    added = looking - lowering - view.costs.compile_seconds
    return {
        "compile_seconds": compiling,
        "added_ratio": added / compiling,
        "own_ratio": added / (lowering + compiling),
        "around_ratio": (looking - view.costs.compile_seconds) / compiling,
        "render_ratio": rendering / compiling,
        "html_bytes": len(html.encode()),
        "equations": len(view.equations),
        "kernels": len(view.kernels),
    }


def measure(rounds: int, only: str = "") -> dict[str, dict[str, float]]:
    """Give the medians for each case, or for `only` one."""
    results = {}
    for name, (fn, args) in cases().items():
        if only not in ("", name):
            continue
        one_round(fn, args)
        runs = [one_round(fn, args) for _ in range(rounds)]
        results[name] = {
            key: statistics.median(run[key] for run in runs) for key in runs[0]
        }
    return results


def main() -> None:
    """Print the table, or the data."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="the name of one case")
    options = parser.parse_args()
    results = measure(options.rounds, options.only)
    print("compiling = 1; medians of", options.rounds, "rounds")
    for name, r in results.items():
        print(
            f"{name:<20} {r['equations']:>5.0f} equations "
            f"{r['kernels']:>4.0f} kernels  lens {r['added_ratio']:.2f} "
            f"(with tracing and lowering {r['around_ratio']:.2f}; "
            f"{r['own_ratio']:.2f} of tracing, lowering and compiling)  "
            f"HTML {r['render_ratio']:.2f}  {r['html_bytes'] / 1e3:.0f} kB"
        )


if __name__ == "__main__":
    main()
