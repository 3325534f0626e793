"""Tokens a second of the model of `examples/lm`, beside the same model in plain NumPy.

    python -m tests.bench.bench_lm [--rounds N] [--small]

A round times each computation once, in turn, so that the ratios do not depend on how
busy the machine is; the table has medians. The roof is what a large matrix product of
the same library reaches in the same rounds. `python -m tests.examples.lm_figures speed`
keeps the table for the chapter.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from timeit import timeit
from typing import Any

import numpy as np

from tests.examples import lm_numpy
from tests.examples.figures import EXAMPLES, text_of
from tests.examples.lm_figures import TINY

PLAIN, FORWARD = "NumPy, forward", "JAX, forward"
UPDATE = "JAX, forward, backward and update"


def computations(small: bool) -> tuple[dict[str, Callable[[], Any]], dict[str, Any]]:
    """What is timed, compiled already; and how large the model is."""
    sys.path.insert(0, str(EXAMPLES))
    import jax
    from flax import nnx
    from lm import parallel, train
    from lm.config import Config

    config = Config(**TINY) if small else Config(compute="float32")
    mesh = parallel.make_mesh(config, 1)
    size = config.accumulate, config.batch // config.accumulate, config.context + 1
    rows = np.random.default_rng(0).integers(0, config.vocab, size, np.int32)
    with jax.set_mesh(mesh):
        graph, init, _ = train.make_state(config, mesh)
        state = init(jax.random.key(0))
        step = train.make_step(config, graph).lower(state, rows).compile()
    plain = jax.tree.map(np.asarray, nnx.to_pure_dict(state["params"]))
    tokens = rows.reshape(-1, size[-1])[:, :-1]
    forward = jax.jit(lambda params, x: nnx.merge(graph, params)(x)[0])
    params = jax.tree.map(jax.numpy.asarray, jax.device_get(state["params"]))
    large = np.ones((1024, 1024), np.float32)
    product = jax.jit(jax.numpy.matmul)

    def update() -> None:
        nonlocal state
        with jax.set_mesh(mesh):
            state, value = step(state, rows)
        value.block_until_ready()

    calls = {
        PLAIN: lambda: lm_numpy.logits(plain, tokens, config.heads),
        FORWARD: lambda: forward(params, tokens).block_until_ready(),
        UPDATE: update,
        "NumPy": lambda: large @ large,
        "JAX": lambda: product(large, large).block_until_ready(),
    }
    flops = train.flops_a_token(config, plain)
    counts = {"tokens": tokens.size, "flops a token": flops, "product": 2 * 1024**3}
    for call in calls.values():
        call()
    return calls, counts


def measure(rounds: int, small: bool = False) -> dict[str, Any]:
    """Medians of the rounds, in seconds; and what they were measured on."""
    calls, counts = computations(small)
    begin = os.getloadavg()[0]
    timed: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            timed[name].append(timeit(call, number=1))
    return {
        "seconds": {name: statistics.median(each) for name, each in timed.items()},
        **counts,
        "rounds": rounds,
        "cores": os.cpu_count(),
        "load before": round(begin, 1),
        "run on": time.strftime("%Y-%m-%d"),
        "with JAX": version("jax"),
    }


def table(found: dict[str, Any]) -> str:
    """Tokens a second, the share of the roof, and the speed beside NumPy's."""
    taken = found["seconds"]
    rows = [["computation", "tokens a second", "share of the roof", "beside NumPy"]]
    for name, passes in ((PLAIN, 1), (FORWARD, 1), (UPDATE, 3)):
        operations = passes * found["flops a token"] / 3 * found["tokens"]
        roof = found["product"] / taken[name.partition(",")[0]]
        ratio = taken[PLAIN] / taken[name]
        speed = f"{found['tokens'] / taken[name]:,.0f}"
        share = operations / taken[name] / roof
        rows.append([name, speed, f"{share:.0%}", f"{ratio:.2f}"])
    for library in ("NumPy", "JAX"):
        speed = f"{found['product'] / taken[library] / 1e9:.0f}e9 operations a second"
        rows.append([f"{library}, roof", speed, "", ""])
    for name in ("cores", "load before", "rounds", "run on", "with JAX"):
        rows.append([name, str(found[name]), "", ""])
    return text_of(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--small", action="store_true", help="the smallest model")
    options = parser.parse_args()
    print(table(measure(options.rounds, options.small)), end="")


if __name__ == "__main__":
    main()
