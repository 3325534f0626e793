"""watch on functions that libraries jit: Equinox, Flax NNX, Diffrax, Optax."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import pytest
from flax import nnx

from justafter import RetraceError, watch


def rows(n):
    return jnp.ones((n, 3))


def mlp(width=8, depth=1, act=jax.nn.relu):
    return eqx.nn.MLP(3, 1, width, depth, activation=act, key=jax.random.key(0))


def filtered():
    @eqx.filter_jit
    def step(model, x):
        return jax.vmap(model)(x)

    return step, mlp()


def gradient():
    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def step(model, x):
        return jax.vmap(model)(x).sum()

    return step, mlp()


def of_nnx():
    @nnx.jit
    def step(model, x):
        return model(x)

    return step, nnx.Linear(3, 2, rngs=nnx.Rngs(0))


def method():
    class Scaled(eqx.Module):
        w: jax.Array

        @eqx.filter_jit
        def step(self, x):
            return x * self.w

    return Scaled.step, Scaled(jnp.ones(3))


@pytest.fixture(params=[filtered, gradient, of_nnx, method])
def made(request):
    return request.param()


def test_counts_agree_however_one_asks(made):
    step, model = made
    with watch(only=step) as chosen, watch() as log:
        for n in (4, 4, 5):
            step(model, rows(n))
    for record in (log["step"], log[step], chosen["step"], chosen[step]):
        assert (record.traces, record.compilations) == (2, 2)
        assert record.why == ("new shape",)
    assert log[step.__wrapped__] is log[step]
    assert log["step"].history[1].where.startswith("test_watch.py:")


def test_a_bound_method_of_equinox():
    step, model = method()
    with watch() as log, watch(only=model.step) as chosen:
        model.step(rows(4))
    for record in (log[model.step], log[step], chosen["step"]):
        assert (record.traces, record.compilations) == (1, 1)


def test_two_optimizers_of_one_kind_are_two_entries():
    updates = [optax.sgd(rate).update for rate in (0.1, 0.2)]
    with watch() as log, watch(only=updates) as chosen:
        for kind in (jax.jit, eqx.filter_jit):
            for update in updates:
                kind(update)(jnp.ones(3), optax.sgd(0.1).init(jnp.ones(3)))
    for update in updates:
        assert log[update].why == chosen[update].why == ("fresh function object",)
    assert len(log) == len(chosen) == 2


def test_max_traces(made):
    step, model = made
    with watch(max_traces=1, only=step):
        step(model, rows(4))
        with pytest.raises(RetraceError, match=r"test_watch.py:\d+.*float32\[5,3\]"):
            step(model, rows(5))
    step(model, rows(5))


def test_a_library_is_one_line_of_the_table():
    def solve(y):
        term = diffrax.ODETerm(lambda t, y, args: -y)
        return diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 1.0, 0.1, y).ys

    solver = jax.jit(solve)
    with watch(max_traces=1) as log:  # which holds for `solve`
        solver(jnp.ones(2))
        with pytest.raises(RetraceError, match="solve would be traced again"):
            solver(jnp.ones(3))
    assert log.traces > len(log)  # Equinox makes some of its functions anew
    lines = [line for line in repr(log).splitlines() if not line.startswith("  ")]
    assert len(lines) <= 6, repr(log)
    assert any(line.startswith("equinox: ") for line in lines)
    assert len(log) > len(lines)


def test_an_attribute_of_a_graph_has_its_name():
    net = nnx.Dropout(0.5, rngs=nnx.Rngs(0))
    step = nnx.jit(lambda net, x: net(x))
    step(net, rows(4))
    net.eval()
    with watch(only=step) as log:
        step(net, rows(4))
    (why,) = log[step].history[0].why
    assert "deterministic.value was False, now True" in why.text


def test_a_function_that_was_not_called_while_a_library_worked():
    step, _ = filtered()
    with watch() as log:
        jax.jit(lambda y: eqx.filter_jit(jnp.sin)(y))(1.0)
    assert log[step].traces == 0


def test_a_reason_names_what_differs_in_a_model_and_no_more():
    x, (predict, _) = rows(4), filtered()
    first = jax.jit(lambda model, x: x @ model.layers[0].weight.T)
    models = mlp(), mlp(act=jax.nn.silu), mlp(16)
    with watch() as log:
        for model in models:
            predict(model, x)
            first(eqx.filter(model, eqx.is_array), x)
    shown = [str(why) for one in log[predict].history for why in one.why]
    assert "static value: static[1].activation was relu, now silu" in shown
    assert any("static[1].width_size was 8, now 16" in text for text in shown)
    assert shown[-1].startswith("new shape: dynamic_nodonate")
    assert "PyTreeDef" not in repr(log)
    (tree, *_) = log[first].history[-1].why
    assert tree.kind == "tree structure"
    assert "model.width_size was 8, now 16" in tree.text
    assert "model.layers[0].out_features was 8, now 16" in tree.text


class Pair(nnx.Module):
    """Two layers, and the activation between them."""

    def __init__(self, width=8, act=nnx.relu):
        rngs = nnx.Rngs(0)
        self.up = nnx.Linear(3, width, rngs=rngs)
        self.down = nnx.Linear(width, 3, rngs=rngs)
        self.act = act

    def __call__(self, x):
        return self.down(self.act(self.up(x)))


WIDE = "m.down.in_features was 8, now 16; m.up.out_features was 8, now 16"
OF_A_MODULE = {
    f"tree structure: {WIDE}": lambda: Pair(16),
    "tree structure: m.act was relu, now silu": lambda: Pair(act=nnx.silu),
}


@pytest.mark.parametrize("expected", OF_A_MODULE)
def test_a_reason_names_an_attribute_of_a_flax_module(expected):
    apply = jax.jit(lambda m, x: m(x))
    with jax.numpy_dtype_promotion("standard"), watch(only=apply) as log:
        for model in (Pair(), OF_A_MODULE[expected]()):
            apply(model, rows(4))
    first, *more = (str(why).replace(".value", "") for why in log[apply].history[1].why)
    assert first == expected
    shape = "m.down.kernel was float32[8,3], now float32[16,3] (and 2 more)"
    assert more == ([f"new shape: {shape}"] if WIDE in expected else [])
