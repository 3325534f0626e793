# /// script
# dependencies = ["jax", "scikit-learn"]
# ///
"""Reading handwritten digits, stage 4: the gradient comes from `jax.value_and_grad`.

The network, its loss and its training are those of `digits_numpy`. What is gone is
the derivative that was worked out by hand: only the loss is written down.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_digits

HIDDEN, CLASSES = 64, 10
STEPS, RATE = 300, 0.5


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


def forward(params, x):
    """Log-probabilities (n, classes)."""
    w1, b1, w2, b2 = params
    h = jnp.tanh(x @ w1 + b1)
    return jax.nn.log_softmax(h @ w2 + b2)


def loss(params, x, y):
    """Mean negative log-likelihood."""
    logp = forward(params, x)
    return -logp[jnp.arange(len(y)), y].mean()


@jax.jit
def step(params, x, y):
    """One step of gradient descent on all images."""
    value, gradient = jax.value_and_grad(loss)(params, x, y)
    return tuple(p - RATE * g for p, g in zip(params, gradient, strict=True)), value


def accuracy(params, x, y):
    """The share of images whose digit is found."""
    return (forward(params, x).argmax(axis=1) == y).mean()


def main():
    train, test = load()
    params = init(seed=0)
    # Compiles the step, so that the clock below times steps alone.
    jax.block_until_ready(step(params, *train))
    began = time.perf_counter()
    for _ in range(STEPS):
        params, value = step(params, *train)
    jax.block_until_ready(params)
    seconds = time.perf_counter() - began
    print(f"loss {value:.3f}, test accuracy {accuracy(params, *test):.3f}")
    print(f"{1e3 * seconds / STEPS:.2f} ms a step")


if __name__ == "__main__":
    main()
