# /// script
# dependencies = ["jax", "scikit-learn"]
# ///
"""Reading handwritten digits, stage 5: the loss of one image; `jax.vmap` does the rest.

Nothing below speaks of a batch: the network reads one image, the loss scores one
image. One `vmap` makes the batch, and a second one trains several networks, each from
a seed of its own, at once.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_digits

HIDDEN, CLASSES = 64, 10
STEPS, RATE = 300, 0.5
SEEDS = 8


def load():
    """Training and test images (n, 64) in [0, 1], and their labels (n,)."""
    digits = load_digits()
    x = jnp.asarray(digits.data / 16, jnp.float32)
    y = jnp.asarray(digits.target, jnp.int32)
    return (x[:1500], y[:1500]), (x[1500:], y[1500:])


def init(seed):
    """Weights w1 (64, hidden), b1, w2 (hidden, classes), b2."""
    # Drawn by NumPy, to begin where the earlier stages begin.
    rng = np.random.default_rng(seed)
    w1 = jnp.asarray(rng.normal(0, 0.1, (64, HIDDEN)), jnp.float32)
    w2 = jnp.asarray(rng.normal(0, 0.1, (HIDDEN, CLASSES)), jnp.float32)
    return w1, jnp.zeros(HIDDEN), w2, jnp.zeros(CLASSES)


def forward(params, image):
    """Log-probabilities (classes,) of one image (64,)."""
    w1, b1, w2, b2 = params
    h = jnp.tanh(image @ w1 + b1)
    return jax.nn.log_softmax(h @ w2 + b2)


def image_loss(params, image, label):
    """Negative log-likelihood of one image's label."""
    return -forward(params, image)[label]


def loss(params, x, y):
    """Mean of the loss over a batch of images."""
    return jax.vmap(image_loss, in_axes=(None, 0, 0))(params, x, y).mean()


def step(params, x, y):
    """One step of gradient descent on all images."""
    value, gradient = jax.value_and_grad(loss)(params, x, y)
    return tuple(p - RATE * g for p, g in zip(params, gradient, strict=True)), value


def accuracy(params, x, y):
    """The share of images whose digit is found."""
    logp = jax.vmap(forward, in_axes=(None, 0))(params, x)
    return (logp.argmax(axis=1) == y).mean()


def init_all(seeds):
    """Weights of one network a seed, stacked: each array gains a first axis."""
    networks = [init(seed) for seed in seeds]
    return tuple(jnp.stack(arrays) for arrays in zip(*networks, strict=True))


# The networks differ in their weights and share the images.
step_all = jax.jit(jax.vmap(step, in_axes=(0, None, None)))
accuracy_all = jax.jit(jax.vmap(accuracy, in_axes=(0, None, None)))


def train(step, params, x, y):
    """Trained weights, the last loss, and the seconds that a step took."""
    # Compiles the step, so that the clock below times steps alone.
    jax.block_until_ready(step(params, x, y))
    began = time.perf_counter()
    for _ in range(STEPS):
        params, value = step(params, x, y)
    jax.block_until_ready(params)
    return params, value, (time.perf_counter() - began) / STEPS


def main():
    images, test = load()
    params, value, seconds = train(jax.jit(step), init(seed=0), *images)
    print(f"loss {value:.3f}, test accuracy {accuracy(params, *test):.3f}")
    print(f"{1e3 * seconds:.2f} ms a step")

    params, values, seconds = train(step_all, init_all(range(SEEDS)), *images)
    found = accuracy_all(params, *test)
    print(f"{SEEDS} networks: loss {values.min():.3f} to {values.max():.3f}, ", end="")
    print(f"test accuracy {found.min():.3f} to {found.max():.3f}")
    print(f"{1e3 * seconds:.2f} ms a step, {1e3 * seconds / SEEDS:.2f} ms a network")


if __name__ == "__main__":
    main()
