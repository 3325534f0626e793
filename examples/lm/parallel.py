"""One mesh (`data`, `model`), and how weights and activations lie on it.

- data: every device has all weights and a part of the batch;
- fsdp: the weights are divided over the data axis and gathered layer by layer;
- tensor: matrices are divided over the model axis, by column before an activation
  function or an attention head, by row behind it;
- fsdp+tensor: both.
"""

import re
from collections import Counter

import jax
from flax import nnx
from jax.sharding import PartitionSpec as P

from .config import stop

# The dimensions of a matrix that tensor parallelism divides.
COLUMNS, ROWS = ("query", "key", "value", "gate", "up"), ("output", "down")


def make_mesh(config, devices):
    """The mesh of all devices; its axes are Explicit, as is JAX's default."""
    model = config.tensor if "tensor" in config.parallel else 1
    if devices % model:
        stop(
            f"{devices} devices do not divide by --tensor {model}: change one of them."
        )
    if config.kv_heads % model:
        stop(f"--kv_heads {config.kv_heads} do not divide by --tensor {model}.")
    data, rows = devices // model, config.batch // config.accumulate
    if rows % data:
        stop(
            f"{rows} sequences do not divide over {data} devices: change --batch, "
            "--accumulate, or the devices (JAX_NUM_CPU_DEVICES on a CPU)."
        )
    if "fsdp" in config.parallel and config.width % data:
        stop(f"--width {config.width} does not divide over {data} devices: change it.")
    return jax.make_mesh(
        (data, model), ("data", "model"), devices=jax.devices()[:devices]
    )


def layout(*axes):
    """Where an activation lies, or None without a mesh."""
    return None if jax.sharding.get_abstract_mesh().empty else P(*axes)


def spec(path, shape, fsdp):
    """How a weight is divided, from its path: a matrix (..., m, n), or a scale."""
    named = re.search(r"(\w+)\W+(kernel|embedding)", jax.tree_util.keystr(path))
    if not named:
        return P()
    owner, data = named[1], "data" if fsdp else None
    m, n = {
        **dict.fromkeys(COLUMNS, (data, "model")),
        **dict.fromkeys(ROWS, ("model", data)),
        "embed": (None, data),  # (vocab, d)
    }[owner]
    return P(*[None] * (len(shape) - 2), m, n)


def shardings(tree, mesh, config):
    """A NamedSharding for each leaf of weights, or of an optimizer's state of them."""
    fsdp = "fsdp" in config.parallel
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: jax.NamedSharding(mesh, spec(path, leaf.shape, fsdp)), tree
    )


def gathered(module):
    """The module with its weights as tensor parallelism has them, gathered for FSDP."""
    if jax.sharding.get_abstract_mesh().empty:
        return module
    graph, state = nnx.split(module)
    whole = jax.tree_util.tree_map_with_path(
        lambda path, leaf: jax.sharding.reshard(leaf, spec(path, leaf.shape, False)),
        state,
    )
    return nnx.merge(graph, whole)


COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")


def report(compiled):
    """Bytes on each device and collectives of a compiled step."""
    memory = compiled.memory_analysis()
    text = compiled.as_text()
    names = re.findall(rf"= .*? ({'|'.join(COLLECTIVES)})(?:-start)?\(", text)
    return {
        "arguments": memory.argument_size_in_bytes,
        "results": memory.output_size_in_bytes,
        "donated": memory.alias_size_in_bytes,
        "temporaries": memory.temp_size_in_bytes,
        "collectives": dict(sorted(Counter(names).items())),
    }
