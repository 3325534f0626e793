# /// script
# dependencies = [
#     "equinox", "flax", "jax", "matplotlib", "optax", "rich", "scikit-learn",
# ]
# ///
"""LoRA as a transformation: `lora(f)` for any function of its weights.

A network that reads upright digits is adapted to pictures on which it fails. Its own
weights W stay as they are; each gets a product of two thin matrices beside it, and
x W becomes x W + (x A) B. The network knows nothing of it: `lora` traces it and runs
its jaxpr with another rule for products. So it works on a model in plain JAX, in Flax
and in Equinox, through `jit`, `scan` and `checkpoint`.

    python lora.py
    python lora.py --size large --seed 1 --output elsewhere
"""

from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
import study
from flax import nnx
from jax import lax
from jax.extend.core import Literal

CLASSES, BATCH = 10, 64
EVERY = 100  # steps from one checkpoint to the next


class Size(NamedTuple):
    steps: int
    width: int
    layers: int
    takes: str


SIZES = {
    "tiny": Size(150, 64, 2, "about 20 seconds, to see that it runs"),
    "small": Size(600, 128, 4, "about a minute and 550 MB on two cores"),
    "large": Size(3000, 512, 8, "about half an hour on two cores"),
}

# --- The transformation -------------------------------------------------------------


class Adapted(NamedTuple):
    """A weight w (..., m, n), to be read as w + a b; a (..., m, r), b (..., r, n).

    As a tuple it is a pytree: `jit` takes it apart, and `scan` slices all three.
    """

    w: jax.Array
    a: jax.Array
    b: jax.Array


def is_adapted(x):
    return isinstance(x, Adapted)


def merged(x):
    """The weight that an adapted one stands for; anything else as it is."""
    return x.w + x.a @ x.b if is_adapted(x) else x


def lora(f):
    """From f(weights, *args) to g(adapters, weights, *args).

    `adapters` has, for each leaf of the weights in order, None or a pair (a, b).
    """

    def g(adapters, weights, *args):
        closed, shape = jax.make_jaxpr(f, return_shape=True)(weights, *args)
        pairs = zip(jax.tree.leaves(weights), adapters, strict=True)
        adapted = [w if pair is None else Adapted(w, *pair) for w, pair in pairs]
        results = evaluate(closed, *adapted, *jax.tree.leaves(args))
        return jax.tree.unflatten(jax.tree.structure(shape), map(merged, results))

    return g


def evaluate(jaxpr, *args):
    """Run a jaxpr, open or closed, on arrays and adapted weights."""
    consts, jaxpr = getattr(jaxpr, "consts", ()), getattr(jaxpr, "jaxpr", jaxpr)
    values = dict(zip(jaxpr.constvars, consts, strict=True))
    values |= zip(jaxpr.invars, args, strict=True)

    def read(atom):
        return atom.val if isinstance(atom, Literal) else values[atom]

    for eqn in jaxpr.eqns:
        inputs = [read(atom) for atom in eqn.invars]
        rule = RULES.get(eqn.primitive.name) if any(map(is_adapted, inputs)) else None
        results = (rule or on_merged)(eqn, *inputs)
        values |= zip(eqn.outvars, results, strict=True)
    return [read(atom) for atom in jaxpr.outvars]


def on_merged(eqn, *inputs):
    """The primitive as it is, on plain arrays: right for every primitive."""
    params = eqn.primitive.get_bind_params(eqn.params)
    results = eqn.primitive.bind(*map(merged, inputs), **params)
    return results if eqn.primitive.multiple_results else [results]


