"""Links into foreign libraries' code, held against programs with one change."""

import diffrax
import equinox as eqx
import flax.linen as linen
import jax
import jax.numpy as jnp
import lineax
import optax
import optimistix
import pytest
from flax import nnx
from jax import lax

from justafter import _lens, lens

from .mutants import contradictions
from .running import shaped

X = jnp.linspace(0.1, 1.0, 24).reshape(4, 6)
V = jnp.linspace(0.2, 1.0, 6)


def _linen():
    layers = [linen.Dense(8), linen.LayerNorm(), jnp.tanh, linen.Dense(1)]
    net = linen.Sequential(layers)
    params = net.init(jax.random.key(0), X)
    return jax.grad(lambda p, x: net.apply(p, x).sum()), (params, X)


def _nnx():
    net = nnx.MultiHeadAttention(2, 6, decode=False, rngs=nnx.Rngs(0))
    graph, state = nnx.split(net)
    return lambda state, x: nnx.merge(graph, state)(x[None]).sum(), (state, X)


def _equinox():
    net = eqx.nn.MLP(6, 1, 8, 2, key=jax.random.key(0))
    arrays, static = eqx.partition(net, eqx.is_array)
    loss = lambda a, x: jax.vmap(eqx.combine(a, static))(x).sum()  # noqa: E731
    return jax.grad(loss), (arrays, X)


def _optax():
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))

    def step(params, state, x):
        grads = jax.grad(lambda p: ((x @ p["w"]) ** 2).sum())(params)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    params = {"w": jnp.ones((6, 2))}
    return step, (params, optimizer.init(params), X)


def _diffrax():
    def end(w, y):
        term = diffrax.ODETerm(lambda t, y, w: jnp.tanh(w @ y))
        return diffrax.diffeqsolve(
            term, diffrax.Euler(), 0.0, 1.0, 0.1, y, args=w
        ).ys.sum()

    return end, (jnp.ones((6, 6)) / 6, V)


def _lineax():
    def product(m, v):
        jacobian = lineax.JacobianLinearOperator(lambda y, _: jnp.tanh(y) * y, v)
        turned = lineax.MatrixLinearOperator(m) @ jacobian
        return (turned + 2.0 * lineax.DiagonalLinearOperator(v)).mv(jnp.sin(v))

    return product, (jnp.eye(6) * 3 + 0.1, V)


def _optimistix():
    def root(a):
        solver = optimistix.Newton(1e-4, 1e-4)
        fn = lambda y, a: y - jnp.cos(a * y)  # noqa: E731
        return optimistix.root_find(fn, solver, jnp.ones(6), a, max_steps=8).value

    return root, (V,)


MAKERS = (_linen, _nnx, _equinox, _optax, _diffrax, _lineax, _optimistix)
FUNCTIONS = {make.__name__.strip("_"): make for make in MAKERS}


def sums(x):
    jnp.sum(x[..., :1] * 3)
    return jnp.sum(x * x)


def until(w, v):
    return lax.while_loop(lambda v: v.sum() < 9.0, lambda v: w @ v, v)


def rnn(w, h):
    return lax.scan(lambda h, _: (jnp.tanh(w @ h), None), h, None, length=5)[0]


def two_layers(params, x):
    return jnp.sum((jnp.tanh(x @ params[0]) @ params[1]) ** 2)


def trained(params, x):
    slopes = jax.grad(two_layers)(params, x)
    return [p - 0.1 * g for p, g in zip(params, slopes, strict=True)]


SQUARE, ROWS, VECTOR = shaped(4, 4), shaped(8, 4), shaped(4)
# Sums that XLA makes in two halves, and products whose metadata it drops or moves.
OF_JAX = [
    *((sums, shaped(*shape)) for shape in [(256,), (4, 512), (64, 64), (2, 3, 256)]),
    (sums, shaped(4, 512, dtype="int32")),
    (jax.grad(lambda w, x: jnp.sum(jnp.sin(x @ w))), VECTOR, ROWS),
    (lambda w, x, y: (jnp.sin(x @ w), jnp.cos(y @ w)), VECTOR, ROWS, ROWS),
    (until, SQUARE, VECTOR),
    (rnn, SQUARE, VECTOR),
    (trained, [SQUARE, shaped(4, 2)], ROWS),
]


@pytest.mark.parametrize(("fn", "args"), [(fn, args) for fn, *args in OF_JAX])
def test_no_sum_and_no_product_is_linked_wrongly_or_lost(fn, args):
    tried, wrong = contradictions(fn, args)
    assert tried >= 2
    assert not wrong
    view = lens(fn, *args)
    work = [e for e in view.equations if e.primitive in ("dot_general", "reduce_sum")]
    assert {eqn.fate for eqn in work} <= {"kernel", "unused"}
    assert not any(kernel.lost for kernel in view.kernels)
    # A loop is no product, though XLA wrote its name on one.
    for kernel in view.kernels:
        if any(one.opcode == "dot" for one in kernel.instructions):
            assert not any(view.equations[i].regions for i in kernel.members)


EACH_WEEK = [pytest.param(name, 10_000, marks=pytest.mark.weekly) for name in FUNCTIONS]


@pytest.mark.parametrize(("library", "most"), [("linen", 4), ("optax", 4), *EACH_WEEK])
def test_no_mutant_contradicts_a_link(library, most):
    with jax.numpy_dtype_promotion("standard"):
        tried, wrong = contradictions(*FUNCTIONS[library](), most)
    print(library, tried, "equations exchanged")
    assert tried >= 2
    assert not wrong


def test_a_wrong_link_is_contradicted(monkeypatch):
    def f(x, w):
        return jnp.sin(x) @ w, jnp.max(lax.rev(x, (0,)) @ w @ w.T)

    assert not contradictions(f, (X, jnp.ones((6, 6))))[1]
    real = _lens._marks.Marks._read

    def misread(self, raw):  # each product is said to be the first one
        found = list(real(self, raw))
        dots = [e.index for e in self._equations if e.primitive == "dot_general"]
        return iter([dots[0] if i in dots else i for i in found])

    monkeypatch.setattr(_lens._marks.Marks, "_read", misread)
    assert contradictions(f, (X, jnp.ones((6, 6))))[1]
