"""A model that does not learn: three faults, how each shows, and how it is found.

A network takes noise off handwritten digits. Then three faults are planted, one at a
time, of which none raises an error: weights in bfloat16 at a small rate, pixels in
another order than the one they belong in, and test inputs that are not scaled as the
training's are. Each lowers the result; and for each there is a figure that is wrong
for this fault alone, which a test of one line would have checked.

    python faults.py
    python faults.py --size large --seed 1 --output elsewhere
"""

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from sklearn.datasets import load_digits

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
    order: str = "cells"  # in which pixels enter the network
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
    images = (load_digits().images / scale).astype(np.float32)
    return images[:1500], images[1500:]


def noisy(images, rng):
    return (images + NOISE * rng.normal(size=images.shape)).astype(np.float32)


def test_pair(setup, seed):
    """Test images as they enter the network, and without noise, in [0, 1]."""
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
        "look": weight(one, 4, width),
        "places": jnp.zeros((16, width)),
        "join": weight(two, 2 * width, width),
        "leave": weight(three, width, 4),
    }


def denoise(params, images, order):
    """Noisy images (n, 8, 8) to clean ones, cell by cell.

    What leaves for a cell comes from the pixels that entered for it, and from the
    mean over all cells.
    """
    cells = ORDERS[order](images)
    seen = jax.nn.relu(cells @ params["look"] + params["places"])
    everywhere = jnp.broadcast_to(seen.mean(axis=1, keepdims=True), seen.shape)
    joined = jnp.concatenate([seen, everywhere], axis=-1)
    return from_cells(jax.nn.relu(joined @ params["join"]) @ params["leave"])


def loss(params, order, images, clean):
    return ((denoise(params, images, order) - clean) ** 2).mean()


# --- Training -----------------------------------------------------------------------


def start(setup, width, seed):
    """Weights of the setup's type, and Adam's memory of them."""
    params = jax.jit(init, static_argnums=1)(jax.random.key(seed), width)
    params = jax.tree.map(lambda p: p.astype(setup.dtype), params)
    return params, optax.adam(RATE).init(params)


def make_step(setup):
    @jax.jit
    def step(params, memory, images, clean):
        differentiate = jax.value_and_grad(loss)
        value, gradient = differentiate(params, setup.order, images, clean)
        moves, memory = optax.adam(RATE).update(gradient, memory)
        return optax.apply_updates(params, moves), memory, value

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
    """The share of the noise that is gone from test images; 0 for doing nothing."""
    images, clean = test_pair(setup, seed)
    error = ((denoise(params, images, setup.order) - clean) ** 2).mean()
    return 1 - float(error) / NOISE**2


def weights_moved(params, memory, setup, seed):
    """The share of the weights that one more step changes."""
    after, _, _ = make_step(setup)(params, memory, *batch(load()[0], seed, 0))
    same = [
        np.asarray(a == b).ravel()
        for a, b in zip(jax.tree.leaves(params), jax.tree.leaves(after), strict=True)
    ]
    return 1 - float(np.concatenate(same).mean())


def dependence(params, order):
    """How much pixel i of the result depends on pixel j of the image: (64, 64)."""
    images = jnp.asarray(load()[0][:32])
    slopes = jax.vmap(
        jax.jacobian(lambda image: denoise(params, image[None], order)[0])
    )(images)
    return np.asarray(abs(slopes).mean(axis=0).reshape(64, 64), np.float32)


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