def product(eqn, x, y):
    """x W becomes x W + (x A) B, for a matrix W on either side."""
    w = y if is_adapted(y) else x
    (x_dims, y_dims), (batch, _) = eqn.params["dimension_numbers"]
    if (is_adapted(x) and is_adapted(y)) or w.w.ndim != 2 or batch or len(x_dims) != 1:
        return on_merged(eqn, x, y)
    [usual] = on_merged(eqn, *(v.w if is_adapted(v) else v for v in (x, y)))
    [dim] = y_dims if is_adapted(y) else x_dims
    # Over its rows W is read as A B, over its columns as its transpose, B' A'.
    first, second = (w.a, w.b) if dim == 0 else (w.b.T, w.a.T)
    if is_adapted(y):
        return [
            usual + jnp.tensordot(jnp.tensordot(x, first, (x_dims, (0,))), second, 1)
        ]
    thin = jnp.tensordot(first, y, ((0,), y_dims))
    return [usual + jnp.tensordot(second, thin, ((0,), (0,)))]


def transposed(eqn, x):
    if eqn.params["permutation"] != (1, 0):
        return on_merged(eqn, x)
    return [Adapted(x.w.T, x.b.T, x.a.T)]


def converted(eqn, x):
    return [Adapted(*(part.astype(eqn.params["new_dtype"]) for part in x))]


def inside_jit(eqn, *inputs):
    return jax.jit(partial(evaluate, eqn.params["jaxpr"]))(*inputs)


def inside_scan(eqn, *inputs):
    """The same loop over a body that knows the rules, with the same arguments.

    A scan takes constants, then a carry, then what it slices; and gives a carry, then
    what it stacks. What is sliced or stacked has one more dimension outside.
    """
    params, body = eqn.params, eqn.params["jaxpr"]
    inner = getattr(body, "jaxpr", body)
    sliced = sum(map(has_one_more, eqn.invars, inner.invars))
    kept = len(eqn.outvars) - sum(map(has_one_more, eqn.outvars, inner.outvars))
    constants = inputs[: len(inputs) - sliced - kept]
    carry = [merged(x) for x in inputs[len(constants) : len(inputs) - sliced]]
    slices = [whole_if_sliced(x) for x in inputs[len(inputs) - sliced :]]

    def step(carry, slices):
        results = [merged(x) for x in evaluate(body, *constants, *carry, *slices)]
        return results[:kept], results[kept:]

    ways = {name: params[name] for name in ("length", "reverse", "unroll")}
    carry, stacked = lax.scan(step, carry, slices, **ways)
    return [*carry, *stacked]


def has_one_more(outer, inner):
    return len(outer.aval.shape) > len(inner.aval.shape)


def whole_if_sliced(x):
    """A slice of a stack of matrices is one of them; a slice of a matrix is not."""
    return merged(x) if is_adapted(x) and x.w.ndim == 2 else x


def inside_checkpoint(eqn, *inputs):
    ways = {name: eqn.params[name] for name in ("policy", "prevent_cse")}
    return jax.checkpoint(partial(evaluate, eqn.params["jaxpr"]), **ways)(*inputs)


# What need not merge an adapted weight that it meets.
RULES = {
    "dot_general": product,
    "transpose": transposed,
    "convert_element_type": converted,
    "jit": inside_jit,
    "scan": inside_scan,
    "remat2": inside_checkpoint,
}


def init(key, weights, rank, chosen=lambda path, w: w.ndim >= 2):
    """Adapters for the weights chosen, (m, n) or stacks of them; others get None.

    b is 0, so that nothing changes yet. `chosen` sees a weight's path and the weight.
    """
    leaves = jax.tree_util.tree_leaves_with_path(weights)

    def pair(key, path, w):
        if not chosen(jax.tree_util.keystr(path), w):
            return None
        *stack, m, n = w.shape
        a = jax.random.normal(key, (*stack, m, rank)) / jnp.sqrt(m)
        return a, jnp.zeros((*stack, rank, n))

    keys = jax.random.split(key, len(leaves))
    return [pair(k, *leaf) for k, leaf in zip(keys, leaves, strict=True)]


