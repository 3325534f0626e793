# /// script
# dependencies = ["jax", "matplotlib", "optax", "rich", "scikit-learn"]
# ///
"""A model that does not learn: three faults, how each shows, and how it is found.

A network takes noise off handwritten digits. Then three faults are planted, one at a
time, of which none raises an error: weights in bfloat16 at a small rate, pixels in
another order than the one they belong in, and test inputs that are not scaled as the
training's are. Each lowers the result; and for each there is a figure that is wrong
for this fault alone, which a test of one line would have checked. Beside the network
stands the best linear map of the pixels, which a formula gives.

    python faults.py
    python faults.py --size large --seed 1 --output elsewhere
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
import study

BATCH, NOISE, RATE = 128, 0.3, 1e-4
EVERY = 500  # steps from one checkpoint to the next


class Size(NamedTuple):
    steps: int
    width: int
    takes: str


SIZES = {
    "tiny": Size(1200, 64, "about 20 seconds, to see that it runs"),
    "small": Size(4000, 128, "about a minute and 600 MB on two cores"),
    "large": Size(40000, 1024, "an hour on two cores"),
}


class Setup(NamedTuple):
    """How the program is put together; the defaults are right."""

    dtype: str = "float32"  # of the weights
    order: str = "cells"  # in which pixels come in
    scale: float = 16.0  # by which the test images are divided


SETUPS = {
    "working": Setup(),
    "bfloat16 weights": Setup(dtype="bfloat16"),
    "order of pixels": Setup(order="rows"),
    "scale of inputs": Setup(scale=1.0),
}

# --- Data: digits, and the same with noise --------------------------------------------


def load(scale=16.0):
    """Images (n, 8, 8), in [0, 1] if the scale is right: 1,500 and 297."""
    return [images * np.float32(16 / scale) for images, _ in study.digits()]


def noisy(images, rng):
    return (images + NOISE * rng.normal(size=images.shape)).astype(np.float32)


def test_pair(setup, seed):
    """Test images as the network gets them, and without noise, in [0, 1]."""
    noise = noisy(np.zeros((297, 8, 8)), np.random.default_rng(seed))
    return load(setup.scale)[1] + noise, load()[1]


# --- The network: 16 cells of 2 x 2 pixels --------------------------------------------


def in_cells(images):
    """Pixels (n, 8, 8) by the cell they lie in: (n, 16, 4)."""
    parts = images.reshape(-1, 4, 2, 4, 2).transpose(0, 1, 3, 2, 4)
    return parts.reshape(-1, 16, 4)


def from_cells(cells):
    """The way back: (n, 16, 4) to (n, 8, 8)."""
    parts = cells.reshape(-1, 4, 4, 2, 2).transpose(0, 1, 3, 2, 4)
    return parts.reshape(-1, 8, 8)


def in_rows(images):
    """As many pixels for each cell, and others: four that are neighbors in a row."""
    return images.reshape(-1, 16, 4)


ORDERS = {"cells": in_cells, "rows": in_rows}


def init(key, width):
    one, two, three = jax.random.split(key, 3)

    def weight(key, m, n):
        return jax.random.normal(key, (m, n)) / jnp.sqrt(m)

    return {
        "patch": weight(one, 4, width),
        "position": jnp.zeros((16, width)),
        "hidden": weight(two, 2 * width, width),
        "out": weight(three, width, 4),
    }


def denoise(params, images, order):
    """Noisy images (n, 8, 8) to clean ones, cell by cell.

    The result for a cell depends on the pixels of that cell and on the mean over all
    cells.
    """
    cells = ORDERS[order](images)
    seen = jax.nn.relu(cells @ params["patch"] + params["position"])
    everywhere = jnp.broadcast_to(seen.mean(axis=1, keepdims=True), seen.shape)
    joined = jnp.concatenate([seen, everywhere], axis=-1)
    return from_cells(jax.nn.relu(joined @ params["hidden"]) @ params["out"])


def loss(params, order, images, clean):
    return ((denoise(params, images, order) - clean) ** 2).mean()


# --- Training -----------------------------------------------------------------------


def start(setup, width, seed):
    """Weights of the setup's type, and the optimizer state."""
    params = jax.jit(init, static_argnums=1)(jax.random.key(seed), width)
    params = jax.tree.map(lambda p: p.astype(setup.dtype), params)
    return params, optax.adam(RATE).init(params)


def make_step(setup):
    @jax.jit
    def step(params, opt_state, images, clean):
        differentiate = jax.value_and_grad(loss)
        value, grads = differentiate(params, setup.order, images, clean)
        updates, opt_state = optax.adam(RATE).update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, value

    return step


