# /// script
# dependencies = ["equinox", "jax", "matplotlib", "optax", "rich", "scikit-learn"]
# ///
"""Text to image: pictures of "a red square top left" from words, by SUNDAE.

An autoencoder turns a picture into 16 tokens of 256 codes. A step-unrolled denoising
autoencoder (SUNDAE) learns to repair such tokens, given the words; repairing noise
again and again makes a new picture. Beside it stands the other recipe, a transformer
that writes the tokens one after another, as DALL-E mini did. Both are asked for
combinations of color, shape and place that no training picture has shown, and a
parser that knows neither of them reads the pictures.

    python text_to_image.py
    python text_to_image.py --size large --seed 1 --output elsewhere
"""

import argparse
import json
import shlex
import sys
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
from jax import lax
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from sklearn.cluster import KMeans

BATCH = 128
EVERY = 50  # steps from one checkpoint to the next


class Size(NamedTuple):
    autoencoder_steps: int
    steps: int
    width: int
    layers: int
    samples: int  # for each unseen combination
    takes: str


SIZES = {
    "tiny": Size(300, 60, 32, 1, 1, "half a minute, to see that it runs"),
    "small": Size(600, 900, 64, 2, 8, "about 4 minutes and 1 GB on two cores"),
    "large": Size(2000, 10000, 256, 6, 16, "hours on two cores"),
}

# --- Pictures and words -----------------------------------------------------------

COLORS = {
    "red": (1.0, 0.1, 0.1),
    "green": (0.1, 0.9, 0.1),
    "blue": (0.2, 0.3, 1.0),
    "yellow": (1.0, 0.9, 0.1),
    "purple": (0.8, 0.1, 0.9),
    "white": (1.0, 1.0, 1.0),
}
SHAPES = {
    "square": 8 * "######## ",
    "ring": "..####.. .######. ###..### ##....## ##....## ###..### .######. ..####..",
    "triangle": "...##... ...##... ..####.. ..####.. .######. .######. "
    + 2 * "######## ",
    "cross": "##....## ###..### .######. ..####.. ..####.. .######. ###..### ##....##",
}
PLACES = [
    f"{row} {column}"
    for row, column in product(("top", "middle", "bottom"), ("left", "center", "right"))
]
WORDINGS = [
    "a {color} {shape} {place}",
    "{place} a {color} {shape}",
    "a {shape} in {color} at the {place}",
    "draw at the {place} one {color} {shape}",
]
COMBINATIONS = np.array(list(product(range(6), range(4), range(9))))  # (216, 3)
WORDS = [
    "",
    *sorted(
        {word for wording in WORDINGS for word in wording.split() if "{" not in word}
        | {*COLORS, *SHAPES}
        | {word for place in PLACES for word in place.split()}
    ),
]
LENGTH = 8  # words of the longest prompt