def merge(adapters, weights):
    """Weights that do without adapters what the old ones do with them."""
    leaves, structure = jax.tree.flatten(weights)
    pairs = zip(leaves, adapters, strict=True)
    return jax.tree.unflatten(
        structure,
        [w if pair is None else merged(Adapted(w, *pair)) for w, pair in pairs],
    )


# --- Models: the same weights in plain JAX, in Flax and in Equinox --------------------


def plain_init(key, width, layers):
    """Weights (m, n) and biases (n,); those of the hidden layers are stacks."""

    def weight(key, *shape):
        return jax.random.normal(key, shape) / jnp.sqrt(shape[-2])

    one, two, three = jax.random.split(key, 3)
    hidden = weight(two, layers, width, width)
    return {
        "first": {"w": weight(one, 64, width), "b": jnp.zeros(width)},
        "hidden": {"w": hidden, "b": jnp.zeros((layers, width))},
        "last": {"w": weight(three, width, CLASSES), "b": jnp.zeros(CLASSES)},
    }


@jax.checkpoint
def hidden_layer(h, layer):
    return h + jax.nn.relu(h @ layer["w"] + layer["b"]), None


def plain(weights, x):
    """Images (n, 64) to logits (n, 10), with a scan over the hidden layers."""
    h = jax.nn.relu(x @ weights["first"]["w"] + weights["first"]["b"])
    h, _ = lax.scan(hidden_layer, h, weights["hidden"])
    return h @ weights["last"]["w"] + weights["last"]["b"]


class FlaxNetwork(nnx.Module):
    def __init__(self, width, layers, rngs):
        self.first = nnx.Linear(64, width, rngs=rngs)
        hidden = [nnx.Linear(width, width, rngs=rngs) for _ in range(layers)]
        self.hidden = nnx.List(hidden)
        self.last = nnx.Linear(width, CLASSES, rngs=rngs)

    def __call__(self, x):
        h = jax.nn.relu(self.first(x))
        for layer in self.hidden:
            h = h + jax.nn.relu(layer(h))
        return self.last(h)


def from_flax(weights):
    """A Flax model with these weights, as a function of its state, and that state."""
    layers, width = weights["hidden"]["b"].shape
    model = FlaxNetwork(width, layers, nnx.Rngs(0))
    for layer, w, b in zip(flax_layers(model), *matrices(weights), strict=True):
        layer.kernel[...], layer.bias[...] = w, b
    definition, state = nnx.split(model)
    return (lambda state, x: nnx.merge(definition, state)(x)), state


def flax_layers(model):
    return [model.first, *model.hidden, model.last]


def matrices(weights):
    """All weights and all biases, layer by layer."""
    first, hidden, last = weights["first"], weights["hidden"], weights["last"]
    return [[first[k], *hidden[k], last[k]] for k in ("w", "b")]


def from_equinox(weights):
    """An Equinox model with these weights, as a function of its arrays, and those."""
    layers, width = weights["hidden"]["b"].shape
    sizes = 64, *[width] * (layers + 1), CLASSES
    keys = jax.random.split(jax.random.key(0), layers + 2)
    pairs = zip(pairwise(sizes), keys, strict=True)
    model = [eqx.nn.Linear(m, n, key=key) for (m, n), key in pairs]
    new = [x for w, b in zip(*matrices(weights), strict=True) for x in (w.T, b)]
    model = eqx.tree_at(
        lambda layers: [x for one in layers for x in (one.weight, one.bias)], model, new
    )
    arrays, rest = eqx.partition(model, eqx.is_array)

    def forward(arrays, x):
        first, *hidden, last = eqx.combine(arrays, rest)
        h = jax.nn.relu(first(x))
        for layer in hidden:
            h = h + jax.nn.relu(layer(h))
        return last(h)

    return jax.vmap(forward, in_axes=(None, 0)), arrays


# --- Tasks: pictures of digits that were changed, and the labels as before ------------


