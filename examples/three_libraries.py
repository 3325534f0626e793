# /// script
# dependencies = [
#     "equinox", "flax", "jax", "matplotlib", "optax", "rich", "scikit-learn",
# ]
# ///
"""One network in plain JAX, in Flax NNX and in Equinox: same weights, same training.

A convolutional network with batch normalization and dropout is written three times.
The weights of the plain one are carried across, all three see the same batches and
drop the same values, and so they go the same way. What differs is where the state is
kept, how a part is frozen, how a model is saved, and what a step costs.

    python three_libraries.py
    python three_libraries.py --size large --seed 1 --output elsewhere
"""

import time
from collections import Counter
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
import study
from flax import nnx, serialization
from jax import lax

CLASSES, BATCH, DROP, MOMENTUM, EPSILON = 10, 64, 0.2, 0.9, 1e-5
EVERY = 50  # steps from one checkpoint to the next


class Size(NamedTuple):
    steps: int
    channels: tuple[int, int]
    takes: str


SIZES = {
    "tiny": Size(100, (8, 16), "about 20 seconds, to see that it runs"),
    "small": Size(400, (16, 32), "about 30 seconds and 550 MB on two cores"),
    "large": Size(3000, (64, 128), "about 10 minutes on two cores"),
}

# --- Data -------------------------------------------------------------------------


def load():
    """Images (n, 8, 8, 1) in [0, 1] and labels (n,): 1,500 to train on, 297 to test."""
    return [(x[..., None], y) for x, y in study.digits()]


def batch(data, seed, step):
    """The images (BATCH, 8, 8, 1) and labels (BATCH,) of one step."""
    x, y = data
    rows = np.random.default_rng([seed, step]).choice(len(x), BATCH, replace=False)
    return x[rows], y[rows]


