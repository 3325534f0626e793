# /// script
# dependencies = ["equinox", "jax", "matplotlib", "optax", "rich", "scikit-learn"]
# ///
"""Diffusion: new handwritten digits out of noise, of the class that is asked for.

A network learns, for a digit partly turned to noise, in which direction the digit
lies. Following that direction from pure noise, step by step in a `scan`, makes a new
digit. Two ways of mixing digit and noise stand side by side, diffusion's cosine and
the straight line of flow matching; they differ in two lines. What comes out is
compared with digits that the training never saw, in fidelity and in variety, and so
are a mean image and a Gaussian for each class, which look fine to a classifier, and
blends of two digits.

    python diffusion.py
    python diffusion.py --size large --seed 1 --output elsewhere
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
import study
from jax import lax
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

CLASSES, PIXELS, BATCH = 10, 64, 256
ANY = CLASSES  # the label of the unconditional model
EVERY = 200  # steps from one checkpoint to the next
GUIDANCES = 1.0, 1.5, 2.0
SPREADS = 1.0, 0.8, 0.6  # of a Gaussian


class Size(NamedTuple):
    steps: int
    width: int
    layers: int
    samples: int  # of each class
    takes: str


SIZES = {
    "tiny": Size(400, 128, 2, 20, "half a minute, to see that it runs"),
    "small": Size(1500, 256, 3, 60, "about 2 minutes and 950 MB on two cores"),
    "large": Size(30000, 1024, 6, 60, "hours on two cores"),
}

# --- Data ---------------------------------------------------------------------------


def load(seed):
    """Images (n, 64) in [-1, 1] and labels (n,).

    1,000 to train on, 200 to choose the guidance by, 597 to evaluate on.
    """
    digits = load_digits()
    rows = np.random.default_rng(seed).permutation(len(digits.data))
    x, y = (digits.data / 8 - 1).astype(np.float32)[rows], digits.target[rows]
    cuts = slice(0, 1000), slice(1000, 1200), slice(1200, None)
    return tuple((x[rows], y[rows]) for rows in cuts)


# --- Paths from a digit, at time 0, to noise, at time 1 -------------------------------


def cosine(t):
    """Diffusion: shares of digit and noise whose squares add up to one."""
    return jnp.cos(jnp.pi / 2 * t), jnp.sin(jnp.pi / 2 * t)


def straight(t):
    """Flow matching: shares that add up to one."""
    return 1 - t, t


PATHS = {"diffusion": cosine, "flow matching": straight}


def mixed(path, digit, noise, t):
    """Where on its path a digit is at time t, and how fast it moves there."""

    def position(t):
        keep, add = path(t)
        return keep * digit + add * noise

    return jax.jvp(position, (t,), (jnp.ones_like(t),))


# --- The network: image, time and class to a velocity ---------------------------------


class Block(eqx.Module):
    norm: eqx.nn.LayerNorm
    condition: eqx.nn.Linear
    dense: eqx.nn.MLP

    def __init__(self, width, key):
        one, two = jax.random.split(key)
        self.norm = eqx.nn.LayerNorm(width)
        self.condition = eqx.nn.Linear(width, width, key=one)
        self.dense = eqx.nn.MLP(width, width, 2 * width, 1, jax.nn.silu, key=two)

    def __call__(self, h, condition):
        return h + self.dense(self.norm(h) + self.condition(condition))


class Network(eqx.Module):
    embed: eqx.nn.Linear
    classes: jax.Array  # (CLASSES + 1, width)
    times: eqx.nn.Linear
    blocks: list[Block]
    norm: eqx.nn.LayerNorm
    out: eqx.nn.Linear

    def __init__(self, size, key):
        one, two, three, four, *keys = jax.random.split(key, 4 + size.layers)
        self.embed = eqx.nn.Linear(PIXELS, size.width, key=one)
        self.classes = jax.random.normal(two, (CLASSES + 1, size.width))
        self.times = eqx.nn.Linear(32, size.width, key=three)
        self.blocks = [Block(size.width, key) for key in keys]
        self.norm = eqx.nn.LayerNorm(size.width)
        self.out = eqx.nn.Linear(size.width, PIXELS, key=four)

    def __call__(self, x, t, label):
        """One image (64,) at time t () of class label () to its velocity (64,)."""
        waves = t * jnp.pi * jnp.arange(1, 17) / 2
        condition = self.times(jnp.concatenate([jnp.cos(waves), jnp.sin(waves)]))
        condition = jax.nn.silu(condition + self.classes[label])
        h = self.embed(x)
        for block in self.blocks:
            h = block(h, condition)
        return self.out(self.norm(h))


def loss(model, path, x, labels, key):
    """Mean squared error of the velocity, at random times of random noise."""
    when, noise, hide = jax.random.split(key, 3)
    t = jax.random.uniform(when, (len(x), 1))
    noise = jax.random.normal(noise, x.shape)
    here, velocity = mixed(path, x, noise, t)
    # One case of ten has no class, because guidance needs both models.
    labels = jnp.where(jax.random.uniform(hide, labels.shape) < 0.1, ANY, labels)
    predicted = jax.vmap(model)(here, t[:, 0], labels)
    return ((predicted - velocity) ** 2).mean()


@eqx.filter_jit
def sample(model, key, labels, guidance, steps=40):
    """Images (steps + 1, n, 64) on the way from noise to digits of classes (n,).

    Guidance scales the difference of the conditional and the unconditional
    prediction; with 1 the result is the conditional model's.
    """
    each = jax.vmap(model, in_axes=(0, None, 0))

    def velocity(x, t):
        without = each(x, t, jnp.full_like(labels, ANY))
        return without + guidance * (each(x, t, labels) - without)

    def step(x, t):
        # Heun's method: the mean of the velocities at both ends of the step.
        first = velocity(x, t)
        second = velocity(x - first / steps, t - 1 / steps)
        x = x - (first + second) / 2 / steps
        return x, x

    noise = jax.random.normal(key, (len(labels), PIXELS))
    times = 1 - jnp.arange(steps) / steps
    _, way = lax.scan(step, noise, times)
    return jnp.concatenate([noise[None], way])


# --- What the samples are compared with ----------------------------------------------


def means(train, labels, rng):
    """Of each class the mean image, with a little noise so that no two are alike."""
    x, y = train
    middle = np.stack([x[y == c].mean(axis=0) for c in range(CLASSES)])
    return middle[labels] + 0.01 * rng.normal(size=(len(labels), PIXELS))


def gaussians(train, labels, rng, spread=1.0):
    """Of each class a Gaussian with its mean and its covariance, or a narrower one."""
    x, y = train
    made = np.zeros((len(labels), PIXELS))
    for c in range(CLASSES):
        some, n = x[y == c], (labels == c).sum()
        covariance = spread**2 * np.cov(some.T)
        made[labels == c] = rng.multivariate_normal(some.mean(0), covariance, n)
    return made.clip(-1, 1)


def blends(train, labels, rng):
    """Each a mixture of a digit and one of its five nearest in its class."""
    x, y = train
    made = []
    for c in labels:
        digits = x[y == c]
        one = digits[rng.integers(len(digits))]
        order = ((digits - one) ** 2).sum(axis=1).argsort()
        share = rng.uniform(0.3, 0.7)
        made.append(share * one + (1 - share) * digits[rng.choice(order[1:6])])
    return np.stack(made)


def real(train, labels, rng):
    """Digits of the training themselves: the best that there is."""
    x, y = train
    return np.stack([x[rng.choice(np.flatnonzero(y == c))] for c in labels])


MAKERS = {"real": real, "gaussians": gaussians, "blends": blends, "means": means}

# --- Evaluation ---------------------------------------------------------------------


def distances(a, b):
    """Of all pairs of images (n, 64) and (m, 64): (n, m)."""
    return np.sqrt(((a[:, None] - b[None]) ** 2).sum(axis=-1))


def evaluate(x, labels, train, held_out, neighbors=3):
    """Figures of samples x (n, 64) that should be of classes (n,).

    The held-out digits of a class fill a region: all within reach of one of them,
    where a digit reaches as far as its third neighbor. `fidelity` is the share of
    samples within the region of their class, `variety` the share of held-out digits
    that have a sample within reach. `copied` is the share of samples nearer to a
    training digit than 99 of 100 held-out digits are.
    """
    fidelity, variety = [], []
    for c in range(CLASSES):
        digits, made = held_out[0][held_out[1] == c], x[labels == c]
        reach = np.sort(distances(digits, digits), axis=1)[:, neighbors]
        within = distances(digits, made) < reach[:, None]
        fidelity.append(within.any(axis=0))
        variety.append(within.any(axis=1))
    classifier = SVC().fit(*held_out)
    nearest, usual = (distances(a, train[0]).min(axis=1) for a in (x, held_out[0]))
    return {
        "recognized": float((classifier.predict(x) == labels).mean()),
        "told apart": told_apart(x, held_out[0]),
        "fidelity": float(np.concatenate(fidelity).mean()),
        "variety": float(np.concatenate(variety).mean()),
        "copied": float((nearest < np.quantile(usual, 0.01)).mean()),
    }


def told_apart(x, digits):
    """How often a classifier tells samples from real digits; 0.5 is chance."""
    n = min(len(x), len(digits))
    both = np.concatenate([x[:n], digits[:n]])
    return float(cross_val_score(SVC(), both, np.repeat([0, 1], n), cv=5).mean())


# --- Training -----------------------------------------------------------------------


EQUINOX = eqx.tree_serialise_leaves, eqx.tree_deserialise_leaves


class State(NamedTuple):
    model: Network
    opt_state: optax.OptState
    average: Network  # of the networks of late steps, which is the one to use


def make_optimizer(steps):
    schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-3, steps // 10, steps)
    adam = optax.adamw(schedule, weight_decay=0.01)
    return optax.chain(optax.clip_by_global_norm(1.0), adam)


def start(size, steps, seed):
    model = Network(size, jax.random.key(seed))
    opt_state = make_optimizer(steps).init(eqx.filter(model, eqx.is_array))
    return State(model, opt_state, model)


def follow(average, model, decay):
    """The average of models, moved towards the latest one."""

    def mean(old, new):
        return decay * old + (1 - decay) * new if eqx.is_inexact_array(new) else new

    return jax.tree.map(mean, average, model)


def training(state, path, done, steps, train, seed):
    """Go on after `done` steps; yield after each (done, state, loss)."""
    optimizer, key = make_optimizer(steps), jax.random.key(seed)
    x, y = map(jnp.asarray, train)

    @eqx.filter_jit
    def step(state, number):
        choose, now = jax.random.split(jax.random.fold_in(key, number))
        rows = jax.random.randint(choose, (BATCH,), 0, len(x))
        differentiate = eqx.filter_value_and_grad(loss)
        value, grads = differentiate(state.model, path, x[rows], y[rows], now)
        weights = eqx.filter(state.model, eqx.is_array)
        updates, opt_state = optimizer.update(grads, state.opt_state, weights)
        model = eqx.apply_updates(state.model, updates)
        # At first an average over few steps, later over some five hundred.
        decay = jnp.minimum(0.998, (number + 1) / (number + 10))
        average = follow(state.average, model, decay)
        return State(model, opt_state, average), value

    for number in range(done, steps):
        state, value = step(state, jnp.int32(number))
        yield number + 1, state, value


# --- The program --------------------------------------------------------------------


def fit(name, size, train, options):
    """Train on one path; the average of the late networks."""
    steps, seed = options.settings["steps"], options.seed

    def rest(state, done):
        return training(state, PATHS[name], done, steps, train, seed)

    begin, codec = start(size, steps, seed), EQUINOX
    state, _ = study.fit(name, begin, rest, steps, options, EVERY, codec=codec)
    return state.average


def digits(model, labels, seed, guidance):
    """The way (steps + 1, n, 64) from noise to digits, as NumPy arrays in [-1, 1]."""
    key, labels = jax.random.key(seed), jnp.asarray(labels)
    way = sample(model, key, labels, jnp.float32(guidance))
    return np.asarray(way).clip(-1, 1)


def best(samples, labels, train, validation):
    """Of samples by a choice, the choice whose fit the validation digits best."""

    def quality(choice):
        figures = evaluate(samples[choice], labels, train, validation)
        return figures["fidelity"] + figures["variety"]

    return max(samples, key=quality)


def as_rows(images, columns):
    """Images (n, 64) as one picture with some of them in a row."""
    rows = images.reshape(-1, columns, 8, 8)
    rows = np.pad(rows, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=-1)
    return rows.transpose(0, 2, 1, 3).reshape(10 * len(rows), 10 * columns)


def show(pictures, path):
    """Pictures beside one another, each with its title."""
    figure, grid = plt.subplots(1, len(pictures), layout="constrained")
    for axes, (title, picture) in zip(np.ravel(grid), pictures.items(), strict=True):
        axes.imshow(picture, cmap="gray_r", vmin=-1, vmax=1)
        axes.set_title(title, fontsize=9)
        axes.axis("off")
    height, width = next(iter(pictures.values())).shape
    figure.set_size_inches(10, 0.4 + 10 * height / width / len(pictures))
    study.save_figure(figure, path)


def run(options, size):
    seed = options.seed
    train, validation, held_out = load(seed)
    labels = np.tile(np.arange(CLASSES), size.samples)
    results, pictures, path = {}, {}, {}
    for name, make in MAKERS.items():
        made = make(train, labels, np.random.default_rng(seed))
        results[name] = evaluate(made, labels, train, held_out)
        pictures[name] = as_rows(made[:60], 10)
    narrowed = {
        spread: gaussians(train, labels, np.random.default_rng(seed), spread)
        for spread in SPREADS
    }
    chosen = best(narrowed, labels, train, validation)
    print(f"gaussians: spread {chosen}, chosen by validation digits")
    results["gaussians, narrowed"] = evaluate(narrowed[chosen], labels, train, held_out)
    for name in PATHS:
        model = fit(name, size, train, options)
        ways = {g: digits(model, labels, seed, g) for g in (0.0, *GUIDANCES)}
        guided = {g: ways[g][-1] for g in GUIDANCES}
        chosen = best(guided, labels, train, validation)
        print(f"{name}: guidance {chosen}, chosen by validation digits")
        for kind, guidance in {"unconditional": 0.0, "guided": chosen}.items():
            made = ways[guidance][-1]
            results[f"{name}, {kind}"] = evaluate(made, labels, train, held_out)
        pictures[name] = as_rows(made[:60], 10)
        # Ten digits at nine moments.
        path[name] = as_rows(ways[chosen][::5, :CLASSES].reshape(-1, PIXELS), 10)
    show(pictures, options.output / "samples.png")
    show(path, options.output / "path.png")
    study.print_table(results)
    return results


def main():
    study.main(run, __doc__, SIZES)


if __name__ == "__main__":
    main()
