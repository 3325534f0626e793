# /// script
# dependencies = ["numpy", "scikit-learn"]
# ///
"""Reading handwritten digits, stage 1: NumPy, with the gradient worked out by hand.

A network with one hidden layer learns to tell scikit-learn's 8x8 images of digits
apart. Every later stage of this program does the same work, faster or with less
code: `digits_jit`, `digits_scan`, `digits_grad`, `digits_vmap`, `digits_tree`.
"""

import time

import numpy as np
from sklearn.datasets import load_digits

HIDDEN, CLASSES = 64, 10
STEPS, RATE = 300, 0.5


def load():
    """Training and test images (n, 64) in [0, 1], and their labels (n,)."""
    digits = load_digits()
    x = (digits.data / 16).astype(np.float32)
    y = digits.target.astype(np.int32)
    return (x[:1500], y[:1500]), (x[1500:], y[1500:])


def init(seed):
    """Weights w1 (64, hidden), b1, w2 (hidden, classes), b2."""
    rng = np.random.default_rng(seed)
    w1 = rng.normal(0, 0.1, (64, HIDDEN)).astype(np.float32)
    w2 = rng.normal(0, 0.1, (HIDDEN, CLASSES)).astype(np.float32)
    return w1, np.zeros(HIDDEN, np.float32), w2, np.zeros(CLASSES, np.float32)


def forward(params, x):
    """Hidden values (n, hidden) and log-probabilities (n, classes)."""
    w1, b1, w2, b2 = params
    h = np.tanh(x @ w1 + b1)
    logits = h @ w2 + b2
    logits = logits - logits.max(axis=1, keepdims=True)
    return h, logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def loss_and_gradient(params, x, y):
    """Mean negative log-likelihood, and its derivative for each weight."""
    w2 = params[2]
    h, logp = forward(params, x)
    n = len(y)
    loss = -logp[np.arange(n), y].mean()
    dlogits = np.exp(logp)
    dlogits[np.arange(n), y] -= 1
    dlogits /= n
    dh = dlogits @ w2.T * (1 - h**2)
    return loss, (x.T @ dh, dh.sum(axis=0), h.T @ dlogits, dlogits.sum(axis=0))


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
    began = time.perf_counter()
    for _ in range(STEPS):
        params, loss = step(params, *train)
    seconds = time.perf_counter() - began
    print(f"loss {loss:.3f}, test accuracy {accuracy(params, *test):.3f}")
    print(f"{1e3 * seconds / STEPS:.2f} ms a step")


if __name__ == "__main__":
    main()
