"""LoRA as a transformation: on functions of many kinds, and on a network."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from .conftest import load, run

program = load("lora")
KEY = jax.random.key(0)


def normal(*shape: int, seed: int = 0) -> jax.Array:
    return jax.random.normal(jax.random.key(seed), shape)


@jax.custom_vjp
def doubled_backward(w, x):
    return x @ w


doubled_backward.defvjp(
    lambda w, x: (x @ w, (w, x)), lambda kept, g: (2 * kept[1].T @ g, 2 * g @ kept[0].T)
)

WEIGHT, STACK = normal(6, 6), normal(3, 6, 6)
FUNCTIONS: dict[str, tuple[Callable, jax.Array]] = {
    "on the right": (lambda w, x: x @ w, WEIGHT),
    "on the left": (lambda w, x: (w @ x.T).T, WEIGHT),
    "transposed": (lambda w, x: x @ w.T, WEIGHT),
    "transposed on the left": (lambda w, x: (w.T @ x.T).T, WEIGHT),
    "einsum": (lambda w, x: jnp.einsum("ni,oi->no", x, w), WEIGHT),
    "one vector": (lambda w, x: x[0] @ w, WEIGHT),
    "used twice": (lambda w, x: x @ w @ w + (w * w).sum(), WEIGHT),
    "with itself": (lambda w, x: x @ (w @ w), WEIGHT),
    "both sides contracted": (lambda w, x: jnp.tensordot(w, x.T @ x, 2) * x, WEIGHT),
    "another precision": (
        lambda w, x: x @ w.astype(jnp.bfloat16).astype(x.dtype),
        WEIGHT,
    ),
    "looked up": (lambda w, x: w[jnp.array([1, 2])], WEIGHT),
    "returned": (lambda w, x: (w, x), WEIGHT),
    "jit": (lambda w, x: jax.jit(lambda a, b: jnp.tanh(a @ b))(x, w), WEIGHT),
    "checkpoint": (jax.checkpoint(lambda w, x: jnp.tanh(x @ w)), WEIGHT),
    "relu of it": (lambda w, x: x @ jax.nn.relu(w), WEIGHT),
    "custom vjp": (doubled_backward, WEIGHT),
    "cond": (lambda w, x: lax.cond(x[0, 0] < 9, lambda: x @ w, lambda: x), WEIGHT),
    "while": (lambda w, x: lax.fori_loop(0, 3, lambda _, c: c @ w, x), WEIGHT),
    "scan, constant": (
        lambda w, x: lax.scan(lambda c, _: (c @ w, c), x, length=3),
        WEIGHT,
    ),
    "scan, stacked": (lambda w, x: lax.scan(lambda c, m: (c @ m, c), x, w), STACK),
    "scan, reversed": (
        lambda w, x: lax.scan(lambda c, m: (c @ m, c), x, w, reverse=True),
        STACK,
    ),
    "scan, rows": (lambda w, x: lax.scan(lambda c, r: (c + r, c), x, w), WEIGHT),
    "scan, carried": (lambda w, x: lax.scan(lambda m, r: (m, r @ m), w, x), WEIGHT),
    "vmap": (lambda w, x: jax.vmap(lambda m: x @ m)(w), STACK),
    "its gradient": (lambda w, x: jax.grad(lambda x: jnp.tanh(x @ w).sum())(x), WEIGHT),
}


def pieces(name: str) -> tuple:
    f, w = FUNCTIONS[name]
    adapters = program.init(KEY, w, 2)
    [(a, b)] = adapters
    return f, w, normal(4, 6, seed=1), [(a, b + normal(*b.shape, seed=2))]


def close(ours, theirs, **more) -> None:
    jax.tree.map(partial(np.testing.assert_allclose, **more), ours, theirs)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_adapted_is_what_merged_weights_give(name: str):
    f, w, x, adapters = pieces(name)
    loose = 0.1 if name == "another precision" else 1e-4
    g = program.lora(f)
    merged = f(program.merge(adapters, w), x)
    close(g(adapters, w, x), merged, rtol=loose, atol=loose)
    close(jax.jit(g)(adapters, w, x), merged, rtol=loose, atol=loose)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_untrained_adapters_change_no_bit(name: str):
    f, w, x, _ = pieces(name)
    ours = program.lora(f)(program.init(KEY, w, 2), w, x)
    jax.tree.map(np.testing.assert_array_equal, ours, f(w, x))


@pytest.mark.parametrize("name", sorted({*FUNCTIONS} - {"another precision", "while"}))
def test_its_gradient_is_that_of_merged_weights(name: str):
    f, w, x, adapters = pieces(name)

    def through(function):
        return lambda adapters: sum(
            jnp.sin(leaf).sum() for leaf in jax.tree.leaves(function(adapters))
        )

    ours = jax.grad(through(lambda p: program.lora(f)(p, w, x)))(adapters)
    theirs = jax.grad(through(lambda p: f(program.merge(p, w), x)))(adapters)
    close(ours, theirs, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "name",
    [
        *("on the right", "on the left", "transposed", "einsum", "jit", "checkpoint"),
        *("scan, stacked", "scan, constant"),
    ],
)
def test_the_weight_is_never_merged_where_a_product_takes_it(name: str):
    """No array of the weight's own shape is computed from the thin matrices."""
    f, w, x, adapters = pieces(name)
    text = str(jax.make_jaxpr(program.lora(f))(adapters, w, x))
    assert "f32[6,6] = add" not in text
    assert "f32[3,6,6] = add" not in text


def test_several_adapters_at_once():
    f, w, x, [(a, b)] = pieces("scan, stacked")
    together = [(jnp.stack([a, 2 * a]), jnp.stack([b, b]))]
    both, _ = jax.vmap(program.lora(f), in_axes=(0, None, None))(together, w, x)
    for i in range(2):
        close(both[i], program.lora(f)([((i + 1) * a, b)], w, x)[0], rtol=1e-4)


@pytest.mark.parametrize("make", ["from_flax", "from_equinox"])
def test_the_three_models_are_one_function(make: str):
    base = program.plain_init(KEY, 32, 2)
    forward, weights = getattr(program, make)(base)
    x = normal(5, 64)
    close(forward(weights, x), program.plain(base, x), atol=1e-5)


@pytest.mark.weekly
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_at_its_real_size_each_adapter_does_its_task(seed: int, tmp_path: Path):
    found = run("lora", tmp_path, seed)
    assert found["base"] > 0.9
    assert found["base unchanged"]
    for task, right in found["accuracy"].items():
        assert right["LoRA"] > right["frozen"] + 0.35, task
        assert right["LoRA"] > right["biases"] + 0.1, task
    for task in ("mirrored", "turned", "glare"):
        right = found["accuracy"][task]
        assert right["LoRA"] > right["last layer"] + 0.02
        assert right["LoRA"] > right["everything"] - 0.05
    # As the pages say: neighbors read three tasks better, and fail under glare.
    for task in ("mirrored", "turned", "inverted"):
        right = found["accuracy"][task]
        assert right["neighbors"] > sorted(right.values())[-2]
    glare = found["accuracy"]["glare"]
    assert glare["neighbors"] < glare["LoRA"] - 0.3
    # Where the last layer is enough, LoRA is no substitute for it.
    inverted = found["accuracy"]["inverted"]
    assert inverted["last layer"] > inverted["LoRA"]
    share = found["costs"]["LoRA"]["trained"] / found["costs"]["everything"]["trained"]
    assert share < 0.06
    for apart in found["apart"].values():
        assert apart["untrained"] == 0
        assert apart["merged"] < 1e-3