def save(path, state, notes):
    """Write all, then rename: a stop in between leaves the earlier file whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name("checkpoint.tmp")
    with half.open("wb") as file:
        np.savez(file, *jax.tree.leaves(state), notes=json.dumps(notes))
    half.replace(path)


def restore(path, state, notes):
    """What was saved; `state` and `notes` as given if nothing was."""
    if not path.exists():
        print(f"No checkpoint {path} yet: this begins with the first step.")
        return state, notes
    like, structure = jax.tree.flatten(state)
    try:
        with path.open("rb") as raw, np.load(raw) as file:
            saved = json.loads(str(file["notes"]))
            if (other := saved["settings"]) != notes["settings"]:
                sys.exit(f"The run in {path} has {other}: go on with these.")
            # NumPy reads bfloat16 as two bytes without a meaning.
            arrays = [file[f"arr_{i}"].view(leaf.dtype) for i, leaf in enumerate(like)]
    except Exception as error:  # NumPy, zipfile and json each have their own
        reason = str(error).partition("\n")[0]
        sys.exit(f"Cannot read {path}: {reason}. Begin without --resume.")
    print(f"Going on after step {saved['step']}.")
    return jax.tree.unflatten(structure, map(jnp.asarray, arrays)), saved


# --- The program --------------------------------------------------------------------


def fit(name, setup, settings, width, folder, resume):
    """Train one setup with a progress bar; its state and losses."""
    path, steps = folder / f"{name.replace(' ', '-')}.checkpoint", settings["steps"]
    state, notes = start(setup, width, settings["seed"]), {"settings": settings}
    notes |= {"step": 0, "losses": []}
    if resume:
        state, notes = restore(path, state, notes)
    columns = "{task.description:16}", BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TimeRemainingColumn(), "{task.fields[said]}") as bar:
        task = bar.add_task(name, total=steps, completed=notes["step"], said="")
        rest = training(setup, state, notes["step"], steps, settings["seed"])
        for done, state, value in rest:
            if done % 20 == 0:
                notes["losses"].append(float(value))
                bar.update(task, completed=done, said=f"loss {value:.4f}")
            if done % EVERY == 0 or done == steps:
                notes["step"] = done
                save(path, state, notes)
    return state, notes["losses"]


def examine(state, setup, seed):
    """The result, and one figure for each fault."""
    params, memory = state
    return {
        "noise removed": noise_removed(params, setup, seed),
        "weights moved": weights_moved(params, memory, setup, seed),
        "own cell first": own_cell_first(params, setup.order),
        "scale of test": scale_apart(setup, seed),
    }


def draw(losses, slopes, path):
    """The losses, and which pixel depends on which, as it should and as it does not."""
    figure, grid = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    for i, (name, curve) in enumerate(losses.items()):
        # The last one lies on the first.
        steps = 20 * np.arange(1, len(curve) + 1)
        grid[0].semilogy(steps, curve, linewidth=4 - i, label=name)
    grid[0].set(xlabel="step", ylabel="loss of a training batch")
    grid[0].legend(fontsize="small")
    for axes, (name, picture) in zip(grid[1:], slopes.items(), strict=True):
        axes.imshow(picture, vmax=np.quantile(picture, 0.99))
        axes.set(title=name, xlabel="pixel that enters", ylabel="pixel that leaves")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def run(options):
    size, seed = SIZES[options.size], options.seed
    print(f"{options.size}: {size.takes}")
    options.output.mkdir(parents=True, exist_ok=True)
    settings = {"size": options.size, "steps": options.steps or size.steps}
    settings |= {"seed": seed}
    results, losses, slopes = {}, {}, {}
    for name, setup in SETUPS.items():
        given = settings, size.width, options.output, options.resume
        state, losses[name] = fit(name, setup, *given)
        results[name] = examine(state, setup, seed)
        if name in ("working", "order of pixels"):
            slopes[name] = dependence(state[0], setup.order)
    draw(losses, slopes, options.output / "faults.png")
    (options.output / "results.json").write_text(json.dumps(results, indent=1))
    print(f"{'':17}" + "".join(f"{what:>17}" for what in results["working"]))
    for name, row in results.items():
        print(f"{name:17}" + "".join(f"{figure:17.2f}" for figure in row.values()))


def positive(text):
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text} is not a positive whole number")
    return int(text)


def seed_number(text):
    if not text.isdecimal() or int(text) >= 2**31:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0 to 2**31 - 1")
    return int(text)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--output", type=Path, default=Path("faults"), help="where to write")
    takes = "; ".join(f"{name}: {size.takes}" for name, size in SIZES.items())
    add("--size", choices=SIZES, default="small", help=f"small, if not said; {takes}")
    add("--steps", type=positive, help="at most, if not those of the size")
    add("--seed", type=seed_number, default=0, help="of weights and batches")
    add("--resume", action="store_true", help="go on with a run that was stopped")
    return parser.parse_args()


def main():
    options = read_arguments()
    try:
        run(options)
    except KeyboardInterrupt:
        again = sys.argv if options.resume else [*sys.argv, "--resume"]
        sys.exit(f"Stopped. To go on from here: python {shlex.join(again)}")
    except OSError as error:
        sys.exit(f"Cannot write to {options.output}: {error}")


if __name__ == "__main__":
    main()
