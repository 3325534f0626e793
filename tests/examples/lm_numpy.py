"""The model of `examples/lm` written again in plain NumPy, to compare with."""

from __future__ import annotations

from typing import Any

import numpy as np


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
    return np.concatenate([turned.real, turned.imag], axis=-1).astype(np.float32)


def attention(w: dict[str, Any], x: np.ndarray, c: int) -> np.ndarray:
    def heads(name: str) -> np.ndarray:
        y = x @ w[name]["kernel"]
        return y.reshape(*x.shape[:2], -1, c).swapaxes(1, 2)

    query, key, value = (heads(name) for name in ("query", "key", "value"))
    shared = query.shape[1] // key.shape[1]  # each key serves a group of queries
    query, key = rotate(query), np.repeat(rotate(key), shared, axis=1)
    later = np.triu(np.full((x.shape[1], x.shape[1]), -np.inf, np.float32), 1)
    weights = softmax(query @ key.swapaxes(-1, -2) / np.float32(c) ** 0.5 + later)
    out = weights @ np.repeat(value, shared, axis=1)
    return out.swapaxes(1, 2).reshape(*x.shape[:2], -1) @ w["output"]["kernel"]


def swiglu(w: dict[str, Any], x: np.ndarray) -> np.ndarray:
    gate = x @ w["gate"]["kernel"]
    return (gate / (1 + np.exp(-gate)) * (x @ w["up"]["kernel"])) @ w["down"]["kernel"]


def logits(params: dict[str, Any], tokens: np.ndarray, heads: int) -> np.ndarray:
    """Logits (b, t, vocab) of tokens (b, t) by float32 weights of NumPy."""
    table, blocks = params["embed"]["embedding"], params["blocks"]
    x, c = table[tokens], table.shape[1] // heads
    for i in range(len(blocks["before_mlp"]["scale"])):
        w = layer(blocks, i)
        x = x + attention(w["attention"], norm(x, w["before_attention"]["scale"]), c)
        x = x + swiglu(w["mlp"], norm(x, w["before_mlp"]["scale"]))
    return norm(x, params["norm"]["scale"]) @ table.T


def layer(stacked: dict[str, Any], i: int) -> dict[str, Any]:
    """The weights of one layer, out of stacks of them."""
    return {
        name: layer(leaf, i) if isinstance(leaf, dict) else leaf[i]
        for name, leaf in stacked.items()
    }
