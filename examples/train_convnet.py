# /// script
# dependencies = [
#     "jax", "matplotlib", "optax", "orbax-checkpoint", "rich", "scikit-learn",
# ]
# ///
"""Training as people do it: a convolutional network that reads handwritten digits.

Around one compiled step stands what a training needs: shuffled batches that are made
ahead of time, Optax with a schedule, bfloat16 arithmetic on float32 weights, a
validation set that ends the training and picks the weights, and checkpoints of
Orbax from which a stopped run goes on bit for bit.

    python train_convnet.py
    python train_convnet.py --size large --seed 1 --output elsewhere
"""

import logging
import shutil
import signal
import sys
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count, islice, pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
import orbax.checkpoint as ocp
import study
from jax import lax

CLASSES, BATCH = 10, 64
EVERY = 20  # steps from one evaluation of the validation set to the next
PATIENCE = 15  # evaluations without a better one, after which the training ends


class Size(NamedTuple):
    steps: int
    channels: tuple[int, ...]
    takes: str


SIZES = {
    "tiny": Size(240, (16, 32), "about 10 seconds, to see that it runs"),
    "small": Size(600, (32, 64), "about 15 seconds and 600 MB on two cores"),
    "large": Size(4000, (64, 128, 256), "about 4 minutes on two cores"),
}


# --- Data ---------------------------------------------------------------------


def load(seed):
    """Images (n, 8, 8, 1) in [0, 1] and labels (n,), for training, validation, test.

    The test images are the last 297, by other writers than most of the rest. The
    seed draws the 250 for validation from the remaining 1,500.
    """
    (x, y), test = [(images[..., None], labels) for images, labels in study.digits()]
    order = np.random.default_rng(seed).permutation(1500)
    rows = {"train": order[250:], "validation": order[:250]}
    return {part: (x[r], y[r]) for part, r in rows.items()} | {"test": test}


def shift(x, rng):
    """Each image (8, 8, 1) moved by up to a pixel in each direction, at random."""
    edged = np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)])
    moved = np.lib.stride_tricks.sliding_window_view(edged, (8, 8), axis=(1, 2))
    down, right = rng.integers(0, 3, (2, len(x)))
    return moved[np.arange(len(x)), down, right].transpose(0, 2, 3, 1)


