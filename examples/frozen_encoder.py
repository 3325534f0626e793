"""A frozen encoder: learned on printed characters, used to read handwriting.

An encoder learns to tell letters and digits apart, drawn in the fonts that come with
Matplotlib. Then it is frozen: a new last layer on its features learns handwritten
digits from a few labels a class. It is compared with training everything from
nothing with the same labels, and with fine-tuning all of it. The encoder is an
object of Flax; a jitted step calls it, and does not change a bit of it.

    python frozen_encoder.py
    python frozen_encoder.py --size large --seed 1 --output elsewhere
"""

import argparse
import json
import shlex
import string
import sys
import time
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import optax
from flax import nnx
from PIL import Image, ImageDraw, ImageFont
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TimeRemainingColumn,
    track,
)
from sklearn.datasets import load_digits

CHARACTERS = string.digits + string.ascii_letters
DIGITS, BATCH = 10, 128
LABELS = 2, 5, 20  # of each class
EVERY = 50  # steps from one checkpoint to the next


class Size(NamedTuple):
    steps: int
    channels: tuple[int, int, int]
    images: int  # of printed characters
    draws: int  # of the few labels
    takes: str


SIZES = {
    "tiny": Size(150, (8, 16, 32), 3000, 1, "half a minute, to see that it runs"),
    "small": Size(
        1000, (32, 64, 128), 15000, 3, "about 2 minutes and 600 MB on two cores"
    ),
    "large": Size(5000, (64, 128, 256), 100_000, 5, "an hour on two cores"),
}

# --- Data: printed characters, made here, and handwritten digits, real ----------------

FONTS = [
    *("DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-Oblique", "DejaVuSansMono"),
    *("DejaVuSerif", "DejaVuSerif-Bold", "DejaVuSerif-Italic", "STIXGeneral"),
    *("STIXGeneralBol", "STIXGeneralItalic", "cmr10", "cmss10", "cmtt10", "cmb10"),
]


@cache
def glyph(character, font):
    """A character in the middle of an image of 64 x 64, and its height in it."""
    folder = Path(matplotlib.get_data_path(), "fonts", "ttf")
    type_ = ImageFont.truetype(folder / f"{font}.ttf", 40)
    image = Image.new("L", (64, 64))
    pen = ImageDraw.Draw(image)
    left, top, right, bottom = pen.textbbox((0, 0), character, font=type_)
    middle = 32 - (left + right) / 2, 32 - (top + bottom) / 2
    pen.text(middle, character, fill=255, font=type_)
    return image, bottom - top


def printed(rng):
    """One character (8, 8) in [0, 1], turned, slanted and stretched, and its number."""
    label = rng.integers(len(CHARACTERS))
    image, height = glyph(CHARACTERS[label], FONTS[rng.integers(len(FONTS))])
    turn, slant = rng.normal(0, [0.15, 0.25])
    tall = height / 32 * rng.uniform(0.9, 1.15)
    wide = tall * rng.uniform(0.6, 1.1)
    a, b = np.cos(turn) * wide, (slant - np.sin(turn)) * tall
    c, d = np.sin(turn) * wide, np.cos(turn) * tall
    x, y = rng.normal(16, [1.5, 1.0])
    place = (a, b, 32 - a * x - b * y, c, d, 32 - c * x - d * y)
    moved = image.transform((32, 32), Image.AFFINE, place, Image.BILINEAR)
    ink = np.asarray(moved) > rng.uniform(60, 190)
    # As the handwritten ones were made: the share of ink in squares of 4 x 4.
    return ink.reshape(8, 4, 8, 4).mean(axis=(1, 3)), label


def load_printed(count, seed):
    """Printed characters (n, 8, 8, 1) and their numbers (n,)."""
    rng = np.random.default_rng(seed)
    images, labels = zip(*(printed(rng) for _ in range(count)), strict=True)
    return np.float32(images)[..., None], np.int32(labels)


