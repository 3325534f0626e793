"""measure on functions and models of libraries."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from justafter import measure

QUICK = {"budget": 0.05, "precision": 0.5}


def test_nnx_jit_with_state():
    with jax.numpy_dtype_promotion("standard"):
        model = nnx.Linear(3, 2, rngs=nnx.Rngs(0))
        optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

        @nnx.jit
        def step(model, optimizer, x):
            loss, slopes = nnx.value_and_grad(lambda model: model(x).sum())(model)
            optimizer.update(model, slopes)
            return loss

        m = measure(step, model, optimizer, jnp.ones((5, 3)), **QUICK)
    assert m.first.samples == 1
    assert "flax jitted this function" in m.note
