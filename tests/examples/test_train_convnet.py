"""Training as people do it: the parts, the figures, and what breaks them."""

from itertools import islice
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from .conftest import load, run

program = load("train_convnet")


@pytest.fixture(scope="module")
def data() -> dict:
    return program.load(0)


def taken(data: dict, first: int, count: int, **more) -> list[dict]:
    return list(islice(program.batches(*data["train"], 0, first, **more), count))


def test_an_epoch_shows_every_image_once_and_the_last_batch_is_short(data: dict):
    epoch = taken(data, 0, 20)
    assert {b["x"].shape for b in epoch} == {(64, 8, 8, 1)}
    assert [b["weight"].sum() for b in epoch] == [64] * 19 + [1250 - 19 * 64]
    shown = np.concatenate([b["x"][b["weight"] == 1] for b in epoch])
    both = (images.reshape(1250, -1) for images in (shown, data["train"][0]))
    np.testing.assert_array_equal(*(np.sort(pixels, axis=0) for pixels in both))
    again = taken(data, 20, 1)[0]
    assert (again["y"] != epoch[0]["y"]).any()  # the next epoch has another order


@pytest.mark.parametrize("shifted", [False, True])
def test_a_later_beginning_goes_on_as_the_earlier_would(data: dict, shifted: bool):
    late, early = (taken(data, *n, shifted=shifted) for n in ((25, 2), (0, 27)))
    for one, other in zip(late, early[25:], strict=True):
        jax.tree.map(np.testing.assert_array_equal, one, other)


def test_a_shifted_image_is_the_image_moved_by_a_pixel_at_most(data: dict):
    images = data["train"][0][:50]
    shifted = program.shift(images, np.random.default_rng(0))
    edged = np.pad(images, [(0, 0), (1, 1), (1, 1), (0, 0)])
    moves = set()
    for image, around in zip(shifted, edged, strict=True):
        places = [(i, j, around[i : i + 8, j : j + 8]) for i, j in np.ndindex(3, 3)]
        fits = [(i, j) for i, j, part in places if (part == image).all()]
        assert fits
        moves.update(fits[:1])
    assert len(moves) > 5


def test_images_of_weight_zero_do_not_count(data: dict):
    model = program.linear()
    params = model.init(jax.random.key(0))
    short = taken(data, 19, 1)[0]
    real = {k: v[: int(short["weight"].sum())] for k, v in short.items()}
    values = [program.loss(model.forward, params, batch) for batch in (short, real)]
    np.testing.assert_allclose(*values, rtol=1e-6)


def test_prefetch_changes_nothing_and_passes_errors_on(data: dict):
    plain = taken(data, 0, 5)
    ahead = islice(program.prefetch(iter(plain + plain)), 5)
    for one, other in zip(ahead, plain, strict=True):
        jax.tree.map(np.testing.assert_array_equal, one, other)

    def breaks():
        yield plain[0]
        raise OSError("no such file")

    broken = program.prefetch(breaks())
    next(broken)
    with pytest.raises(OSError, match="no such file"):
        next(broken)


def test_the_weights_stay_in_float32_and_the_products_are_in_bfloat16():
    model = program.computing_in("bfloat16", program.convnet((4, 8)))
    params = model.init(jax.random.key(0))
    x = jnp.ones((2, 8, 8, 1))
    traced = jax.jit(model.forward).trace(params, x).jaxpr
    products = [
        e.outvars[0].aval.dtype
        for e in traced.eqns
        if e.primitive.name in ("conv_general_dilated", "dot_general")
    ]
    assert products == [jnp.bfloat16] * 3
    grads = jax.grad(lambda p: model.forward(p, x).sum())(params)
    assert {leaf.dtype for leaf in jax.tree.leaves(grads)} == {jnp.dtype("float32")}
    assert model.forward(params, x).dtype == jnp.float32


def test_its_adam_is_that_of_optax(data: dict):
    assert program.difference_from_optax(program.convnet((8, 16)), data) < 1e-6


def test_the_best_weights_are_kept_and_patience_ends():
    state = program.start(program.linear(), 10, 0)
    for value, stale in [(3.0, 0), (2.0, 0), (2.5, 1), (float("nan"), 2), (1.0, 0)]:
        now = jnp.float32(value)
        state = program.track_best(state._replace(params={"loss": now}), now)
        assert state.stale == stale
    assert state.best == {"loss": 1.0}


def trained(data: dict, steps: int = 240) -> tuple:
    model = program.convnet((16, 32))
    state = program.start(model, steps, 0)
    *_, (done, state, _) = program.training(state, 0, steps, model, data, 0)
    evaluate = program.make_evaluate(model.forward)
    return done, float(evaluate(state.best, *data["test"])[1])


def test_patience_stops_a_training_that_gains_nothing(data, monkeypatch):
    monkeypatch.setattr(program, "PATIENCE", 3)
    # Random labels can be learned by heart, but nothing about others follows.
    noise = np.random.default_rng(0).integers(0, 10, 250).astype(np.int32)
    ended, _ = trained({**data, "validation": (data["validation"][0], noise)})
    assert ended < 240


def test_it_learns_and_from_shuffled_labels_it_does_not(data: dict):
    assert trained(data)[1] > 0.85
    images, labels = data["train"]
    shuffled = np.random.default_rng(0).permutation(labels)
    assert trained({**data, "train": (images, shuffled)})[1] < 0.3


@pytest.mark.weekly
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_at_its_real_size_the_convnet_beats_both_baselines(seed: int, tmp_path: Path):
    right = run("train_convnet", tmp_path, seed)
    test = {name: shares["test"] for name, shares in right.items()}
    assert test["convnet"] > 0.945
    assert test["convnet"] > test["plain"] + 0.03
    assert test["plain"] > test["linear"]
    # As the page says: nearest neighbors are not clearly beaten.
    gap = right["neighbors"]
    assert gap["convnet ahead"] < 2 * gap["its error"]
    assert gap["convnet ahead"] == pytest.approx(test["convnet"] - test["neighbors"])