def batch(images, seed, number):
    """Noisy images (BATCH, 8, 8), and without noise."""
    rng = np.random.default_rng([seed, number])
    clean = images[rng.integers(0, len(images), BATCH)]
    return noisy(clean, rng), clean


def training(setup, state, done, steps, seed):
    """Go on after `done` steps; yield after each (done, state, loss)."""
    step, images = make_step(setup), load()[0]
    for number in range(done, steps):
        *state, value = step(*state, *batch(images, seed, number))
        yield number + 1, tuple(state), value


# --- What is wrong with which fault -------------------------------------------------


def noise_removed(params, setup, seed):
    images, clean = test_pair(setup, seed)
    return share_removed(denoise(params, images, setup.order), clean)


def share_removed(images, clean):
    """The share of the noise that is gone; 0 for doing nothing."""
    return 1 - float(((images - clean) ** 2).mean()) / NOISE**2


def removed_by_linear_map(seed):
    """What the best linear map removes, from mean and covariance of the training."""
    x = load()[0].reshape(-1, 64)
    mean, covariance = x.mean(axis=0), np.cov(x.T)
    best = np.linalg.solve(covariance + NOISE**2 * np.eye(64), covariance)
    images, clean = test_pair(Setup(), seed)
    cleaned = mean + (images.reshape(-1, 64) - mean) @ best
    return share_removed(cleaned.reshape(-1, 8, 8), clean)


def weights_moved(params, opt_state, setup, seed):
    """The share of the weights that one more step changes."""
    after, _, _ = make_step(setup)(params, opt_state, *batch(load()[0], seed, 0))
    same = [
        np.asarray(a == b).ravel()
        for a, b in zip(jax.tree.leaves(params), jax.tree.leaves(after), strict=True)
    ]
    return 1 - float(np.concatenate(same).mean())


def dependence(params, order):
    """How much pixel i of the result depends on pixel j of the image: (64, 64)."""
    images = jnp.asarray(load()[0][:32])
    jacobians = jax.vmap(
        jax.jacobian(lambda image: denoise(params, image[None], order)[0])
    )(images)
    return np.asarray(abs(jacobians).mean(axis=0).reshape(64, 64), np.float32)


def own_cell_first(params, order):
    """The share of pixels that depend most on a pixel of the cell they lie in."""
    most = dependence(params, order).argmax(axis=1)
    cell = np.broadcast_to(np.arange(16)[:, None], (16, 4))
    lies_in = np.asarray(from_cells(cell)).ravel()
    return float((lies_in[most] == lies_in).mean())


def scale_apart(setup, seed):
    """How many times larger the test inputs are than those of training."""
    trained, _ = batch(load()[0], seed, 0)
    return float(test_pair(setup, seed)[0].std() / trained.std())


# --- The program --------------------------------------------------------------------


def fit(name, setup, options, width):
    """Train one setup; its last state and losses."""
    steps, seed = options.settings["steps"], options.seed

    def rest(state, done):
        return training(setup, state, done, steps, seed)

    return study.fit(name, start(setup, width, seed), rest, steps, options, EVERY)


def examine(state, setup, seed):
    """The result, and one figure for each fault."""
    params, opt_state = state
    return {
        "noise removed": noise_removed(params, setup, seed),
        "weights moved": weights_moved(params, opt_state, setup, seed),
        "own cell first": own_cell_first(params, setup.order),
        "scale of test": scale_apart(setup, seed),
    }


def draw(losses, jacobians, path):
    """The losses, and which pixel depends on which, as it should and as it does not."""
    figure, grid = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    for i, (name, curve) in enumerate(losses.items()):
        # The last one lies on the first.
        steps = 20 * np.arange(1, len(curve) + 1)
        grid[0].semilogy(steps, curve, linewidth=4 - i, label=name)
    grid[0].set(xlabel="step", ylabel="loss of a training batch")
    grid[0].legend(fontsize="small")
    for axes, (name, picture) in zip(grid[1:], jacobians.items(), strict=True):
        axes.imshow(picture, vmax=np.quantile(picture, 0.99))
        axes.set(title=name, xlabel="input pixel", ylabel="output pixel")
    study.save_figure(figure, path)


def run(options, size):
    results, losses, jacobians = {}, {}, {}
    for name, setup in SETUPS.items():
        state, losses[name] = fit(name, setup, options, size.width)
        results[name] = examine(state, setup, options.seed)
        if name in ("working", "order of pixels"):
            jacobians[name] = dependence(state[0], setup.order)
    draw(losses, jacobians, options.output / "faults.png")
    study.print_table(results)
    by_formula = removed_by_linear_map(options.seed)
    print(f"noise removed by the best linear map: {by_formula:.2f}")
    return {**results, "linear map": {"noise removed": by_formula}}


def main():
    study.main(run, __doc__, SIZES)


if __name__ == "__main__":
    main()
