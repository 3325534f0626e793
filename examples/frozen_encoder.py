# /// script
# dependencies = [
#     "flax", "jax", "matplotlib", "optax", "pillow", "rich", "scikit-learn",
# ]
# ///
"""A frozen encoder: learned on printed characters, used to read handwriting.

An encoder learns to tell letters and digits apart, drawn in the fonts that come with
Matplotlib. Then it is frozen: a new last layer on its features learns handwritten
digits from a few labels a class. It is compared with training everything from nothing
on the same labels, with fine-tuning all of it, and with the nearest labeled image. The
encoder is an object of Flax; a jitted step calls it, and does not change a bit of it.

    python frozen_encoder.py
    python frozen_encoder.py --size large --seed 1 --output elsewhere
"""

import string
import time
from collections import defaultdict
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import jax
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import optax
import study
from flax import nnx
from PIL import Image, ImageDraw, ImageFont
from rich.progress import track

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
    return [(x[..., None], y) for x, y in study.digits()]


def few(data, count, seed):
    """Some images of each class, and their labels."""
    (x, y), rng = data, np.random.default_rng(seed)
    of_class = [np.flatnonzero(y == c) for c in range(DIGITS)]
    rows = [rng.choice(some, count, replace=False) for some in of_class]
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
    """An encoder and a last layer: images (n, 8, 8, 1) to logits (n, classes)."""

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
    def step(reader, optimizer, x, y):
        def loss(reader):
            logits = reader(x)
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

        differentiate = nnx.value_and_grad(loss, argnums=nnx.DiffState(0, trained))
        value, grads = differentiate(reader)
        optimizer.update(reader, grads)
        return value

    return step


def training(reader, optimizer, trained, done, steps, data, seed):
    """Go on after `done` steps; change both; yield (done, both, loss)."""
    step, (x, y) = make_step(trained), data
    for number in range(done, steps):
        rng = np.random.default_rng([seed, number])
        rows = rng.integers(0, len(x), min(BATCH, len(x)))
        value = step(reader, optimizer, x[rows], y[rows])
        yield number + 1, (reader, optimizer), value


@nnx.jit
def logits_of(reader, x):
    return reader(x)


def is_right(reader, data):
    return np.asarray(logits_of(reader, data[0])).argmax(axis=1) == data[1]


def write(file, both):
    study.write_arrays(file, nnx.state(both))


def read(file, both):
    nnx.update(both, study.read_arrays(file, nnx.state(both)))
    return both


# --- The program --------------------------------------------------------------------


def fit_encoder(size, options):
    """Train on printed characters; the encoder and its accuracy."""
    steps, seed = options.settings["steps"], options.seed
    data = load_printed(size.images, seed)
    encoder = Encoder(size.channels, nnx.Rngs(seed))
    reader = Reader(encoder, 128, len(CHARACTERS), nnx.Rngs(seed))
    both = reader, nnx.Optimizer(reader, make_adam(2e-3, steps), wrt=EVERYTHING)

    def rest(both, done):
        return training(*both, EVERYTHING, done, steps, data, seed)

    codec = write, read
    study.fit("encoder", both, rest, steps, options, EVERY, codec=codec)
    return encoder, float(is_right(reader, load_printed(1000, seed + 1)).mean())


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
    optimizer = nnx.Optimizer(reader, make_adam(rate, steps), wrt=trained)
    for _ in training(reader, optimizer, trained, 0, steps, data, seed):
        pass
    return reader


def learn_from_few(encoder, size, seed):
    """Figures by labels a class and by way; and whether `encoder` is unchanged.

    A way has its accuracy, how far the frozen encoder is ahead of it, and the standard
    error of that, from drawing the test images anew.
    """
    learned, test = load_written()
    before, unchanged = weights_of(encoder), True
    right = {str(count): defaultdict(list) for count in LABELS}
    for count, number in track([*product(LABELS, range(size.draws))], "few labels"):
        data, row = few(learned, count, [seed, number]), right[str(count)]
        for name, way in ways(encoder, size.channels, seed).items():
            reader = learn_few(*way, data, seed)
            row[name].append(is_right(reader, test))
            if name == "frozen encoder":
                unchanged &= same(before, weights_of(reader.encoder))
        row["nearest image"].append(study.neighbors(data, test, 1))
    return {count: compare(row) for count, row in right.items()}, unchanged


def compare(right):
    """From which test images each way read, in each draw of labels, to its figures."""
    shares = {name: np.mean(draws, axis=0) for name, draws in right.items()}
    figures = {}
    for name, share in shares.items():
        gap, error = study.mean_and_error(shares["frozen encoder"] - share)
        accuracy = float(share.mean())
        figures[name] = {"accuracy": accuracy, "frozen ahead": gap, "its error": error}
    return figures


def weights_of(encoder):
    return jax.tree.map(np.array, nnx.state(encoder, nnx.Param))


def same(one, other):
    equal = jax.tree.map(lambda a, b: bool((a == b).all()), one, other)
    return all(jax.tree.leaves(equal))


def step_costs(encoder, trained, rate, data):
    """Bytes that the compiled step needs for itself, Adam's bytes, and seconds."""
    reader = Reader(encoder, 128, DIGITS, nnx.Rngs(0))
    optimizer = nnx.Optimizer(reader, make_adam(rate, 200), wrt=trained)
    definition, state = nnx.split((reader, optimizer))

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
    opt_state = jax.tree.leaves(nnx.state(optimizer, nnx.OptState))
    costs = {
        "temporary": compiled.memory_analysis().temp_size_in_bytes,
        "adam": sum(leaf.nbytes for leaf in opt_state),
    }
    return costs, float(np.median(seconds))


def draw(table, path):
    """Accuracy against labels, for each way."""
    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    for name in table["5"]:
        shares = [row[name]["accuracy"] for row in table.values()]
        axes.plot([*table], shares, "o-", label=name)
    axes.set(xlabel="labels a class", ylabel="test accuracy on handwriting")
    axes.legend(fontsize="small")
    study.save_figure(figure, path)


def run(options, size):
    seed = options.seed
    encoder, read = fit_encoder(size, options)
    table, unchanged = learn_from_few(encoder, size, seed)
    learned, _ = load_written()
    costs, seconds = {}, {}
    for name in ("frozen encoder", "fine-tuned"):
        part, _, trained, rate = ways(encoder, size.channels, seed)[name]
        data = few(learned, 10, 0)
        costs[name], seconds[name] = step_costs(part, trained, rate, data)
    results = {"printed": read, "written": table}
    results |= {"encoder unchanged": unchanged, "costs": costs}
    draw(table, options.output / "labels.png")
    report(results, seconds)
    return results


def report(results, seconds):
    """Print what was found."""
    print(f"{len(CHARACTERS)} printed characters: {results['printed']:.3f} right")
    for count, rows in results["written"].items():
        study.print_table({f"{count} labels, {way}": rows[way] for way in rows})
    print(f"the frozen encoder is unchanged: {results['encoder unchanged']}")
    for name, cost in results["costs"].items():
        print(f"a step, {name}: {1e3 * seconds[name]:.2f} ms, ", end="")
        print(f"{cost['temporary']:,} bytes in between, {cost['adam']:,} of Adam's")


def main():
    study.main(run, __doc__, SIZES)


if __name__ == "__main__":
    main()