def glare(x, rng):
    """A light from some side over each picture, brighter than the digit."""
    line = np.linspace(-1, 1, 8)
    down, across, level = 1.5 * rng.normal(size=(3, len(x), 1, 1))
    return x + down * line[:, None] + across * line + level


TASKS = {
    "upright": lambda x, rng: x,
    "mirrored": lambda x, rng: x[:, :, ::-1],
    "turned": lambda x, rng: np.rot90(x, axes=(1, 2)),
    "glare": glare,
    "inverted": lambda x, rng: 1 - x,
}


def load(task):
    """Images (n, 64) and labels (n,): 1,500 to train on and 297 to test."""
    images, labels = zip(*study.digits(), strict=True)
    x = TASKS[task](np.concatenate(images), np.random.default_rng(0))
    x = x.reshape(-1, 64).astype(np.float32)
    return (x[:1500], labels[0]), (x[1500:], labels[1])


# --- Ways to adapt: which tree is trained, and what the network is as its function ----


class Way(NamedTuple):
    trained: Any
    forward: Any  # (trained, x) to logits
    rate: float


def ways(base, rank, key):
    """LoRA and what it has to be compared with."""
    biases = {name: layer["b"] for name, layer in base.items()}

    def with_biases(biases, x):
        return plain({k: {"w": base[k]["w"], "b": biases[k]} for k in base}, x)

    adapters = init(key, base, rank, is_weight)
    return {
        "LoRA": Way(adapters, lambda a, x: lora(plain)(a, base, x), 1e-2),
        "last layer": Way(
            base["last"], lambda p, x: plain({**base, "last": p}, x), 1e-2
        ),
        "biases": Way(biases, with_biases, 1e-2),
        "everything": Way(base, plain, 1e-3),
    }


def is_weight(path, w):
    """Not a bias, of which the plain model has a stack as well."""
    return w.ndim >= 2 and "'b'" not in path


# --- Training -----------------------------------------------------------------------


def make_optimizer(rate, steps):
    return optax.adam(optax.cosine_decay_schedule(rate, steps))


def training(forward, rate, state, done, steps, data, seed):
    """Go on after `done` steps; yield after each (done, state, loss)."""
    optimizer = make_optimizer(rate, steps)

    def loss(trained, x, y):
        logits = forward(trained, x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

    @jax.jit
    def step(trained, opt_state, x, y):
        value, grads = jax.value_and_grad(loss)(trained, x, y)
        updates, opt_state = optimizer.update(grads, opt_state)
        return optax.apply_updates(trained, updates), opt_state, value

    x, y = data
    for number in range(done, steps):
        rows = np.random.default_rng([seed, number]).integers(0, len(x), BATCH)
        *state, value = step(*state, x[rows], y[rows])
        yield number + 1, tuple(state), value


# --- The program ----------------------------------------------------------------------


def fit(name, way, data, options):
    """Train in one way; what was trained."""
    steps = options.settings["steps"]
    begin = way.trained, make_optimizer(way.rate, steps).init(way.trained)

    def rest(state, done):
        given = way.forward, way.rate, state, done, steps, data, options.seed
        return training(*given)

    state, _ = study.fit(name, begin, rest, steps, options, EVERY)
    return state[0]


def count(tree):
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


def costs(way):
    """Numbers trained, and bytes of the optimizer state."""
    opt_state = optax.adam(0.1).init(way.trained)
    return {"trained": count(way.trained), "opt_state": 4 * count(opt_state)}


def examine(base, adapters, x):
    """What has to hold of adapters, as the largest differences of logits found.

    `merged`: of the adapted model and the one with merged weights; `untrained`: of
    adapters that were not trained and none. For plain JAX, Flax and Equinox.
    """
    found = {}
    models = {"plain": (plain, base), "flax": from_flax(base)}
    for name, (forward, weights) in {**models, "equinox": from_equinox(base)}.items():
        fresh = init(jax.random.key(0), weights, 3, is_weight)
        used = adapters if name == "plain" else jax.tree.map(lambda a: a + 0.01, fresh)
        adapted = lora(forward)
        merging = adapted(used, weights, x) - forward(merge(used, weights), x)
        nothing = adapted(fresh, weights, x) - forward(weights, x)
        found[name] = {"merged": float(abs(merging).max())}
        found[name] |= {"untrained": float(abs(nothing).max())}
    return found


def every_adapter_on_every_task(base, adapters):
    """Accuracy (adapters, tasks), all adapters at once by `vmap`."""
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *adapters.values())
    together = jax.jit(jax.vmap(lora(plain), in_axes=(0, None, None)))
    columns = []
    for task in adapters:
        x, y = load(task)[1]
        columns.append([study.accuracy(s, y) for s in together(stacked, base, x)])
    return np.transpose(columns)