def cross_entropy(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def adam():
    return optax.adam(3e-3)


traced = Counter()  # how often the step of each library was traced

# --- Plain JAX: weights and statistics are dictionaries, passed in and returned ----


def plain_init(key, channels):
    """Weights, and running statistics, of the whole network."""
    few, many = channels
    shapes = {"conv0": (3, 3, 1, few), "conv1": (3, 3, few, many)}
    shapes |= {"dense": (4 * 4 * many, CLASSES)}
    weights, statistics = {}, {}
    for (name, shape), k in zip(shapes.items(), jax.random.split(key, 3), strict=True):
        size = jnp.sqrt(2 / np.prod(shape[:-1]))
        weights[name] = {"w": size * jax.random.normal(k, shape)}
    weights["dense"]["b"] = jnp.zeros(CLASSES)
    for i, n in enumerate(channels):
        weights[f"norm{i}"] = {"scale": jnp.ones(n), "shift": jnp.zeros(n)}
        statistics[f"norm{i}"] = {"mean": jnp.zeros(n), "var": jnp.ones(n)}
    return weights, statistics


def normalize(weights, x, mean, var):
    return (x - mean) / jnp.sqrt(var + EPSILON) * weights["scale"] + weights["shift"]


def norm_and_remember(weights, statistics, x):
    """Normalize x by its own mean and variance, which also enter the statistics."""
    now = {"mean": x.mean(axis=(0, 1, 2)), "var": x.var(axis=(0, 1, 2))}

    def follow(old, new):
        return MOMENTUM * old + (1 - MOMENTUM) * new

    return normalize(weights, x, **now), jax.tree.map(follow, statistics, now)


def plain_forward(weights, statistics, x, key=None):
    """Scores (n, 10) and the statistics after; without a key, as in use."""
    after = {}
    for i in range(2):
        layout = ("NHWC", "HWIO", "NHWC")
        w, norm = weights[f"conv{i}"]["w"], f"norm{i}"
        x = lax.conv_general_dilated(
            x, w, (1 + i, 1 + i), "SAME", dimension_numbers=layout
        )
        if key is None:
            x = normalize(weights[norm], x, **statistics[norm])
        else:
            x, after[norm] = norm_and_remember(weights[norm], statistics[norm], x)
        x = jax.nn.relu(x)
    x = x.reshape(len(x), -1)
    if key is not None:
        kept = jax.random.bernoulli(key, 1 - DROP, x.shape)
        x = jnp.where(kept, x / (1 - DROP), 0.0)
    return x @ weights["dense"]["w"] + weights["dense"]["b"], after or statistics


def plain_loss(weights, statistics, x, y, key):
    logits, statistics = plain_forward(weights, statistics, x, key)
    return cross_entropy(logits, y), statistics


@jax.jit
def plain_step(run, x, y, key):
    """(weights, statistics, opt_state) to the same, and the loss."""
    traced["plain"] += 1
    weights, statistics, opt_state = run
    differentiate = jax.value_and_grad(plain_loss, has_aux=True)
    (value, statistics), grads = differentiate(weights, statistics, x, y, key)
    updates, opt_state = adam().update(grads, opt_state)
    return (optax.apply_updates(weights, updates), statistics, opt_state), value


def plain_start(weights, statistics):
    return weights, statistics, adam().init(weights)


@jax.jit
def plain_logits(run, x):
    return plain_forward(run[0], run[1], x)[0]


def plain_last_layer(run, batches):
    """Train the last layer alone: only it is an argument of what is differentiated."""
    (weights, statistics, _), tx = run, adam()

    def loss(dense, x, y):
        logits, _ = plain_forward({**weights, "dense": dense}, statistics, x)
        return cross_entropy(logits, y)

    @jax.jit
    def step(dense, opt_state, x, y):
        updates, opt_state = tx.update(jax.grad(loss)(dense, x, y), opt_state)
        return optax.apply_updates(dense, updates), opt_state

    dense = weights["dense"]
    opt_state = tx.init(dense)
    for x, y in batches:
        dense, opt_state = step(dense, opt_state, x, y)
    return {**weights, "dense": dense}, statistics, opt_state


# --- Flax NNX: the model is an object that holds its state and changes it -----------


class FlaxNetwork(nnx.Module):
    def __init__(self, channels, rngs):
        few, many = channels
        conv = partial(nnx.Conv, kernel_size=(3, 3), use_bias=False, rngs=rngs)
        norm = partial(nnx.BatchNorm, momentum=MOMENTUM, epsilon=EPSILON, rngs=rngs)
        self.conv0, self.norm0 = conv(1, few), norm(few)
        self.conv1, self.norm1 = conv(few, many, strides=2), norm(many)
        self.drop = nnx.Dropout(DROP)
        self.dense = nnx.Linear(4 * 4 * many, CLASSES, rngs=rngs)

    def __call__(self, x, key=None):
        """Scores (n, 10); `train()` and `eval()` switch the statistics and dropout."""
        x = jax.nn.relu(self.norm0(self.conv0(x)))
        x = jax.nn.relu(self.norm1(self.conv1(x)))
        return self.dense(self.drop(x.reshape(len(x), -1), rngs=key))


@nnx.jit
def flax_update(model, optimizer, x, y, key):
    """The loss; model and optimizer are changed where they stand."""
    traced["flax"] += 1
    value, grads = nnx.value_and_grad(lambda m: cross_entropy(m(x, key), y))(model)
    optimizer.update(model, grads)
    return value


def flax_step(run, x, y, key):
    model, optimizer = run
    model.train()
    return run, flax_update(model, optimizer, x, y, key)


def flax_start(weights, statistics):
    channels = [weights[f"conv{i}"]["w"].shape[-1] for i in range(2)]
    model = FlaxNetwork(channels, nnx.Rngs(0))
    for name, conv in {"conv0": model.conv0, "conv1": model.conv1}.items():
        conv.kernel[...] = weights[name]["w"]
    for name, norm in {"norm0": model.norm0, "norm1": model.norm1}.items():
        norm.scale[...], norm.bias[...] = weights[name]["scale"], weights[name]["shift"]
        norm.mean[...], norm.var[...] = (
            statistics[name]["mean"],
            statistics[name]["var"],
        )
    model.dense.kernel[...] = weights["dense"]["w"]
    model.dense.bias[...] = weights["dense"]["b"]
    return model, nnx.Optimizer(model, adam(), wrt=nnx.Param)


flax_apply = nnx.jit(lambda model, x: model(x))


def flax_logits(run, x):
    run[0].eval()
    return flax_apply(run[0], x)


def flax_save(file, run):
    file.write(serialization.to_bytes(nnx.to_pure_dict(nnx.state(run))))


def flax_load(file, like):
    state = nnx.state(like)
    nnx.replace_by_pure_dict(
        state, serialization.from_bytes(nnx.to_pure_dict(state), file.read())
    )
    nnx.update(like, state)
    return like


def flax_last_layer(run, batches):
    """Train the last layer alone: a filter names what is differentiated and updated."""
    model, _ = run
    last = nnx.All(nnx.Param, nnx.PathContains("dense"))
    optimizer = nnx.Optimizer(model, adam(), wrt=last)

    @nnx.jit
    def step(model, optimizer, x, y):
        wrt = nnx.DiffState(0, last)
        grads = nnx.grad(lambda m: cross_entropy(m(x), y), argnums=wrt)(model)
        optimizer.update(model, grads)

    model.eval()
    for x, y in batches:
        step(model, optimizer, x, y)
    return model, optimizer


# --- Equinox: the model is a pytree; what changes is passed in and returned ---------


class EquinoxNetwork(eqx.Module):
    convs: list[eqx.nn.Conv2d]
    norms: list[eqx.nn.BatchNorm]
    drop: eqx.nn.Dropout
    dense: eqx.nn.Linear

    def __init__(self, channels, key):
        few, many = channels
        one, two, three = jax.random.split(key, 3)
        conv = partial(eqx.nn.Conv2d, kernel_size=3, padding="SAME", use_bias=False)
        self.convs = [conv(1, few, key=one), conv(few, many, stride=2, key=two)]
        norm = partial(eqx.nn.BatchNorm, axis_name="batch", mode="batch")
        self.norms = [norm(n, momentum=MOMENTUM, eps=EPSILON) for n in channels]
        self.drop = eqx.nn.Dropout(DROP)
        self.dense = eqx.nn.Linear(4 * 4 * many, CLASSES, key=three)

    def features(self, x, state):
        """One image (1, 8, 8) to its features (n,): Equinox's layers take no batch."""
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x, state = norm(conv(x), state)
            x = jax.nn.relu(x)
        return x.transpose(1, 2, 0).ravel(), state  # in the order of the others

    def __call__(self, x, state, key=None):
        """Scores (n, 10) of images (n, 8, 8, 1), and the state after."""
        axes = {"in_axes": (0, None), "out_axes": (0, None), "axis_name": "batch"}
        x, state = jax.vmap(self.features, **axes)(x.transpose(0, 3, 1, 2), state)
        return jax.vmap(self.dense)(self.drop(x, key=key)), state


@eqx.filter_jit
def equinox_step(run, x, y, key):
    """(model, state, opt_state) to the same, and the loss."""
    traced["equinox"] += 1
    model, state, opt_state = run

    @partial(eqx.filter_value_and_grad, has_aux=True)
    def differentiate(model):
        logits, after = model(x, state, key)
        return cross_entropy(logits, y), after

    (value, state), grads = differentiate(model)
    updates, opt_state = adam().update(grads, opt_state)
    return (eqx.apply_updates(model, updates), state, opt_state), value


def equinox_start(weights, statistics):
    channels = [weights[f"conv{i}"]["w"].shape[-1] for i in range(2)]
    model, state = eqx.nn.make_with_state(EquinoxNetwork)(channels, jax.random.key(0))
    values = []
    for i in range(2):
        # Equinox has the channels of an image first, and the outputs of a weight.
        w, affine = weights[f"conv{i}"]["w"], weights[f"norm{i}"]
        values += [w.transpose(3, 2, 0, 1), affine["scale"], affine["shift"]]
    values += [weights["dense"]["w"].T, weights["dense"]["b"]]

    def places(model):
        pairs = zip(model.convs, model.norms, strict=True)
        layers = [(conv.weight, norm.weight, norm.bias) for conv, norm in pairs]
        return [*chain(*layers), model.dense.weight, model.dense.bias]

    model = eqx.tree_at(places, model, values)
    return model, state, adam().init(eqx.filter(model, eqx.is_inexact_array))


@eqx.filter_jit
def equinox_logits(run, x):
    model, state, _ = run
    return eqx.nn.inference_mode(model)(x, state)[0]


def equinox_last_layer(run, batches):
    """Train the last layer alone: the model is cut in two trees, and put together."""
    (model, state, _), tx = run, adam()
    chosen = jax.tree.map(lambda _: False, model)
    chosen = eqx.tree_at(lambda m: (m.dense.weight, m.dense.bias), chosen, (True, True))
    last, rest = eqx.partition(model, chosen)

    def loss(last, x, y):
        whole = eqx.nn.inference_mode(eqx.combine(last, rest))
        return cross_entropy(whole(x, state)[0], y)

    @eqx.filter_jit
    def step(last, opt_state, x, y):
        updates, opt_state = tx.update(eqx.filter_grad(loss)(last, x, y), opt_state)
        return eqx.apply_updates(last, updates), opt_state

    opt_state = tx.init(last)
    for x, y in batches:
        last, opt_state = step(last, opt_state, x, y)
    return eqx.combine(last, rest), state, opt_state


# --- All three alike ----------------------------------------------------------------


class Library(NamedTuple):
    start: Any  # (weights, statistics) -> run, whatever the library trains
    step: Any  # (run, x, y, key) -> run, loss
    logits: Any  # (run, x) -> (n, 10)
    save: Any  # (file, run)
    load: Any  # (file, run of the same shapes) -> run
    last_layer: Any  # (run, batches) -> run, in which only the last layer has changed


LIBRARIES = {
    "plain": Library(
        plain_start,
        plain_step,
        plain_logits,
        study.write_arrays,
        study.read_arrays,
        plain_last_layer,
    ),
    "flax": Library(
        flax_start, flax_step, flax_logits, flax_save, flax_load, flax_last_layer
    ),
    "equinox": Library(
        equinox_start,
        equinox_step,
        equinox_logits,
        eqx.tree_serialise_leaves,
        eqx.tree_deserialise_leaves,
        equinox_last_layer,
    ),
}


def training(library, run, done, steps, data, seed):
    """Go on after `done` steps; yield after each (done, run, loss)."""
    key = jax.random.key(seed)
    for step in range(done, steps):
        run, value = library.step(
            run, *batch(data, seed, step), jax.random.fold_in(key, step)
        )
        yield step + 1, run, value


def fit(name, run, data, options):
    """Train with one library; its run and the loss of each step."""
    library, steps = LIBRARIES[name], options.settings["steps"]

    def rest(run, done):
        return training(library, run, done, steps, data, options.seed)

    codec = library.save, library.load
    return study.fit(name, run, rest, steps, options, EVERY, record=1, codec=codec)


def seconds_a_step(library, run, data, steps=30):
    """The median of some steps, each waited for."""
    key, seconds = jax.random.key(0), []
    for step in range(steps):
        x, y = batch(data, 0, step)
        began = time.perf_counter()
        run, value = library.step(run, x, y, key)
        value.block_until_ready()
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds))


