# /// script
# dependencies = ["jax", "scikit-learn"]
# ///
"""Reading handwritten digits, stage 6: parameters in a tree, and Adam by tree maps.

The network may have any number of layers, held as a list of dicts. Nothing below
`init` and `forward` knows how many there are: the gradient, the optimizer's state
and the update are trees of the same structure.
"""

import time
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_digits

SIZES = (64, 64, 10)
STEPS, RATE = 300, 0.01


def load():
    """Training and test images (n, 64) in [0, 1], and their labels (n,)."""
    digits = load_digits()
    x = jnp.asarray(digits.data / 16, jnp.float32)
    y = jnp.asarray(digits.target, jnp.int32)
    return (x[:1500], y[:1500]), (x[1500:], y[1500:])


def init(seed, sizes=SIZES):
    """One dict a layer: weights w (inputs, outputs) and biases b (outputs,)."""
    # Drawn by NumPy, to begin where the earlier stages begin.
    rng = np.random.default_rng(seed)
    return [
        {
            "w": jnp.asarray(rng.normal(0, 0.1, (m, n)), jnp.float32),
            "b": jnp.zeros(n),
        }
        for m, n in pairwise(sizes)
    ]


def forward(params, x):
    """Log-probabilities (n, classes)."""
    *hidden, last = params
    for layer in hidden:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return jax.nn.log_softmax(x @ last["w"] + last["b"])


def loss(params, x, y):
    """Mean negative log-likelihood."""
    logp = forward(params, x)
    return -logp[jnp.arange(len(y)), y].mean()


def adam_init(params):
    """Adam's state: a step count, and two trees of zeros like the parameters."""
    zeros = jax.tree.map(jnp.zeros_like, params)
    return {"step": jnp.zeros((), jnp.int32), "mean": zeros, "square": zeros}


def adam(params, gradient, opt_state, rate=RATE, b1=0.9, b2=0.999, eps=1e-8):
    """Parameters and optimizer state after one step of Adam."""
    step = opt_state["step"] + 1
    mean = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, opt_state["mean"], gradient)
    square = jax.tree.map(
        lambda s, g: b2 * s + (1 - b2) * g**2, opt_state["square"], gradient
    )

    def update(p, m, s):
        # Both averages began at zero; dividing takes that bias out.
        m, s = m / (1 - b1**step), s / (1 - b2**step)
        return p - rate * m / (jnp.sqrt(s) + eps)

    params = jax.tree.map(update, params, mean, square)
    return params, {"step": step, "mean": mean, "square": square}


@jax.jit
def step(params, opt_state, x, y):
    """One step of Adam on all images."""
    value, gradient = jax.value_and_grad(loss)(params, x, y)
    params, opt_state = adam(params, gradient, opt_state)
    return params, opt_state, value


def accuracy(params, x, y):
    """The share of images whose digit is found."""
    return (forward(params, x).argmax(axis=1) == y).mean()


def main():
    train, test = load()
    params = init(seed=0)
    opt_state = adam_init(params)
    # Compiles the step, so that the clock below times steps alone.
    jax.block_until_ready(step(params, opt_state, *train))
    began = time.perf_counter()
    for _ in range(STEPS):
        params, opt_state, value = step(params, opt_state, *train)
    jax.block_until_ready(params)
    seconds = time.perf_counter() - began
    print(f"loss {value:.3f}, test accuracy {accuracy(params, *test):.3f}")
    print(f"{1e3 * seconds / STEPS:.2f} ms a step")


if __name__ == "__main__":
    main()