def draw(table, square, path):
    """Accuracy by task and way; and of every adapter on every task."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.5), layout="constrained")
    names, tasks = list(next(iter(table.values()))), list(table)
    for i, name in enumerate(names):
        heights = [table[task][name] for task in tasks]
        left.bar(np.arange(len(tasks)) + 0.14 * i - 0.35, heights, 0.14, label=name)
    left.set(xticks=range(len(tasks)), xticklabels=tasks, ylabel="test accuracy")
    figure.legend(loc="outside upper left", fontsize="small", ncols=len(names))
    right.imshow(square, vmin=0, vmax=1)
    for (i, j), value in np.ndenumerate(square):
        color = "black" if value > 0.5 else "white"
        right.text(j, i, f"{value:.2f}", ha="center", va="center", color=color)
    right.set(xticks=range(len(tasks)), xticklabels=tasks, xlabel="digits")
    right.set(yticks=range(len(tasks)), yticklabels=tasks, ylabel="adapter")
    study.save_figure(figure, path)


def run(options, size):
    key = jax.random.key(options.seed)
    start = jax.jit(plain_init, static_argnums=(1, 2))(key, size.width, size.layers)
    train, test = load("upright")
    base = fit("base", Way(start, plain, 1e-3), train, options)
    before = jax.tree.map(np.array, base)
    table, adapters = {}, {}
    for task in [*TASKS][1:]:
        train, (x, y) = load(task)
        table[task] = {"frozen": study.accuracy(plain(base, x), y)}
        for name, way in ways(base, 3, key).items():
            trained = fit(f"{task} {name}", way, train, options)
            table[task][name] = study.accuracy(way.forward(trained, x), y)
            if name == "LoRA":
                adapters[task] = trained
        right = study.neighbors(train, (x, y), 3)
        table[task]["neighbors"] = float(right.mean())
    same = jax.tree.map(lambda a, b: bool((a == b).all()), before, base)
    results = {
        "base": study.accuracy(plain(base, test[0]), test[1]),
        "base unchanged": all(jax.tree.leaves(same)),
        "accuracy": table,
        "costs": {name: costs(way) for name, way in ways(base, 3, key).items()},
        "apart": examine(base, adapters["mirrored"], test[0]),
    }
    square = every_adapter_on_every_task(base, adapters)
    draw(table, square, options.output / "adapters.png")
    report(results)
    return results


def report(results):
    """Print what was found."""
    print(f"the base on upright digits: {results['base']:.3f}")
    study.print_table(results["accuracy"])
    whole = results["costs"]["everything"]["trained"]
    for name, cost in results["costs"].items():
        share = cost["trained"] / whole
        print(f"{name}: {cost['trained']:,} numbers trained ({share:.1%}), ", end="")
        print(f"{cost['opt_state']:,} bytes of optimizer state")
    for name, apart in results["apart"].items():
        print(f"{name}: merged differs by {apart['merged']:.1e}, ", end="")
        print(f"untrained by {apart['untrained']:.1e}")


def main():
    study.main(run, __doc__, SIZES)


if __name__ == "__main__":
    main()
