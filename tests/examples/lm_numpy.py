"""The model of `examples/lm` written again in plain NumPy, to compare with."""

from typing import Any

import numpy as np

Weights = dict[str, Any]


def norm(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-6) * scale


def softmax(x: np.ndarray) -> np.ndarray:
    x = np.exp(x - x.max(axis=-1, keepdims=True))
    return x / x.sum(axis=-1, keepdims=True)


def rotate(x: np.ndarray) -> np.ndarray:
    """Turn pairs of features of x (b, heads, t, c) by angles that grow with t."""
    half = x.shape[-1] // 2
    angles = np.arange(x.shape[-2])[:, None] * 10_000.0 ** (-np.arange(half) / half)
    turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)
    return np.concatenate([turned.real, turned.imag], axis=-1).astype(x.dtype)


def attention(w: Weights, x: np.ndarray, c: int) -> np.ndarray:
    b, t, _ = x.shape
    made = (x @ w[name]["kernel"] for name in ("query", "key", "value"))
    query, key, value = (y.reshape(b, t, -1, c).swapaxes(1, 2) for y in made)
    shared = query.shape[1] // key.shape[1]  # each key serves a group of queries
    query, key = rotate(query), np.repeat(rotate(key), shared, axis=1)
    value = np.repeat(value, shared, axis=1)
    later = np.triu(np.full((t, t), -np.inf, np.float32), 1)
    weights = softmax(query @ key.swapaxes(-1, -2) / np.float32(c) ** 0.5 + later)
    joined = (weights @ value).swapaxes(1, 2).reshape(b, t, -1)
    return joined @ w["output"]["kernel"]


def swiglu(w: Weights, x: np.ndarray) -> np.ndarray:
    gate, up = x @ w["gate"]["kernel"], x @ w["up"]["kernel"]
    return (gate / (1 + np.exp(-gate)) * up) @ w["down"]["kernel"]


def logits(params: Weights, tokens: np.ndarray, heads: int) -> np.ndarray:
    """Logits (b, t, vocab) of tokens (b, t), in the dtype of the weights."""
    table, blocks = params["embed"]["embedding"], params["blocks"]
    x, c = table[tokens], table.shape[1] // heads
    for i in range(len(blocks["before_mlp"]["scale"])):
        w = layer(blocks, i)
        x = x + attention(w["attention"], norm(x, w["before_attention"]["scale"]), c)
        x = x + swiglu(w["mlp"], norm(x, w["before_mlp"]["scale"]))
    return norm(x, params["norm"]["scale"]) @ table.T


def loss(params: Weights, rows: np.ndarray, heads: int) -> float:
    """The mean loss of predicting the next token of rows (b, t + 1)."""
    shares = softmax(logits(params, rows[:, :-1], heads))
    return -np.log(np.take_along_axis(shares, rows[:, 1:, None], axis=-1)).mean()


def layer(stack: Weights, i: int) -> Weights:
    return {
        name: layer(leaf, i) if isinstance(leaf, dict) else leaf[i]
        for name, leaf in stack.items()
    }
