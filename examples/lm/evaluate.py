"""Evaluate a model in bits a byte: `python -m lm.evaluate RUN`.

Bits a byte can be compared between models of other tokens, or of none.
"""

import argparse
import math
from functools import lru_cache, partial
from pathlib import Path

import jax
import numpy as np
import optax
from flax import nnx

from . import config as options
from . import corpus, model
from .checkpoint import load_weights, quiet


@lru_cache(8)
def compiled(graph, sharding):
    @partial(jax.jit, out_shardings=sharding)
    def nats(params, rows):
        logits, _ = nnx.merge(graph, params)(rows[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(logits, rows[:, 1:])

    return nats


def nats(config, graph, params, ids, stride, rows=16):
    """The negative log-likelihood (n - 1,) of each token of ids (n,) but the first.

    Windows of a context's length begin every `stride` tokens; of each but the first,
    the last `stride` tokens count, so they have at least context - stride before them.
    """
    size, mesh = config.context, jax.sharding.get_mesh()
    place = None if mesh.empty else jax.NamedSharding(mesh, jax.P())
    run = compiled(graph, place)
    starts = np.arange(0, max(len(ids) - 1 - size, 0) + stride, stride)
    padded = np.pad(ids.astype(np.int32), (0, starts[-1] + size + 1 - len(ids)))
    starts = np.pad(starts, (0, -len(starts) % rows), mode="edge")
    out = np.zeros(starts[-1] + size, np.float32)
    for some in starts.reshape(-1, rows):
        windows = padded[some[:, None] + np.arange(size + 1)]
        if not mesh.empty:
            windows = jax.device_put(windows, jax.NamedSharding(mesh, jax.P()))
        for start, values in zip(some, np.asarray(run(params, windows)), strict=True):
            new = slice(0 if start == 0 else size - stride, size)
            out[start : start + size][new] = values[new]
    return out[: len(ids) - 1]


def load_ids(config, part):
    return np.load(Path(config.corpus) / f"{part}.npy")


def lengths(config, described):
    return corpus.bytes_of_tokens(
        corpus.tokenizer_of(config.corpus, described["tokenizer"])
    )


def bits(nats, lengths):
    return float(nats.sum(dtype=np.float64) / math.log(2) / lengths.sum())


def quick(config, graph, params, described, tokens=16_384):
    """Bits a byte of the first tokens of the validation text."""
    ids = load_ids(config, "validation")[:tokens]
    values = nats(config, graph, params, ids, config.context)
    return bits(values, lengths(config, described)[ids[1:]])


def evaluate(config, graph, params, described, part):
    """Bits a byte of a held-out part."""
    ids = load_ids(config, part)
    values = nats(config, graph, params, ids, max(config.context // 2, 1))
    return bits(values, lengths(config, described)[ids[1:]])


def load(run):
    """The configuration, graph and weights of a run, and the corpus it read."""
    quiet()
    config = options.read(run)
    params, notes = load_weights(run, abstract=weights_of)
    return config, model.create(config)[0], params, notes


def weights_of(config):
    return jax.eval_shape(model.create(config)[1], jax.random.key(0))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="folder of a run")
    parser.add_argument("--part", choices=("validation", "test"), default="validation")
    args = parser.parse_args()
    config, graph, params, _ = load(args.run)
    value = evaluate(config, graph, params, corpus.prepare(config), args.part)
    print(f"{args.part}: {value:.3f} bits a byte")


if __name__ == "__main__":
    main()