def stencil(shape, place):
    """Where a shape is drawn: (16, 16), 1 inside and 0 outside."""
    rows = [[mark == "#" for mark in row] for row in SHAPES[shape].split()]
    picture = np.zeros((16, 16), np.float32)
    row, column = 4 * (place // 3), 4 * (place % 3)
    picture[row : row + 8, column : column + 8] = rows
    return picture


STENCILS = np.stack(
    [[stencil(s, p) for p in range(9)] for s in SHAPES]
)  # (4, 9, 16, 16)
PALETTE = np.float32(list(COLORS.values()))  # (6, 3)


def draw(key, combinations):
    """Pictures (n, 16, 16, 3) of combinations (n, 3), on darker or lighter grounds."""
    color, shape, place = combinations.T
    light = jax.random.uniform(key, (len(combinations), 1, 1, 1), minval=0.8)
    inside = jnp.asarray(STENCILS)[shape, place][..., None]
    paint = light * jnp.asarray(PALETTE)[color][:, None, None]
    return inside * paint + (1 - inside) * 0.05


def named(combination):
    """The words for a combination: its color, shape and place."""
    color, shape, place = combination
    return {
        "color": [*COLORS][color],
        "shape": [*SHAPES][shape],
        "place": PLACES[place],
    }


def prompt(combination, wording):
    return WORDINGS[wording].format(**named(combination))


def words_of(text):
    """The numbers of a prompt's words (LENGTH,); 0 where there is none."""
    numbers = [WORDS.index(word) for word in text.split()]
    return np.pad(np.int32(numbers), (0, LENGTH - len(numbers)))


# The words of every prompt: (216, 4, LENGTH).
PROMPTS = np.stack(
    [[words_of(prompt(c, w)) for w in range(len(WORDINGS))] for c in COMBINATIONS]
)


def split(seed):
    """Rows of COMBINATIONS for training (168,) and for the test (48,).

    Each pair of color and shape, color and place, shape and place is in training.
    """
    rng = np.random.default_rng(seed)
    while True:
        rows = rng.permutation(216)
        seen = COMBINATIONS[rows[48:]]
        pairs = [len(np.unique(seen[:, p], axis=0)) for p in ([0, 1], [0, 2], [1, 2])]
        if pairs == [24, 54, 36]:
            return rows[48:], rows[:48]


def explained(pictures):
    """For each stencil, the share of a picture's variation that it explains: (n, 36).

    A stencil explains what it leaves of one color inside and of one outside.
    """
    pixels = pictures.reshape(len(pictures), 256, 3)
    pixels = pixels - pixels.mean(axis=1, keepdims=True)
    inside = STENCILS.reshape(36, 256)
    area = inside.sum(axis=1)
    sums = jnp.einsum("npc,sp->nsc", pixels, inside)
    between = (sums**2).sum(axis=-1) * (1 / area + 1 / (256 - area))
    return between / ((pixels**2).sum(axis=(1, 2)) + 1e-6)[:, None]


def parse(pictures):
    """What pictures (n, 16, 16, 3) show: combinations (n, 3). Knows no model.

    The stencil that explains most, and the color nearest to the one inside it.
    """
    best = explained(pictures).argmax(axis=1)
    inside = jnp.asarray(STENCILS.reshape(36, 256))[best]
    pixels = pictures.reshape(len(pictures), 256, 3)
    paint = (pixels * inside[..., None]).sum(axis=1)
    hue = paint / jnp.linalg.norm(paint, axis=1, keepdims=True)
    hues = PALETTE / np.linalg.norm(PALETTE, axis=1, keepdims=True)
    return jnp.stack([(hue @ hues.T).argmax(axis=1), best // 9, best % 9], axis=1)


def score(pictures, asked):
    """The share of pictures with the color, shape, place, and all, asked for."""
    right = np.asarray(parse(pictures) == asked)
    shares = dict(zip(("color", "shape", "place"), right.mean(axis=0), strict=True))
    return {
        name: float(x) for name, x in {**shares, "all": right.all(1).mean()}.items()
    }


# --- The autoencoder: a picture is 4 x 4 patches, a patch one of 256 codes --------

CODES, CODE = 256, 8


def patches(pictures):
    """(n, 16, 16, 3) to (n, 16, 48)."""
    parts = pictures.reshape(-1, 4, 4, 4, 4, 3).transpose(0, 1, 3, 2, 4, 5)
    return parts.reshape(-1, 16, 48)


def unpatch(parts):
    """(n, 16, 48) to (n, 16, 16, 3)."""
    pixels = parts.reshape(-1, 4, 4, 4, 4, 3).transpose(0, 1, 3, 2, 4, 5)
    return pixels.reshape(-1, 16, 16, 3)


def on_rows(layer, x):
    """A layer of Equinox takes one vector; this one takes (..., vector)."""
    return jax.vmap(layer)(x.reshape(-1, x.shape[-1])).reshape(*x.shape[:-1], -1)


class Autoencoder(eqx.Module):
    encoder: eqx.nn.MLP
    decoder: eqx.nn.MLP
    book: jax.Array  # (CODES, CODE)

    def __init__(self, key):
        one, two = jax.random.split(key)
        self.encoder = eqx.nn.MLP(48, CODE, 96, 1, key=one)
        self.decoder = eqx.nn.MLP(CODE, 48, 96, 1, key=two)
        self.book = jnp.zeros((CODES, CODE))

    def nearest(self, z):
        """The numbers of the codes nearest to z (..., CODE)."""
        distance = (self.book**2).sum(axis=1) - 2 * z @ self.book.T
        return distance.argmin(axis=-1)

    def tokens(self, pictures):
        """Pictures (n, 16, 16, 3) to tokens (n, 16)."""
        return self.nearest(on_rows(self.encoder, patches(pictures)))

    def pictures(self, tokens):
        """Tokens (n, 16) to pictures (n, 16, 16, 3)."""
        return unpatch(on_rows(self.decoder, self.book[tokens]))


def autoencoder_loss(model, pictures, quantized):
    """Reconstruction error, and what ties codes and encoder to each other."""
    parts = patches(pictures)
    z = on_rows(model.encoder, parts)
    code = model.book[model.nearest(z)]
    # Forward the code, backward as if it were z: rounding has no useful gradient.
    passed = jnp.where(quantized, z + lax.stop_gradient(code - z), z)
    error = ((on_rows(model.decoder, passed) - parts) ** 2).mean()
    to_code = ((code - lax.stop_gradient(z)) ** 2).mean()
    to_z = ((z - lax.stop_gradient(code)) ** 2).mean()
    return error + quantized * (to_code + 0.25 * to_z)


def with_codes(model, pictures, seed):
    """The model with its codes where the encoder puts patches: centers of k-means."""
    z = on_rows(model.encoder, patches(pictures)).reshape(-1, CODE)
    centers = KMeans(CODES, n_init=1, random_state=seed).fit(z).cluster_centers_
    return eqx.tree_at(lambda m: m.book, model, jnp.asarray(centers, jnp.float32))


# --- A transformer over the words of a prompt and the tokens of a picture ---------


class Block(eqx.Module):
    attention: eqx.nn.MultiheadAttention
    dense: eqx.nn.MLP
    norms: tuple

    def __init__(self, width, key):
        one, two = jax.random.split(key)
        self.attention = eqx.nn.MultiheadAttention(4, width, key=one)
        self.dense = eqx.nn.MLP(width, width, 4 * width, 1, key=two)
        self.norms = eqx.nn.LayerNorm(width), eqx.nn.LayerNorm(width)

    def __call__(self, x, mask):
        """(positions, width) to the same; mask (positions, positions)."""
        h = jax.vmap(self.norms[0])(x)
        x = x + self.attention(h, h, h, mask)
        return x + jax.vmap(self.dense)(jax.vmap(self.norms[1])(x))


class Transformer(eqx.Module):
    words: jax.Array  # (words, width)
    codes: jax.Array  # (CODES + 1, width): the last one stands for "not yet written"
    positions: jax.Array  # (LENGTH + 16, width)
    blocks: list
    norm: eqx.nn.LayerNorm
    out: eqx.nn.Linear
    ordered: bool = eqx.field(
        static=True
    )  # whether a token sees the earlier ones alone

    def __init__(self, size, ordered, key):
        keys = jax.random.split(key, 4 + size.layers)
        self.words = 0.1 * jax.random.normal(keys[0], (len(WORDS), size.width))
        self.codes = 0.1 * jax.random.normal(keys[1], (CODES + 1, size.width))
        self.positions = 0.1 * jax.random.normal(keys[2], (LENGTH + 16, size.width))
        self.blocks = [Block(size.width, k) for k in keys[4:]]
        self.norm = eqx.nn.LayerNorm(size.width)
        self.out = eqx.nn.Linear(size.width, CODES, key=keys[3])
        self.ordered = ordered

    def __call__(self, tokens, words):
        """Tokens (16,) and words (LENGTH,) to scores (16, CODES) of the tokens."""
        if self.ordered:  # the input at a position is the token before it
            tokens = jnp.concatenate([jnp.array([CODES]), tokens[:-1]])
        real = words > 0
        text = self.words[words]
        # The sum of the words is added everywhere, besides being attended to.
        image = self.codes[tokens] + (text * real[:, None]).sum(axis=0)
        x = jnp.concatenate([text, image]) + self.positions
        mask = jnp.broadcast_to(
            jnp.concatenate([real, jnp.ones(16, bool)]), (len(x), len(x))
        )
        if self.ordered:
            mask = mask & (jnp.tri(len(x), dtype=bool) | (jnp.arange(len(x)) < LENGTH))
        for block in self.blocks:
            x = block(x, mask)
        return jax.vmap(self.out)(jax.vmap(self.norm)(x[LENGTH:]))


def cross_entropy(scores, tokens):
    return optax.softmax_cross_entropy_with_integer_labels(scores, tokens).mean()


def corrupt(key, tokens):
    """Tokens (n, 16), of which a random share, in each picture its own, is noise."""
    one, two, three = jax.random.split(key, 3)
    share = jnp.sqrt(jax.random.uniform(one, (len(tokens), 1)))  # more often high
    noise = jax.random.randint(two, tokens.shape, 0, CODES)
    return jnp.where(jax.random.uniform(three, tokens.shape) < share, noise, tokens)


def denoising_loss(model, tokens, words, key, unroll=2):
    """Repair corrupted tokens, then what the first repair made of them."""
    key, now = jax.random.split(key)
    guess, total = corrupt(now, tokens), 0.0
    for _ in range(unroll):
        scores = jax.vmap(model)(guess, words)
        total += cross_entropy(scores, tokens)
        key, now = jax.random.split(key)
        guess = jax.random.categorical(now, scores)  # no gradient passes a draw
    return total / unroll


def writing_loss(model, tokens, words, key):
    """Predict each token from the words and the tokens before it."""
    return cross_entropy(jax.vmap(model)(tokens, words), tokens)


@eqx.filter_jit
def denoise(model, key, words, temperature, rounds):
    """Tokens (n, 16) from noise: in each round, about half of them are drawn anew."""
    everything = rounds == 1

    def one_round(i, tokens):
        draw, choose = jax.random.split(jax.random.fold_in(key, i))
        cooling = 1 - 0.9 * i / jnp.maximum(rounds - 1, 1)
        scores = jax.vmap(model)(tokens, words) / (temperature * cooling)
        new = jax.random.categorical(draw, scores)
        redrawn = jax.random.bernoulli(choose, 0.5, tokens.shape)
        return jnp.where(redrawn | everything, new, tokens)

    noise = jax.random.randint(key, (len(words), 16), 0, CODES)
    return lax.fori_loop(0, rounds, one_round, noise)


@eqx.filter_jit
def write(model, key, words, temperature, rounds):
    """Tokens (n, 16), one after another, in as many rounds as there are tokens."""

    def one_token(i, tokens):
        scores = jax.vmap(model)(tokens, words)[:, i] / temperature
        new = jax.random.categorical(jax.random.fold_in(key, i), scores)
        return tokens.at[:, i].set(new)

    return lax.fori_loop(0, 16, one_token, jnp.zeros((len(words), 16), jnp.int32))


# --- Training, and checkpoints as Equinox writes them -------------------------------


class State(NamedTuple):
    model: eqx.Module
    memory: optax.OptState
    average: eqx.Module  # of the models of late steps, which is the one to use


def make_optimizer(steps, rate=3e-3):
    schedule = optax.warmup_cosine_decay_schedule(0.0, rate, steps // 10, steps)
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, b2=0.99))


def start(model, steps):
    memory = make_optimizer(steps).init(eqx.filter(model, eqx.is_array))
    return State(model, memory, model)


def follow(average, model, kept):
    """The average of models, moved towards the latest one."""

    def mean(old, new):
        return kept * old + (1 - kept) * new if eqx.is_inexact_array(new) else new

    return jax.tree.map(mean, average, model)


def training(state, loss, done, steps, seed):
    """Go on after `done` steps with loss(model, key); yield (done, state, loss)."""
    optimizer, key = make_optimizer(steps), jax.random.key(seed)

    @eqx.filter_jit
    def step(state, number):
        differentiate = eqx.filter_value_and_grad(loss)
        value, gradient = differentiate(state.model, jax.random.fold_in(key, number))
        weights = eqx.filter(state.model, eqx.is_array)
        moves, memory = optimizer.update(gradient, state.memory, weights)
        model = eqx.apply_updates(state.model, moves)
        # At first an average over few steps, later over some hundred.
        kept = jnp.minimum(0.99, (number + 1) / (number + 10))
        return State(model, memory, follow(state.average, model, kept)), value

    for number in range(done, steps):
        state, value = step(state, jnp.int32(number))
        yield number + 1, state, value


def save(path, state, notes):
    """A line of JSON, then the arrays; a stop in between leaves the old file whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name("checkpoint.tmp")
    with half.open("wb") as file:
        file.write(json.dumps(notes).encode() + b"\n")
        eqx.tree_serialise_leaves(file, state)
    half.replace(path)


def restore(path, state, notes):
    """The state and notes that were saved; those given, if nothing was."""
    if not path.exists():
        print(f"No checkpoint {path} yet: this begins with the first step.")
        return state, notes
    try:
        with path.open("rb") as file:
            saved = json.loads(file.readline())
            if (other := saved["settings"]) != notes["settings"]:
                sys.exit(f"The run in {path} has {other}: go on with these.")
            state = eqx.tree_deserialise_leaves(file, state)
    except Exception as error:  # NumPy, json and Equinox each have their own
        reason = str(error).partition("\n")[0]
        sys.exit(f"Cannot read {path}: {reason}. Begin without --resume.")
    print(f"Going on after step {saved['step']}.")
    return state, saved


# --- The program --------------------------------------------------------------------


def fit(name, model, loss, steps, settings, folder, resume):
    """Train with a progress bar; the average of the late models."""
    path = folder / f"{name.replace(' ', '-')}.checkpoint"
    state, notes = start(model, steps), {"settings": settings, "step": 0}
    if resume:
        state, notes = restore(path, state, notes)
    columns = "{task.description:12}", BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TimeRemainingColumn(), "{task.fields[said]}") as bar:
        task = bar.add_task(name, total=steps, completed=notes["step"], said="")
        rest = training(state, loss, notes["step"], steps, settings["seed"])
        for done, state, value in rest:
            if done % EVERY == 0 or done == steps:
                save(path, state, {**notes, "step": done})
                bar.update(task, completed=done, said=f"loss {value:.3f}")
    return state.average


def batch(key, rows):
    """Combinations of some rows, as pictures (BATCH, 16, 16, 3) and words."""
    which, wording, light = jax.random.split(key, 3)
    rows = jax.random.choice(which, jnp.asarray(rows), (BATCH,))
    wording = jax.random.randint(wording, (BATCH,), 0, len(WORDINGS))
    pictures = draw(light, jnp.asarray(COMBINATIONS)[rows])
    return pictures, jnp.asarray(PROMPTS)[rows, wording]


def fit_autoencoder(size, seen, *given):
    """First without codes, then with the codes where the patches have come to lie."""

    def loss(quantized):
        return lambda m, key: autoencoder_loss(m, batch(key, seen)[0], quantized)

    seed, steps = given[0]["seed"], size.autoencoder_steps
    model = Autoencoder(jax.random.key(seed))
    model = fit("patches", model, loss(False), steps // 4, *given)
    pictures = draw(
        jax.random.key(seed), jnp.asarray(np.repeat(COMBINATIONS[seen], 6, 0))
    )
    model = with_codes(model, pictures, seed)
    return fit("codes", model, loss(True), steps - steps // 4, *given)


# How each model learns and makes pictures, and whether it sees earlier tokens alone.
KINDS = {
    "two steps": (denoising_loss, denoise, False),
    "one step": (partial(denoising_loss, unroll=1), denoise, False),
    "in order": (writing_loss, write, True),
}


def fit_transformer(name, autoencoder, size, seen, steps, *given):
    """Train one kind on the tokens of pictures, which the autoencoder gives."""
    loss, _, ordered = KINDS[name]

    def on_batch(model, key):
        now, later = jax.random.split(key)
        pictures, words = batch(now, seen)
        return loss(model, autoencoder.tokens(pictures), words, later)

    model = Transformer(size, ordered, jax.random.key(given[0]["seed"]))
    return fit(name, model, on_batch, steps, *given)


def asked_for(rows, samples, seed):
    """Combinations (n, 3) and prompts (n, LENGTH): some samples of each row."""
    rows = np.repeat(rows, samples)
    wording = np.random.default_rng(seed).choice(len(WORDINGS), len(rows))
    return COMBINATIONS[rows], PROMPTS[rows, wording]


def make(name, models, words, seed, temperature, rounds=16):
    """Pictures (n, 16, 16, 3) for words (n, LENGTH), by one kind."""
    autoencoder, transformer = models["autoencoder"], models[name]
    sampler = KINDS[name][1]
    # As arrays, since Equinox compiles anew for each other Python number.
    how = jnp.float32(temperature), jnp.int32(rounds)
    tokens = sampler(transformer, jax.random.key(seed), jnp.asarray(words), *how)
    return np.asarray(autoencoder.pictures(tokens))


def warmest_of_the_best(name, models, seen, seed):
    """The temperature to sample at, chosen on prompts seen in training alone."""
    combinations, words = asked_for(seen, 1, seed)
    scores = {}
    for t in (1.0, 0.5, 0.25):
        scores[t] = score(make(name, models, words, seed, t), combinations)["all"], t
    return max(scores, key=scores.get)


def judge(name, models, seen, unseen, samples, seed):
    """How one kind draws unseen combinations, and for whose prompt."""
    combinations, words = asked_for(unseen, samples, seed)
    temperature = warmest_of_the_best(name, models, seen, seed)
    pictures = make(name, models, words, seed, temperature)
    other = np.random.default_rng(seed).permutation(len(combinations))
    found = {
        "temperature": temperature,
        "unseen": score(pictures, combinations),
        "another's prompt": score(pictures, combinations[other]),
        "different": len(np.unique(pictures.round(2), axis=0)) / len(pictures),
    }
    if name != "in order":  # which needs as many rounds as there are tokens
        found["by rounds"] = {
            rounds: score(
                make(name, models, words, seed, temperature, rounds), combinations
            )["all"]
            for rounds in (1, 2, 4, 8, 16)
        }
    return pictures, found


def judge_parser(autoencoder, unseen, samples, seed):
    """The parser on real pictures of unseen combinations, and on their codes alone."""
    combinations, _ = asked_for(unseen, samples, seed)
    real = draw(jax.random.key(seed), jnp.asarray(combinations))
    again = autoencoder.pictures(autoencoder.tokens(real))
    found = {"real": score(real, combinations), "coded": score(again, combinations)}
    error = ((again - real) ** 2).mean() / real.var()
    return {**found, "error of coding": float(error)}


def show(pictures, unseen, samples, path):
    """One picture for each of 24 unseen combinations, its prompt below."""
    figure, grid = plt.subplots(4, 6, figsize=(9, 7), layout="constrained")
    shown = zip(grid.flat, unseen, pictures[::samples], strict=False)
    for axes, row, picture in shown:
        axes.imshow(picture.clip(0, 1))
        title = "{color} {shape}\n{place}".format(**named(COMBINATIONS[row]))
        axes.set_title(title, fontsize=9)
        axes.axis("off")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def show_rounds(models, unseen, temperature, seed, path):
    """Four pictures on their way from noise, round by round."""
    _, words = asked_for(unseen[:4], 1, seed)
    figure, grid = plt.subplots(4, 6, figsize=(9, 6.2), layout="constrained")
    for column, rounds in enumerate((1, 2, 4, 8, 12, 16)):
        pictures = make("two steps", models, words, seed, temperature, rounds)
        for axes, picture in zip(grid[:, column], pictures, strict=True):
            axes.imshow(picture.clip(0, 1))
            axes.axis("off")
        grid[0, column].set_title(f"{rounds} rounds", fontsize=9)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def run(options):
    size, seed = SIZES[options.size], options.seed
    print(f"{options.size}: {size.takes}")
    options.output.mkdir(parents=True, exist_ok=True)
    steps = options.steps or size.steps
    settings = {"size": options.size, "steps": steps, "seed": seed}
    given = settings, options.output, options.resume
    seen, unseen = split(seed)
    models = {"autoencoder": fit_autoencoder(size, seen, *given)}
    results = {
        "parser": judge_parser(models["autoencoder"], unseen, size.samples, seed)
    }
    for name in KINDS:
        trained = fit_transformer(
            name, models["autoencoder"], size, seen, steps, *given
        )
        models[name] = trained
        judged = name, models, seen, unseen, size.samples, seed
        pictures, results[name] = judge(*judged)
        path = options.output / f"{name.replace(' ', '-')}.png"
        show(pictures, unseen, size.samples, path)
    temperature = results["two steps"]["temperature"]
    show_rounds(models, unseen, temperature, seed, options.output / "rounds.png")
    (options.output / "results.json").write_text(json.dumps(results, indent=1))
    report(results)


def report(results):
    """Print what was found."""
    rows = {f"{name} pictures": results["parser"][name] for name in ("real", "coded")}
    for name in KINDS:
        rows[name] = results[name]["unseen"]
    rows["two steps, another's prompt"] = results["two steps"]["another's prompt"]
    print(f"{'unseen combinations':29}" + "".join(f"{k:>8}" for k in rows["two steps"]))
    for name, row in rows.items():
        print(f"{name:29}" + "".join(f"{share:8.3f}" for share in row.values()))
    for name in ("two steps", "one step"):
        print(f"{name}, all three right, by rounds of sampling:", end="")
        for rounds, share in results[name]["by rounds"].items():
            print(f"  {rounds}: {share:.3f}", end="")
        print()


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
    add("--output", type=Path, default=Path("text_to_image"), help="where to write")
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