# --- The program --------------------------------------------------------------------


def first_layer(name, run):
    """The filters of the first convolution, wherever the library keeps them."""
    if name == "plain":
        return np.array(run[0]["conv0"]["w"])
    if name == "flax":
        return np.array(run[0].conv0.kernel[...])
    return np.array(run[0].convs[0].weight)


def examine(name, run, test, train):
    """The logits of one library's network, and what freezing leaves alone."""
    library = LIBRARIES[name]
    logits, before = np.array(library.logits(run, test[0])), first_layer(name, run)
    run = library.last_layer(run, [batch(train, 1, step) for step in range(20)])
    return logits, {
        "test accuracy": study.accuracy(logits, test[1]),
        "traces of the step": traced[name],
        "frozen part moved": float(abs(first_layer(name, run) - before).max()),
        "last layer trained": bool((library.logits(run, test[0]) != logits).any()),
    }


def draw(losses, path):
    """The three curves of the loss, which lie on one another."""
    figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
    for (name, curve), style in zip(losses.items(), ("-", "--", ":"), strict=True):
        axes.semilogy(curve, style, label=name)
    axes.set(xlabel="step", ylabel="loss")
    axes.legend()
    study.save_figure(figure, path)


def run(options, size):
    train, test = load()
    start = jax.jit(plain_init, static_argnums=1)
    weights, statistics = start(jax.random.key(options.seed), size.channels)
    results, losses, logits, speed = {}, {}, {}, {}
    for name, library in LIBRARIES.items():
        first = library.logits(library.start(weights, statistics), test[0])
        begin = library.start(weights, statistics)
        trained, losses[name] = fit(name, begin, train, options)
        last, results[name] = examine(name, trained, test, train)
        logits[name] = np.array(first), last
        speed[name] = 1e3 * seconds_a_step(library, trained, train)
    for name, row in results.items():
        for i, when in enumerate(["before", "after"]):
            apart = abs(logits[name][i] - logits["plain"][i]).max()
            row[f"logits apart {when}"] = float(apart)
        apart = abs(np.subtract(losses[name], losses["plain"]))
        row["losses apart"] = float(apart.max())
    draw(losses, options.output / "losses.png")
    by_figure = {k: {n: row[k] for n, row in results.items()} for k in results["plain"]}
    study.print_table({**by_figure, "ms a step": speed})
    return results


def main():
    study.main(run, __doc__, SIZES)


if __name__ == "__main__":
    main()