def load_written():
    """Handwritten digits (n, 8, 8, 1), labels (n,): 1,500 to draw from, 297 to test."""
    digits = load_digits()
    x = (digits.images / 16).astype(np.float32)[..., None]
    y = digits.target.astype(np.int32)
    return (x[:1500], y[:1500]), (x[1500:], y[1500:])


def few(data, count, seed):
    """Some images of each class, and their labels."""
    (x, y), rng = data, np.random.default_rng(seed)
    rows = [
        rng.choice(np.flatnonzero(y == c), count, replace=False) for c in range(DIGITS)
    ]
    rows = np.concatenate(rows)
    return x[rows], y[rows]


# --- The encoder, and networks with it -----------------------------------------------


class Encoder(nnx.Module):
    """Images (n, 8, 8, 1) to features (n, 128)."""

    def __init__(self, channels, rngs):
        one, two, three = channels
        conv = partial(nnx.Conv, kernel_size=(3, 3), rngs=rngs)
        convs = [conv(1, one), conv(one, two, strides=2), conv(two, three, strides=2)]
        self.convs = nnx.List(convs)
        self.dense = nnx.Linear(2 * 2 * three, 128, rngs=rngs)

    def __call__(self, x):
        for conv in self.convs:
            x = jax.nn.relu(conv(x))
        return jax.nn.relu(self.dense(x.reshape(len(x), -1)))


class Pixels(nnx.Module):
    """No encoder: images (n, 8, 8, 1) to their pixels (n, 64)."""

    def __call__(self, x):
        return x.reshape(len(x), -1)


class Reader(nnx.Module):
    """An encoder and a last layer: images (n, 8, 8, 1) to scores (n, classes)."""

    def __init__(self, encoder, features, classes, rngs):
        self.encoder = encoder
        # From zero: no class is preferred before there is a reason.
        zeros = nnx.initializers.zeros_init()
        self.last = nnx.Linear(features, classes, kernel_init=zeros, rngs=rngs)

    def __call__(self, x):
        return self.last(self.encoder(x))


# What is trained: all weights, or those of the last layer.
EVERYTHING = nnx.Param
LAST_LAYER = nnx.All(nnx.Param, nnx.PathContains("last"))


# Kept, so that another training of the same kind need not compile again.
@cache
def make_adam(rate, steps):
    return optax.adamw(optax.cosine_decay_schedule(rate, steps), weight_decay=1e-2)


@cache
def make_step(trained):
    """A compiled step that differentiates and changes only what the filter chooses."""

    @nnx.jit
    def step(reader, memory, x, y):
        def loss(reader):
            scores = reader(x)
            return optax.softmax_cross_entropy_with_integer_labels(scores, y).mean()

        differentiate = nnx.value_and_grad(loss, argnums=nnx.DiffState(0, trained))
        value, gradient = differentiate(reader)
        memory.update(reader, gradient)
        return value

    return step


def training(reader, memory, trained, done, steps, data, seed):
    """Go on after `done` steps; change reader and memory; yield (done, loss)."""
    step, (x, y) = make_step(trained), data
    for number in range(done, steps):
        rng = np.random.default_rng([seed, number])
        rows = rng.integers(0, len(x), min(BATCH, len(x)))
        yield number + 1, step(reader, memory, x[rows], y[rows])


@nnx.jit
def scores_of(reader, x):
    return reader(x)


def accuracy(reader, data):
    return float(
        (np.asarray(scores_of(reader, data[0])).argmax(axis=1) == data[1]).mean()
    )


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
            arrays = [file[f"arr_{i}"] for i in range(len(like))]
    except Exception as error:  # NumPy, zipfile and json each have their own
        reason = str(error).partition("\n")[0]
        sys.exit(f"Cannot read {path}: {reason}. Begin without --resume.")
    print(f"Going on after step {saved['step']}.")
    return jax.tree.unflatten(structure, map(jnp.asarray, arrays)), saved


# --- The program --------------------------------------------------------------------


