"""Export a run for serving: `python -m lm.export RUN EXPORTED`.

The folder holds `prefill` and `step` as StableHLO for any number of prompts, the
weights, the tokenizer and the server. Nothing of this package is needed to run it.
"""

import argparse
import json
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from . import corpus, evaluate, generate
from .config import stop


def exported(config, graph, params, platforms=("cpu", "cuda", "tpu")):
    """`prefill` and `step` as functions of a list of weights, for any batch."""
    leaves, structure = jax.tree.flatten(params)
    prefill, step = generate.functions(graph)
    (b,) = jax.export.symbolic_shape("b")
    c = config.width // config.heads

    def array(dtype, *shape):
        return jax.ShapeDtypeStruct(shape, dtype)

    weights = [array(leaf.dtype, *leaf.shape) for leaf in leaves]
    one = array(jnp.int32, b)
    how = array(jnp.uint32, b), array(jnp.float32), array(jnp.float32)
    cache = array(config.compute, config.layers, b, config.context, config.kv_heads, c)
    calls = {
        "prefill": (prefill, (array(jnp.int32, b, config.context), one)),
        "step": (step, ((cache, cache), one, one)),
    }
    return {
        name: jax.export.export(
            jax.jit(lambda leaves, *args, f=f: f(structure.unflatten(leaves), *args)),
            platforms=platforms,
        )(weights, *args, *how)
        for name, (f, args) in calls.items()
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="folder of a run")
    parser.add_argument("exported", type=Path, help="folder to make")
    args = parser.parse_args()
    if args.exported.exists():
        stop(f"{args.exported} is there already: give another folder, or remove it.")
    config, graph, params, notes = evaluate.load(args.run)
    corpus.tokenizer_of(config.corpus, notes["tokenizer"])
    functions = exported(config, graph, params)
    args.exported.mkdir(parents=True)
    for name, function in functions.items():
        (args.exported / f"{name}.jax").write_bytes(function.serialize())
    np.savez(args.exported / "weights.npz", *map(np.asarray, jax.tree.leaves(params)))
    shutil.copy(Path(config.corpus) / "tokenizer.json", args.exported)
    shutil.copy(Path(__file__).with_name("serve.py"), args.exported)
    about = {"context": config.context, "tokenizer": notes["tokenizer"]}
    (args.exported / "about.json").write_text(json.dumps(about))
    print(f"Serve it: python {args.exported / 'serve.py'}")


if __name__ == "__main__":
    main()
