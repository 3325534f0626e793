# /// script
# dependencies = ["jax", "scikit-learn"]
# ///
"""Reading handwritten digits, stage 2: `jax.numpy`, and the step compiled by `jax.jit`.

The network, its training and the gradient worked out by hand are those of
`digits_numpy`. What is new is that one step is one compiled program.
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
    # Drawn by NumPy, to begin where the earlier stage begins.
    rng = np.random.default_rng(seed)
    w1 = jnp.asarray(rng.normal(0, 0.1, (64, HIDDEN)), jnp.float32)
    w2 = jnp.asarray(rng.normal(0, 0.1, (HIDDEN, CLASSES)), jnp.float32)
    return w1, jnp.zeros(HIDDEN), w2, jnp.zeros(CLASSES)


def forward(params, x):
    """Hidden values (n, hidden) and log-probabilities (n, classes)."""
    w1, b1, w2, b2 = params
    h = jnp.tanh(x @ w1 + b1)
    return h, jax.nn.log_softmax(h @ w2 + b2)


def loss_and_gradient(params, x, y):
    """Mean negative log-likelihood, and its derivative for each weight."""
    w2 = params[2]
    h, logp = forward(params, x)
    n = len(y)
    loss = -logp[jnp.arange(n), y].mean()
    dlogits = (jnp.exp(logp) - jax.nn.one_hot(y, CLASSES)) / n
    dh = dlogits @ w2.T * (1 - h**2)
    return loss, (x.T @ dh, dh.sum(axis=0), h.T @ dlogits, dlogits.sum(axis=0))


@jax.jit
def step(params, x, y):
    """One step of gradient descent on all images."""
    loss, gradient = loss_and_gradient(params, x, y)
    return tuple(p - RATE * g for p, g in zip(params, gradient, strict=True)), loss


def accuracy(params, x, y):
    """The share of images whose digit is found."""
    return (forward(params, x)[1].argmax(axis=1) == y).mean()


def main():
    train, test = load()
    params = init(seed=0)
    # Compiles the step, so that the clock below times steps alone.
    jax.block_until_ready(step(params, *train))
    began = time.perf_counter()
    for _ in range(STEPS):
        params, loss = step(params, *train)
    jax.block_until_ready(params)
    seconds = time.perf_counter() - began
    print(f"loss {loss:.3f}, test accuracy {accuracy(params, *test):.3f}")
    print(f"{1e3 * seconds / STEPS:.2f} ms a step")


if __name__ == "__main__":
    main()
