"""The model of `examples/lm` written again in plain NumPy, to compare with.

A function returns its result, and a second function: from the gradient with respect to
the result to those with respect to its arguments.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

Weights = dict[str, Any]


def norm(x: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, Callable]:
    size = np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-6)
    unit = x / size

    def backward(grad: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        of_unit = grad * scale
        along = (of_unit * unit).mean(axis=-1, keepdims=True)
        return (of_unit - unit * along) / size, summed(grad * unit)

    return unit * scale, backward


def summed(x: np.ndarray) -> np.ndarray:
    return x.reshape(-1, x.shape[-1]).sum(axis=0)


def softmax(x: np.ndarray) -> np.ndarray:
    x = np.exp(x - x.max(axis=-1, keepdims=True))
    return x / x.sum(axis=-1, keepdims=True)


def linear(w: Weights, x: np.ndarray) -> tuple[np.ndarray, Callable]:
    def backward(grad: np.ndarray) -> tuple[np.ndarray, Weights]:
        rows = x.reshape(-1, x.shape[-1]).T @ grad.reshape(-1, grad.shape[-1])
        return grad @ w["kernel"].T, {"kernel": rows}

    return x @ w["kernel"], backward


def rotate(x: np.ndarray, way: int = 1) -> np.ndarray:
    """Turn pairs of features of x (b, heads, t, c) by angles that grow with t.

    The other way, -1, undoes that, and takes gradients back.
    """
    half = x.shape[-1] // 2
    angles = np.arange(x.shape[-2])[:, None] * 10_000.0 ** (-np.arange(half) / half)
    turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(way * 1j * angles)
    return np.concatenate([turned.real, turned.imag], axis=-1).astype(np.float32)


def attention(w: Weights, x: np.ndarray, c: int) -> tuple[np.ndarray, Callable]:
    b, t, _ = x.shape
    names = "query", "key", "value"
    made, back = zip(*(linear(w[name], x) for name in names), strict=True)
    query, key, value = (y.reshape(b, t, -1, c).swapaxes(1, 2) for y in made)
    shared = query.shape[1] // key.shape[1]  # each key serves a group of queries
    query, key = rotate(query), np.repeat(rotate(key), shared, axis=1)
    value = np.repeat(value, shared, axis=1)
    later = np.triu(np.full((t, t), -np.inf, np.float32), 1)
    root = np.float32(c) ** 0.5
    weights = softmax(query @ key.swapaxes(-1, -2) / root + later)
    joined = (weights @ value).swapaxes(1, 2).reshape(b, t, -1)
    out, back_of_output = linear(w["output"], joined)

    def backward(grad: np.ndarray) -> tuple[np.ndarray, Weights]:
        grad, of_output = back_of_output(grad)
        grad = grad.reshape(b, t, -1, c).swapaxes(1, 2)
        of_weights = grad @ value.swapaxes(-1, -2)
        inside = (of_weights * weights).sum(axis=-1, keepdims=True)
        of_logits = weights * (of_weights - inside) / root
        groups = b, -1, shared, t, c
        of_key = (of_logits.swapaxes(-1, -2) @ query).reshape(groups).sum(axis=2)
        of_value = (weights.swapaxes(-1, -2) @ grad).reshape(groups).sum(axis=2)
        heads = rotate(of_logits @ key, -1), rotate(of_key, -1), of_value
        rows = (y.swapaxes(1, 2).reshape(b, t, -1) for y in heads)
        grads = [f(y) for f, y in zip(back, rows, strict=True)]
        of_w = {name: g for name, (_, g) in zip(names, grads, strict=True)}
        return sum(g for g, _ in grads), {**of_w, "output": of_output}

    return out, backward


def swiglu(w: Weights, x: np.ndarray) -> tuple[np.ndarray, Callable]:
    gate, back_of_gate = linear(w["gate"], x)
    up, back_of_up = linear(w["up"], x)
    share = 1 / (1 + np.exp(-gate))
    out, back_of_down = linear(w["down"], gate * share * up)

    def backward(grad: np.ndarray) -> tuple[np.ndarray, Weights]:
        grad, of_down = back_of_down(grad)
        by_gate, of_gate = back_of_gate(grad * up * share * (1 + gate * (1 - share)))
        by_up, of_up = back_of_up(grad * gate * share)
        return by_gate + by_up, {"gate": of_gate, "up": of_up, "down": of_down}

    return out, backward


def block(w: Weights, x: np.ndarray, c: int) -> tuple[np.ndarray, Callable]:
    scaled, back_1 = norm(x, w["before_attention"]["scale"])
    attended, back_2 = attention(w["attention"], scaled, c)
    middle = x + attended
    scaled, back_3 = norm(middle, w["before_mlp"]["scale"])
    changed, back_4 = swiglu(w["mlp"], scaled)

    def backward(grad: np.ndarray) -> tuple[np.ndarray, Weights]:
        by_mlp, of_mlp = back_4(grad)
        by_norm, of_scale_2 = back_3(by_mlp)
        grad = grad + by_norm
        by_attention, of_attention = back_2(grad)
        by_norm, of_scale_1 = back_1(by_attention)
        return grad + by_norm, {
            "attention": of_attention,
            "mlp": of_mlp,
            "before_attention": {"scale": of_scale_1},
            "before_mlp": {"scale": of_scale_2},
        }

    return middle + changed, backward


def forward(params: Weights, tokens: np.ndarray, heads: int):
    table, blocks = params["embed"]["embedding"], params["blocks"]
    x, backs = table[tokens], []
    for i in range(len(blocks["before_mlp"]["scale"])):
        x, back = block(layer(blocks, i), x, table.shape[1] // heads)
        backs.append(back)
    last, back_of_norm = norm(x, params["norm"]["scale"])

    def backward(grad: np.ndarray) -> Weights:
        flat = grad.reshape(-1, len(table))
        of_table = flat.T @ last.reshape(-1, last.shape[-1])
        grad, of_scale = back_of_norm(grad @ table)
        of_blocks = []
        for back in reversed(backs):
            grad, of_block = back(grad)
            of_blocks.insert(0, of_block)
        np.add.at(of_table, tokens, grad)
        embed, scale = {"embedding": of_table}, {"scale": of_scale}
        return {"embed": embed, "blocks": stacked(of_blocks), "norm": scale}

    return last @ table.T, backward


def logits(params: Weights, tokens: np.ndarray, heads: int) -> np.ndarray:
    """Logits (b, t, vocab) of tokens (b, t) by float32 weights of NumPy."""
    return forward(params, tokens, heads)[0]


def loss_and_grads(params: Weights, rows: np.ndarray, heads: int):
    """The mean loss of predicting the next token of rows (b, t + 1), and its grads."""
    tokens, wanted = rows[:, :-1], rows[:, 1:, None]
    out, backward = forward(params, tokens, heads)
    shares = softmax(out)
    loss = -np.log(np.take_along_axis(shares, wanted, axis=-1)).mean()
    hit = np.take_along_axis(shares, wanted, axis=-1) - 1
    np.put_along_axis(shares, wanted, hit, axis=-1)
    return loss, backward(shares / wanted.size)


def layer(stack: Weights, i: int) -> Weights:
    """The weights of one layer, out of stacks of them."""
    return {
        name: layer(leaf, i) if isinstance(leaf, dict) else leaf[i]
        for name, leaf in stack.items()
    }


def stacked(layers: list[Weights]) -> Weights:
    """Stacks of the weights of layers: `layer` takes one out again."""
    return {
        name: stacked([one[name] for one in layers])
        if isinstance(leaf, dict)
        else np.stack([one[name] for one in layers])
        for name, leaf in layers[0].items()
    }
