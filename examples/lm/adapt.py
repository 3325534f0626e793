"""Fit LoRA adapters to other text: `python -m lm.adapt RUN --output ADAPTED`.

The transformation `lora` of examples/lora.py gives each matrix of the model a product
of two thin ones, which alone are trained. The text is the prose of Python's reference,
`pydoc_data.topics`; a tenth of its topics is held out.
"""

import argparse
import json
from functools import partial
from math import inf
from pathlib import Path

import jax
import numpy as np
import optax
from lora import init, lora, merge

from . import corpus, evaluate, train
from .config import require, stop


def prose():
    """Topics of Python's reference to learn from, and others to evaluate on."""
    from pydoc_data.topics import topics

    names = sorted(topics)
    parts = [name for i, name in enumerate(names) if i % 10], names[::10]
    return [[topics[name] for name in part] for part in parts]


def is_layer(path, leaf):
    """Matrices of the layers are adapted; the embedding stays as it is."""
    return "kernel" in path and leaf.ndim == 3


def fit(config, graph, params, ids, rank, steps, rate, seed):
    """Adapters trained on tokens ids (n,), and how many numbers they have."""
    adapters = init(jax.random.key(seed), params, rank, is_layer)
    adapted = lora(partial(train.loss, graph))
    optimizer = optax.adam(optax.cosine_decay_schedule(rate, steps))

    @jax.jit
    def step(adapters, opt_state, rows):
        value, grads = jax.value_and_grad(adapted)(adapters, params, rows)
        updates, opt_state = optimizer.update(grads, opt_state)
        return optax.apply_updates(adapters, updates), opt_state, value

    opt_state, rng = optimizer.init(adapters), np.random.default_rng(seed)
    for _ in range(steps):
        starts = rng.integers(0, len(ids) - config.context, config.batch)
        rows = ids[starts[:, None] + np.arange(config.context + 1)]
        adapters, opt_state, _ = step(adapters, opt_state, rows.astype(np.int32))
    return adapters, sum(leaf.size for leaf in jax.tree.leaves(adapters))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="folder of a run")
    parser.add_argument("--output", type=Path, default=Path("adapted"))
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    require(args.rank >= 1 and args.steps >= 1, "--rank and --steps are at least 1")
    require(0 < args.rate < inf, "--rate has to be above 0, and finite")
    require(0 <= args.seed < 2**31, "--seed has to be from 0 to 2**31 - 1")
    if args.output.exists():
        stop(f"{args.output} is there already: give another folder, or remove it.")
    config, graph, params, notes = evaluate.load(args.run)
    tokenizer = corpus.tokenizer_of(config.corpus, notes["tokenizer"])
    sizes = corpus.bytes_of_tokens(tokenizer)
    learned, held_out = (corpus.encode(tokenizer, part) for part in prose())
    code = evaluate.load_ids(config, "validation")[:16_384]

    def bits(params, ids):
        values = evaluate.nats(config, graph, params, ids, config.context // 2)
        return evaluate.bits(values, sizes[ids[1:]])

    how = args.rank, args.steps, args.rate, args.seed
    adapters, count = fit(config, graph, params, learned, *how)
    merged = merge(adapters, params)
    results = {
        "weights trained": count,
        "share of the weights": count / sum(x.size for x in jax.tree.leaves(params)),
        "prose": {"before": bits(params, held_out), "after": bits(merged, held_out)},
        "code": {"before": bits(params, code), "after": bits(merged, code)},
    }
    args.output.mkdir(parents=True)
    leaves = [leaf for pair in adapters if pair for leaf in pair]
    np.savez(args.output / "adapters.npz", *map(np.asarray, leaves))
    (args.output / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    for kind in ("prose", "code"):
        before, after = results[kind].values()
        print(f"{kind}: {before:.3f} bits a byte before, {after:.3f} after")
    print(
        f"{count:,} numbers trained, {results['share of the weights']:.1%} of the model"
    )


if __name__ == "__main__":
    main()