def fit_encoder(size, settings, folder, resume):
    """Train on printed characters with a progress bar; the encoder and its accuracy."""
    path, steps, seed = (
        folder / "encoder.checkpoint",
        settings["steps"],
        settings["seed"],
    )
    data = load_printed(size.images, seed)
    encoder = Encoder(size.channels, nnx.Rngs(seed))
    reader = Reader(encoder, 128, len(CHARACTERS), nnx.Rngs(seed))
    both = reader, nnx.Optimizer(reader, make_adam(2e-3, steps), wrt=EVERYTHING)
    notes = {"settings": settings, "step": 0}
    if resume:
        state, notes = restore(path, nnx.state(both), notes)
        nnx.update(both, state)
    columns = "{task.description}", BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TimeRemainingColumn(), "{task.fields[said]}") as bar:
        task = bar.add_task("encoder", total=steps, completed=notes["step"], said="")
        rest = training(*both, EVERYTHING, notes["step"], steps, data, seed)
        for done, value in rest:
            if done % EVERY == 0 or done == steps:
                save(path, nnx.state(both), {**notes, "step": done})
                bar.update(task, completed=done, said=f"loss {value:.3f}")
    return encoder, accuracy(reader, load_printed(1000, seed + 1))


def ways(trained, channels, seed):
    """How to read handwriting: an encoder, its features, and what is trained."""
    return {
        "frozen encoder": (nnx.clone(trained), 128, LAST_LAYER, 1e-3),
        "untrained encoder": (Encoder(channels, nnx.Rngs(seed)), 128, LAST_LAYER, 1e-2),
        "pixels": (Pixels(), 64, LAST_LAYER, 1e-2),
        "from nothing": (Encoder(channels, nnx.Rngs(seed)), 128, EVERYTHING, 1e-3),
        "fine-tuned": (nnx.clone(trained), 128, EVERYTHING, 1e-3),
    }


def learn_few(encoder, features, trained, rate, data, seed, steps=200):
    """A reader of digits, after training on few labels."""
    reader = Reader(encoder, features, DIGITS, nnx.Rngs(seed))
    memory = nnx.Optimizer(reader, make_adam(rate, steps), wrt=trained)
    for _ in training(reader, memory, trained, 0, steps, data, seed):
        pass
    return reader


def learn_from_few(encoder, size, seed):
    """Accuracy by labels a class and by way; and whether `encoder` is unchanged."""
    learned, test = load_written()
    before, unchanged = weights_of(encoder), True
    names = [*ways(encoder, size.channels, seed)]
    rows = {str(count): {name: [] for name in names} for count in LABELS}
    cases = [*product(LABELS, range(size.draws), names)]
    for count, draw_number, name in track(cases, "few labels"):
        data = few(learned, count, [seed, draw_number])
        way = ways(encoder, size.channels, seed)[name]
        reader = learn_few(*way, data, seed)
        rows[str(count)][name].append(accuracy(reader, test))
        if name == "frozen encoder":
            unchanged &= same(before, weights_of(reader.encoder))
    means = {
        count: {name: float(np.mean(right)) for name, right in row.items()}
        for count, row in rows.items()
    }
    return means, unchanged


def weights_of(encoder):
    return jax.tree.map(np.array, nnx.state(encoder, nnx.Param))


def same(one, other):
    equal = jax.tree.map(lambda a, b: bool((a == b).all()), one, other)
    return all(jax.tree.leaves(equal))


def step_costs(encoder, trained, rate, data):
    """Bytes that the compiled step needs for itself, Adam's bytes, and seconds."""
    reader = Reader(encoder, 128, DIGITS, nnx.Rngs(0))
    memory = nnx.Optimizer(reader, make_adam(rate, 200), wrt=trained)
    definition, state = nnx.split((reader, memory))

    @jax.jit
    def step(state, x, y):
        both = nnx.merge(definition, state)
        value = make_step(trained)(*both, x, y)
        return nnx.state(both), value

    compiled, seconds = step.lower(state, *data).compile(), []
    for _ in range(20):
        began = time.perf_counter()
        jax.block_until_ready(compiled(state, *data))
        seconds.append(time.perf_counter() - began)
    adam = sum(leaf.nbytes for leaf in jax.tree.leaves(nnx.state(memory, nnx.OptState)))
    temporary = compiled.memory_analysis().temp_size_in_bytes
    return {"temporary": temporary, "adam": adam}, float(np.median(seconds))


