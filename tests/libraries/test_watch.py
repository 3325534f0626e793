"""watch on functions that libraries jit: Equinox, Flax NNX, Diffrax, Optax."""

import subprocess
import sys

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen, nnx

from justafter import RetraceError, watch


def rows(n):
    return jnp.ones((n, 3))


def filtered():
    """A new `filter_jit` function and a model for it."""

    @eqx.filter_jit
    def step(model, x):
        return jax.vmap(model)(x)

    return step, eqx.nn.MLP(3, 2, 4, 1, key=jax.random.key(0))


def of_nnx(**options):
    """A new `nnx.jit` function and a model for it."""

    @nnx.jit(**options)
    def step(model, x):
        return model(x)

    return step, nnx.Linear(3, 2, rngs=nnx.Rngs(0))


FORMS = {"filter_jit": filtered, "nnx.jit": of_nnx}


@pytest.fixture(params=FORMS, name="made")
def _made(request):
    return FORMS[request.param]()


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


class Scaled(eqx.Module):
    """A model with a jitted method."""

    w: jax.Array

    @eqx.filter_jit
    def apply(self, x):
        return x * self.w


def test_a_bound_method_of_equinox():
    model = Scaled(jnp.ones(3))
    with watch() as log, watch(only=model.apply) as chosen:
        model.apply(rows(4))
        model.apply(rows(5))
    for record in (log["apply"], log[model.apply], log[Scaled.apply], chosen["apply"]):
        assert (record.traces, record.compilations) == (2, 2)
    assert chosen[model.apply].why == ("new shape",)


def test_a_jit_of_a_librarys_gradient():
    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def loss(model, x):
        return jax.vmap(model)(x).sum()

    _, model = filtered()
    with watch() as log, watch(only=loss) as chosen:
        loss(model, rows(4))
        loss(model, rows(5))
    for record in (log["loss"], log[loss], chosen["loss"], chosen[loss]):
        assert (record.traces, record.compilations) == (2, 2)


def test_a_decorated_function_carries_its_log(made):
    step, model = made
    assert watch(step) is step
    step(model, rows(4))
    step(model, rows(5))
    assert step.log["step"].traces == step.log[step].traces == 2


def test_max_traces(made):
    step, model = made
    with watch(max_traces=1, only=step):
        step(model, rows(4))
        with pytest.raises(RetraceError, match=r"test_watch.py:\d+.*float32\[5,3\]"):
            step(model, rows(5))
    step(model, rows(5))


def test_only_one_of_two_of_a_name():
    def make():
        @eqx.filter_jit
        def step(x):
            return x

        return step

    @eqx.filter_jit
    def step(x):
        return x * 2

    with watch(only=step) as log:
        make()(rows(1))
        assert log[step].traces == 0
        step(rows(1))
    assert log[step].traces == 1


def test_methods_and_callable_modules():
    class Model(eqx.Module):
        weight: jax.Array

        @eqx.filter_jit
        def apply(self, x):
            return x * self.weight

        def __call__(self, x):
            return x + self.weight

    model = Model(jnp.ones(3))
    jitted = eqx.filter_jit(model)
    with watch() as log:
        model.apply(rows(2))
        jitted(rows(2))
    assert log["apply"].traces == log[Model.apply].traces == 1
    assert log["Model"].traces == log[jitted].traces == 1


def test_a_library_is_one_line_of_the_table():
    def solve(y):
        term = diffrax.ODETerm(lambda t, y, args: -y)
        return diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 1.0, 0.1, y).ys

    solver = jax.jit(solve)
    with watch() as log:
        solver(jnp.ones(2))
    lines = [line for line in repr(log).splitlines() if not line.startswith("  ")]
    assert len(lines) <= 6, repr(log)
    assert any(line.startswith("equinox: ") for line in lines)
    assert len(log) > len(lines)
    with watch(ignore=["diffrax", eqx, "lineax", "optimistix", "jaxtyping"]) as log:
        solver(jnp.ones(3))
    assert list(log) == ["solve"]


def test_linen_and_optax():
    model, optimizer = linen.Dense(2), optax.adam(1e-3)
    params = model.init(jax.random.key(0), rows(1))
    state = optimizer.init(params)

    @jax.jit
    def step(params, state, x):
        loss = lambda params: model.apply(params, x).sum()  # noqa: E731
        updates, state = optimizer.update(jax.grad(loss)(params), state, params)
        return optax.apply_updates(params, updates), state

    with jax.numpy_dtype_promotion("standard"), watch() as log:
        for _ in range(3):
            params, state = step(params, state, np.ones((4, 3), np.float32))
    assert log["step"].why[1:] == ()
    assert log["step"].traces <= 2


def test_a_function_that_was_not_called_while_a_library_worked():
    step, _ = filtered()
    with watch() as log:
        jax.jit(lambda y: eqx.filter_jit(jnp.sin)(y))(1.0)
    assert log[step].traces == 0


def test_nothing_is_printed_when_python_ends(tmp_path):
    program = tmp_path / "p.py"
    program.write_text(
        "import jax, equinox as eqx\n"
        "from justafter import watch\n"
        "@watch\n@jax.jit\ndef f(x): return x\n"
        "@watch\n@eqx.filter_jit\ndef g(x): return x\n"
        "f(1.0); g(1.0); log = watch()\n"
    )
    command = [sys.executable, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_function_warmed_up_before(made):
    step, model = made
    step(model, rows(4))
    with watch(only=step) as log:
        step(model, rows(6))
    assert log[step].history[0].why[0].kind == "new shape"


def test_a_reason_names_what_differs_in_a_model_and_no_more():
    key, x = jax.random.key(0), jnp.ones((4, 3))

    def mlp(width=8, depth=1, act=jax.nn.relu):
        return eqx.nn.MLP(3, 1, width, depth, activation=act, key=key)

    @eqx.filter_jit
    def predict(model, x):
        return jax.vmap(model)(x)

    first = jax.jit(lambda model, x: x @ model.layers[0].weight.T)
    models = mlp(), mlp(act=jax.nn.silu), mlp(16)
    with watch() as log:
        for model in models:
            predict(model, x)
            first(eqx.filter(model, eqx.is_array), x)
    shown = [str(why) for one in log[predict].history for why in one.why]
    assert "static value: static[1].activation was relu, now silu" in shown
    (wider,) = [text for text in shown if "was 8, now 16" in text and "static" in text]
    assert "static[1].layers[0].out_features was 8, now 16" in wider
    parts = [part for text in shown for part in text.split("; ") if ", now " in part]
    assert all(one.split(" was ")[1].count(", now ") == 1 for one in parts)
    assert "PyTreeDef" not in repr(log)
    (tree, *_) = log[first].history[-1].why
    assert tree.kind == "tree structure"
    assert "model.layers[0].out_features was 8, now 16" in tree.text
