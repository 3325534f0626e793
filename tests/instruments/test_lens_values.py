"""Of what a lens calls gone: algebra says why, without compiling."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from justafter import Lens, lens

from .lens_values import gone_for

X = jnp.ones((3, 3))


def reasons(fn, *args) -> dict[str, str]:
    view = lens(fn, *args)
    return {view.equations[i].primitive: why for i, why in gone_for(view).items()}


def test_each_reason():
    assert reasons(lambda x: jnp.sin(x) + jnp.sin(x), X) == {"sin": "done by another"}
    kept = reasons(lambda x: jnp.maximum(x, -jnp.inf) * 2, X)
    assert kept == {"max": "equal to its input"}
    assert reasons(lambda x: jnp.exp(x)[None][0], X)["squeeze"] == "a move"

    def turn(state):
        i, x, aside = state
        return i + 1, jnp.sin(x), jnp.cos(aside)

    def loop(x):
        return lax.while_loop(lambda state: state[0] < 3, turn, (0, x, x))[1]

    assert reasons(loop, X) == {"cos": "not needed"}


def as_if_gone(view: Lens, primitive: str) -> Lens:
    """A lens that is wrong about one primitive."""
    equations = tuple(
        replace(one, fate="gone", kernels=()) if one.primitive == primitive else one
        for one in view.equations
    )
    return replace(view, equations=equations)


@pytest.mark.parametrize("primitive", ["dot_general", "tanh", "mul"])
def test_a_wrong_lens_is_found(primitive):
    def carry(w, x):
        return lax.scan(lambda c, r: (jnp.tanh(w @ c) * r, c), x[0], x)

    view = lens(carry, X, X)
    assert "?" not in gone_for(view).values()
    wrong = gone_for(as_if_gone(view, primitive))
    assert "?" in wrong.values()


def test_the_gradient_of_a_block_of_layers():
    def loss(w, x):
        h = x - x.mean(-1, keepdims=True)
        h = h / jnp.sqrt(h.var(-1, keepdims=True) + 1e-6)
        return jnp.sin(jax.nn.softmax(jax.nn.gelu(h @ w) @ w.T)).sum()

    view = lens(jax.grad(loss), X, X)
    found = gone_for(view)
    assert len(found) > 5
    assert "?" not in found.values()