def batches(x, y, seed, first=0, size=BATCH, shifted=False):
    """Batch after batch, from batch `first` on, without end.

    What is in a batch depends on the seed and the batch's number alone, so a resumed
    run sees what the uninterrupted one would have seen. The last batch of an epoch is
    short; it is filled up with images of weight 0, so that all have one shape.
    """
    per_epoch = -(-len(x) // size)
    for number in count(first):
        epoch, part = divmod(number, per_epoch)
        order = np.random.default_rng([seed, epoch]).permutation(len(x))
        rows = order[part * size : (part + 1) * size]
        images, fill = x[rows], size - len(rows)
        if shifted:
            images = shift(images, np.random.default_rng([seed, epoch, part]))
        yield {
            "x": np.pad(images, [(0, fill), (0, 0), (0, 0), (0, 0)]),
            "y": np.pad(y[rows], (0, fill)),
            "weight": np.pad(np.ones(len(rows), np.float32), (0, fill)),
        }


def prefetch(batches, ahead=2):
    """The same batches, made by another thread while the device works."""
    with ThreadPoolExecutor(max_workers=1) as loader:

        def load_one():
            return jax.device_put(next(batches))

        waiting = deque(loader.submit(load_one) for _ in range(ahead))
        while True:
            waiting.append(loader.submit(load_one))
            yield waiting.popleft().result()


# --- Models -----------------------------------------------------------------------


class Model(NamedTuple):
    init: Any  # from a key to the parameters
    forward: Any  # from the parameters and images (n, 8, 8, 1) to scores (n, 10)
    rate: float  # the highest rate of its training
    shifted: bool = False  # whether moved images do it good


def normal(key, shape):
    """Weights that keep the size of what passes through: variance 2 / inputs."""
    return jnp.sqrt(2 / np.prod(shape[:-1])) * jax.random.normal(key, shape)


def layer(key, *shape):
    return {"w": normal(key, shape), "b": jnp.zeros(shape[-1])}


def linear():
    """From the pixels straight to the ten scores."""

    def init(key):
        return layer(key, 64, CLASSES)

    def forward(params, x):
        return x.reshape(len(x), -1) @ params["w"] + params["b"]

    return Model(init, forward, 2e-2)


def plain(hidden=64):
    """One hidden layer, as in the earlier programs on digits."""

    def init(key):
        one, two = jax.random.split(key)
        return [layer(one, 64, hidden), layer(two, hidden, CLASSES)]

    def forward(params, x):
        one, two = params
        h = jnp.tanh(x.reshape(len(x), -1) @ one["w"] + one["b"])
        return h @ two["w"] + two["b"]

    return Model(init, forward, 1e-2)


def convolve(x, w, stride):
    """Images (n, h, w, in) and filters (3, 3, in, out) to (n, h', w', out)."""
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(
        x, w, (stride, stride), "SAME", dimension_numbers=layout
    )


def convnet(channels):
    """Convolutions, of which all but the first halve the image, then a dense layer."""
    side = 8 // 2 ** (len(channels) - 1)

    def init(key):
        *keys, last = jax.random.split(key, len(channels) + 1)
        sizes = pairwise((1, *channels))
        convs = [layer(k, 3, 3, m, n) for k, (m, n) in zip(keys, sizes, strict=True)]
        return {"convs": convs, "dense": layer(last, side**2 * channels[-1], CLASSES)}

    def forward(params, x):
        for i, conv in enumerate(params["convs"]):
            x = jax.nn.relu(convolve(x, conv["w"], 1 if i == 0 else 2) + conv["b"])
        dense = params["dense"]
        return x.reshape(len(x), -1) @ dense["w"] + dense["b"]

    return Model(init, forward, 3e-3, shifted=True)


def computing_in(dtype, model):
    """The same model, which computes in `dtype`; its parameters stay in float32."""

    def forward(params, x):
        params, x = jax.tree.map(lambda a: a.astype(dtype), (params, x))
        return model.forward(params, x).astype(jnp.float32)

    return model._replace(forward=forward)


# --- Optimizers -----------------------------------------------------------------


def schedule(steps, peak):
    """The rate at each step: up in a straight line, then down along a cosine."""
    return optax.warmup_cosine_decay_schedule(0.0, peak, steps // 10, steps)


def adam(rate, b1=0.9, b2=0.999, eps=1e-8):
    """`optax.adam` in full: a pair of functions, as every optimizer of Optax is."""

    def init(params):
        zeros = jax.tree.map(jnp.zeros_like, params)
        return {"step": jnp.zeros((), jnp.int32), "mean": zeros, "square": zeros}

    def update(grads, opt_state, params=None):
        step = opt_state["step"] + 1
        mean = jax.tree.map(
            lambda m, g: b1 * m + (1 - b1) * g, opt_state["mean"], grads
        )
        square = jax.tree.map(
            lambda s, g: b2 * s + (1 - b2) * g**2, opt_state["square"], grads
        )

        def move(m, s):
            m, s = m / (1 - b1**step), s / (1 - b2**step)
            return -rate(opt_state["step"]) * m / (jnp.sqrt(s) + eps)

        updates = jax.tree.map(move, mean, square)
        return updates, {"step": step, "mean": mean, "square": square}

    return optax.GradientTransformation(init, update)


# --- Training -------------------------------------------------------------------


class State(NamedTuple):
    """All that a training has to remember."""

    params: Any
    opt_state: Any  # the optimizer's
    best: Any  # the parameters with the lowest validation loss so far
    best_loss: jax.Array
    stale: jax.Array  # evaluations since


def make_optimizer(model, steps):
    return optax.adam(schedule(steps, model.rate))


def start(model, steps, seed):
    params = jax.jit(model.init)(jax.random.key(seed))
    opt_state = make_optimizer(model, steps).init(params)
    return State(params, opt_state, params, jnp.float32(jnp.inf), jnp.int32(0))


def loss(forward, params, batch):
    """Mean negative log-likelihood of the images that count."""
    scores = forward(params, batch["x"])
    each = optax.softmax_cross_entropy_with_integer_labels(scores, batch["y"])
    return (batch["weight"] * each).sum() / batch["weight"].sum()


def make_step(forward, optimizer):
    """The compiled step: (params, opt_state, batch) to (params, opt_state, loss)."""

    @jax.jit
    def step(params, opt_state, batch):
        value, grads = jax.value_and_grad(loss, 1)(forward, params, batch)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    return step


def make_evaluate(forward):
    """The compiled evaluation: (params, x, y) to the mean loss and the accuracy."""

    @jax.jit
    def evaluate(params, x, y):
        batch = {"x": x, "y": y, "weight": jnp.ones(len(y))}
        right = is_right(forward, params, x, y)
        return loss(forward, params, batch), right.mean()

    return evaluate


@partial(jax.jit, static_argnums=0)
def is_right(forward, params, x, y):
    """Which images (n, 8, 8, 1) are read as their label: booleans (n,)."""
    return forward(params, x).argmax(axis=1) == y


def track_best(state, value):
    """The state after the validation loss `value`: what is best, and for how long."""
    if value < state.best_loss:
        return state._replace(
            best=state.params, best_loss=value, stale=jnp.zeros_like(state.stale)
        )
    return state._replace(stale=state.stale + 1)


def training(state, done, steps, model, data, seed):
    """Go on after `done` steps; yield at each evaluation (done, state, figures).

    The figures are the loss of the last batch, and loss and accuracy on validation.
    """
    step = make_step(model.forward, make_optimizer(model, steps))
    evaluate = make_evaluate(model.forward)
    images = batches(*data["train"], seed, done, shifted=model.shifted)
    stream = prefetch(images)
    while done < steps and state.stale < PATIENCE:
        part = min(EVERY, steps - done)
        for batch in islice(stream, part):
            params, opt_state, value = step(state.params, state.opt_state, batch)
            state = state._replace(params=params, opt_state=opt_state)
        done += part
        validation, accuracy = evaluate(state.params, *data["validation"])
        state = track_best(state, validation)
        yield done, state, [float(value), float(validation), float(accuracy)]


# --- Checkpoints ------------------------------------------------------------------


def checkpoints_in(folder):
    """Orbax's manager, which keeps the latest checkpoint, and none half written."""
    options = ocp.CheckpointManagerOptions(
        max_to_keep=1, enable_async_checkpointing=False
    )
    return ocp.CheckpointManager(folder.resolve(), options=options)


@contextmanager
def interrupts_held_back():
    """An interrupt within the block comes after it: Orbax works in several threads."""
    came = []
    usual = signal.signal(signal.SIGINT, lambda *_: came.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if came:
        raise KeyboardInterrupt


def save(checkpoints, step, state, notes):
    # Asked beforehand, since Orbax tells of a full disk in tracebacks of its threads.
    needed = 2 * sum(leaf.nbytes for leaf in jax.tree.leaves(state))
    if shutil.disk_usage(checkpoints.directory).free < needed:
        raise OSError(f"a checkpoint needs {needed:,} bytes, and the disk is full")
    args = ocp.args
    parts = {"state": args.StandardSave(state), "notes": args.JsonSave(notes)}
    try:
        with interrupts_held_back():
            checkpoints.save(step, args=args.Composite(**parts))
    except ValueError as error:  # so Orbax reports what the file system refused
        raise OSError(str(error).partition("\n")[0]) from error


def restore(checkpoints, state, notes):
    """What to go on from: step, state and notes; as given if nothing was saved."""
    args, step, folder = ocp.args, checkpoints.latest_step(), checkpoints.directory
    if step is None:
        print(f"No checkpoint in {folder} yet: this begins with the first step.")
        return 0, state, notes
    parts = {"notes": args.JsonRestore()}
    try:
        with interrupts_held_back():
            saved = checkpoints.restore(step, args=args.Composite(**parts))
            study.check_settings(folder, saved.notes, notes)
            parts["state"] = args.StandardRestore(state)
            saved = checkpoints.restore(step, args=args.Composite(**parts))
    except Exception as error:  # Orbax has no class of its own for a broken file
        reason = str(error).partition("\n")[0]
        sys.exit(f"Cannot read {folder / str(step)}: {reason}. Begin without --resume.")
    print(f"Going on after step {step}.")
    return step, saved.state, saved.notes


def forget(checkpoints):
    """Delete what an earlier run has left."""
    for step in checkpoints.all_steps():
        checkpoints.delete(step)


# --- The program ------------------------------------------------------------------


def fit(name, model, data, settings, checkpoints=None, resume=False):
    """Train a model with a progress bar; return its last state and its curves."""
    steps, seed = settings["steps"], settings["seed"]
    begin = 0, start(model, steps, seed), {"settings": settings, "curves": []}
    first, state, notes = restore(checkpoints, *begin[1:]) if resume else begin
    with study.progress(name, steps, first) as show:
        began = time.perf_counter()
        rest = training(state, first, steps, model, data, seed)
        for done, state, figures in rest:
            notes["curves"].append([done, *figures])
            speed = BATCH * (done - first) / (time.perf_counter() - began)
            show(done, f"loss {figures[0]:.3f}, {speed:,.0f} images/s")
            if checkpoints:
                save(checkpoints, done, state, notes)
    return state, notes["curves"]


def difference_from_optax(model, data, steps=20):
    """The largest difference that any weight has after any of some steps."""
    mine, theirs = (make(lambda step: 1e-3) for make in (adam, optax.adam))
    params = jax.jit(model.init)(jax.random.key(0))
    runs, largest = [(params, mine.init(params)), (params, theirs.init(params))], 0.0
    compiled = [make_step(model.forward, optimizer) for optimizer in (mine, theirs)]
    for batch in islice(batches(*data["train"], seed=0), steps):
        runs = [step(*r, batch)[:2] for step, r in zip(compiled, runs, strict=True)]
        apart = jax.tree.map(lambda a, b: abs(a - b).max(), runs[0][0], runs[1][0])
        largest = max(largest, *map(float, jax.tree.leaves(apart)))
    return largest


def draw(curves, path):
    """The loss of training and validation, and the accuracy, against the step."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    steps, train, validation, accuracy = np.transpose(curves)
    left.semilogy(steps, train, label="training batch")
    left.semilogy(steps, validation, label="validation")
    left.set(xlabel="step", ylabel="loss")
    left.legend()
    right.plot(steps, accuracy)
    right.set(xlabel="step", ylabel="validation accuracy")
    study.save_figure(figure, path)


def run(options, size):
    # What Orbax logs of an error, it raises as well.
    logging.getLogger("absl").setLevel(logging.CRITICAL)
    data, results, right = load(options.seed), {}, {}
    models = {"convnet": convnet(size.channels), "plain": plain(), "linear": linear()}
    with checkpoints_in(options.output / "checkpoints") as checkpoints:
        if not options.resume:
            forget(checkpoints)
        for name, model in models.items():
            model = computing_in(options.dtype, model)
            # The others take a moment; only this one is worth a checkpoint.
            where = (checkpoints, options.resume) if name == "convnet" else ()
            state, curves = fit(name, model, data, options.settings, *where)
            draw(curves, options.output / f"{name}.png")
            right[name] = {
                part: np.asarray(is_right(model.forward, state.best, *data[part]))
                for part in ("validation", "test")
            }
    right["neighbors"] = {
        part: study.neighbors(data["train"], data[part], 3)
        for part in ("validation", "test")
    }
    for name, parts in right.items():
        ahead = right["convnet"]["test"] - parts["test"].astype(float)
        results[name] = {part: float(images.mean()) for part, images in parts.items()}
        gap = study.mean_and_error(ahead)
        results[name] |= zip(("convnet ahead", "its error"), gap, strict=True)
    study.print_table(results)
    apart = difference_from_optax(models["convnet"], data)
    print(f"Adam as written here and Optax's: at most {apart:.0e} apart in 20 steps")
    return results


def main():
    study.main(run, __doc__, SIZES, dtype=["bfloat16", "float32"])


if __name__ == "__main__":
    main()
