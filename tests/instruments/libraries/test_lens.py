"""The lens on models of libraries: Flax, Equinox, Optax, Diffrax."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import pytest
from flax import linen, nnx

from justafter import Lens, lens


@pytest.fixture(autouse=True)
def _standard_promotion():
    """Libraries promote dtypes; the suite's strict setting is not theirs."""
    with jax.numpy_dtype_promotion("standard"):
        yield


X = jnp.ones((5, 3))


class Net(linen.Module):
    @linen.compact
    def __call__(self, x):
        h = linen.relu(linen.Dense(4)(x))
        return linen.Dense(2)(h)


class EqxNet(eqx.Module):
    """Two layers of one kind; an activation that is no array."""

    first: eqx.nn.Linear
    second: eqx.nn.Linear
    act: object

    def __call__(self, x):
        h = self.act(self.first(x))
        return self.second(h)


def eqx_net() -> EqxNet:
    keys = jax.random.split(jax.random.key(0))
    first = eqx.nn.Linear(3, 4, key=keys[0])
    return EqxNet(first, eqx.nn.Linear(4, 2, key=keys[1]), jax.nn.relu)


class NnxNet(nnx.Module):
    def __init__(self):
        self.first = nnx.Linear(3, 4, rngs=nnx.Rngs(0))
        self.second = nnx.Linear(4, 2, rngs=nnx.Rngs(0))

    def __call__(self, x):
        h = nnx.relu(self.first(x))
        return self.second(h)


def assert_each_layer_is_apart(view: Lens, first: str, second: str) -> None:
    """Each call of a layer has its own equations, a product among them."""
    links = [view.at(first), view.at(second)]
    for link in links:
        names = [view.equations[i].primitive for i in link.equations]
        assert names.count("dot_general") == 1
        assert link.kernels
        assert link.span.file == "test_lens.py"
    assert not set(links[0].equations) & set(links[1].equations)
    assert {piece.file for piece in view.source} == {"test_lens.py"}


def test_linen():
    model = Net()
    params = model.init(jax.random.key(0), X)
    # Its layers are found in a function of one's own, and in the library's.
    for fn in (lambda params, x: model.apply(params, x), model.apply):
        view = lens(fn, params, X)
        assert_each_layer_is_apart(view, "linen.Dense(4)(x)", "linen.Dense(2)(h)")
        assert "__call__" in {piece.name for piece in view.source}


def test_equinox():
    net = eqx_net()

    def predict(net, x):
        return jax.vmap(net)(x)

    for fn in (predict, eqx.filter_jit(predict)):
        view = lens(fn, net, X)
        assert view.name == "predict"
        assert_each_layer_is_apart(view, "self.first(x)", "self.second(h)")
    assert lens(eqx.filter_jit(net), X[0]).name == "EqxNet"


@eqx.filter_jit
def trained(net, norm, state, x):
    """A step as Equinox' own examples have it: it returns the models."""
    norm = eqx.tree_inference(norm, False)

    def loss(net):
        axes = {"in_axes": (0, None), "out_axes": (0, None), "axis_name": "batch"}
        h, _ = eqx.filter_vmap(norm, **axes)(x, state)
        return jax.vmap(net)(h).sum()

    slopes = eqx.filter_grad(loss)(net)
    return eqx.apply_updates(net, slopes), norm


def test_a_step_of_equinox_takes_flags_and_returns_models():
    norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(3, "batch", mode="batch")
    view = lens(trained, eqx_net(), norm, state, X)
    assert view.at("eqx.apply_updates(net, slopes)").kernels
    assert view.table(eqx_net(), norm, state, X, calls=2).total.seconds > 0


def test_a_layer_alone_is_none_of_your_source():
    layer = linen.Dense(2)
    view = lens(jax.jit(layer.apply), layer.init(jax.random.key(0), X), X)
    assert [row.expression for row in view.table().rows] == ["(no source of yours)"]


def test_nnx():
    net = NnxNet()
    for fn in (nnx.jit(lambda net, x: net(x)), lambda net, x: net(x)):
        view = lens(fn, net, X)
        assert_each_layer_is_apart(view, "self.first(x)", "self.second(h)")
        net(X)  # nothing of the trace is left in the module


def test_nnx_with_state_and_an_optimizer():
    net = NnxNet()
    optimizer = nnx.Optimizer(net, optax.adam(1e-3), wrt=nnx.Param)

    @nnx.jit
    def step(net, optimizer, x):
        loss, slopes = nnx.value_and_grad(lambda net: (net(x) ** 2).sum())(net)
        optimizer.update(net, slopes)
        return loss

    view = lens(step, net, optimizer, X)
    products = [eqn for eqn in view.equations if eqn.primitive == "dot_general"]
    assert len(products) >= 4
    assert all(eqn.fate == "kernel" for eqn in products if eqn.fate != "unused")
    assert step(net, optimizer, X).shape == ()


def test_the_inside_of_a_library_is_not_shown():
    view = lens(optax.huber_loss, X, X)
    assert view.source == ()
    said = "huber_loss is a library's function: its source is not shown."
    assert view.notes == (said,)
    assert {eqn.fate for eqn in view.primitives} & {"kernel"}