def draw(table, path):
    """Accuracy against labels, for each way."""
    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    for name in table["5"]:
        axes.plot([*table], [row[name] for row in table.values()], "o-", label=name)
    axes.set(xlabel="labels a class", ylabel="test accuracy on handwriting")
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def show_data(printed_images, written_images, path):
    """Some of the printed characters, above some handwritten digits."""
    figure, grid = plt.subplots(2, 12, figsize=(9, 1.8), layout="constrained")
    for row, images in zip(grid, (printed_images, written_images), strict=True):
        for axes, image in zip(row, images, strict=False):
            axes.imshow(image[..., 0], cmap="gray_r")
            axes.axis("off")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def run(options):
    size, seed = SIZES[options.size], options.seed
    print(f"{options.size}: {size.takes}")
    options.output.mkdir(parents=True, exist_ok=True)
    settings = {"size": options.size, "steps": options.steps or size.steps}
    settings |= {"seed": seed}
    encoder, read = fit_encoder(size, settings, options.output, options.resume)
    table, unchanged = learn_from_few(encoder, size, seed)
    learned, _ = load_written()
    costs, seconds = {}, {}
    for name in ("frozen encoder", "fine-tuned"):
        part, _, trained, rate = ways(encoder, size.channels, seed)[name]
        data = few(learned, 10, 0)
        costs[name], seconds[name] = step_costs(part, trained, rate, data)
    results = {"printed": read, "written": table}
    results |= {"encoder unchanged": unchanged, "costs": costs}
    (options.output / "results.json").write_text(json.dumps(results, indent=1))
    draw(table, options.output / "labels.png")
    some = load_printed(12, seed)[0]
    show_data(some, learned[0], options.output / "data.png")
    report(results, seconds)


def report(results, seconds):
    """Print what was found."""
    print(f"{len(CHARACTERS)} printed characters: {results['printed']:.3f} right")
    print(f"{'labels a class':20}" + "".join(f"{n:>8}" for n in results["written"]))
    for name in results["written"]["5"]:
        shares = (row[name] for row in results["written"].values())
        print(f"{name:20}" + "".join(f"{share:8.3f}" for share in shares))
    print(f"the frozen encoder is unchanged: {results['encoder unchanged']}")
    for name, cost in results["costs"].items():
        print(f"a step, {name}: {1e3 * seconds[name]:.2f} ms, ", end="")
        print(f"{cost['temporary']:,} bytes in between, {cost['adam']:,} of Adam's")


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
    add("--output", type=Path, default=Path("frozen_encoder"), help="where to write")
    takes = "; ".join(f"{name}: {size.takes}" for name, size in SIZES.items())
    add("--size", choices=SIZES, default="small", help=f"small, if not said; {takes}")
    add("--steps", type=positive, help="at most, if not those of the size")
    add("--seed", type=seed_number, default=0, help="of weights and batches")
    add("--resume", action="store_true", help="go on with a run that was stopped")
    return parser.parse_args()


def is_interrupt(error):
    """Whether an interrupt is behind an error.

    Between two calls of a compiled function JAX compares what is static in a module.
    That runs Python of the library, and an interrupt there comes as a ValueError.
    """
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None


def main():
    options = read_arguments()
    try:
        run(options)
    except BaseException as error:
        if is_interrupt(error):
            again = sys.argv if options.resume else [*sys.argv, "--resume"]
            sys.exit(f"Stopped. To go on from here: python {shlex.join(again)}")
        if isinstance(error, OSError):
            sys.exit(f"Cannot write to {options.output}: {error}")
        raise


if __name__ == "__main__":
    main()
