"""A model that does not learn: each fault has a figure of its own that is wrong."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from .conftest import load, run

program = load("faults")

# Of each figure, what is right, and the fault for which alone it is wrong.
RIGHT = {
    "weights moved": (lambda share: share > 0.5, "bfloat16 weights"),
    "own cell first": (lambda share: share > 0.9, "order of pixels"),
    "scale of test": (lambda ratio: 0.8 < ratio < 1.25, "scale of inputs"),
}


def test_cells_are_taken_apart_and_put_together():
    images = np.arange(2 * 64).reshape(2, 8, 8)
    np.testing.assert_array_equal(program.from_cells(program.in_cells(images)), images)
    np.testing.assert_array_equal(program.in_cells(images)[0, 1], [2, 3, 10, 11])
    # The other order has as many pixels for each cell, and the wrong ones.
    assert program.in_rows(images).shape == program.in_cells(images).shape
    own = program.in_cells(images)[0, 1]
    assert not set(own) & set(program.in_rows(images)[0, 1])


def test_the_linear_map_removes_more_than_shrinking_towards_the_mean():
    by_formula = program.removed_by_linear_map(0)
    images, clean = program.test_pair(program.Setup(), 0)
    for share in (0.0, 0.5, 1.0):
        shrunk = clean.mean() + share * (images - clean.mean())
        assert program.share_removed(shrunk, clean) < by_formula - 0.1
    # Nor does it remove less than a map fitted to noisy images by least squares.
    x = np.tile(program.load()[0].reshape(-1, 64), (8, 1))
    noise = program.NOISE * np.random.default_rng(1).normal(size=x.shape)
    one = np.ones((len(x), 1))
    fitted, *_ = np.linalg.lstsq(np.hstack([x + noise, one]), x)
    rows = np.hstack([images.reshape(-1, 64), one[: len(images)]])
    share = program.share_removed((rows @ fitted).reshape(-1, 8, 8), clean)
    assert abs(by_formula - share) < 0.01
    assert program.share_removed(clean, clean) == 1
    assert abs(program.share_removed(images, clean)) < 0.05


def test_a_step_of_bfloat16_rounds_away_what_is_small():
    state = program.start(program.SETUPS["bfloat16 weights"], 16, 0)
    assert {leaf.dtype for leaf in jax.tree.leaves(state[0])} == {jnp.dtype("bfloat16")}
    # Half of the distance to the next number is more than one step of Adam.
    assert jnp.bfloat16(0.25) + jnp.bfloat16(program.RATE) == jnp.bfloat16(0.25)
    assert jnp.float32(0.25) + jnp.float32(program.RATE) > jnp.float32(0.25)


def test_each_figure_tells_its_fault_before_any_training():
    found = {}
    for name in ("working", *(fault for _, fault in RIGHT.values())):
        setup = program.SETUPS[name]
        state = program.start(setup, 32, 0)
        found[name] = (
            program.weights_moved(*state, setup, 0),
            program.own_cell_first(state[0], setup.order),
            program.scale_apart(setup, 0),
        )
    for i, (is_right, fault) in enumerate(RIGHT.values()):
        assert [name for name in found if not is_right(found[name][i])] == [fault]


@pytest.mark.weekly
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_at_its_real_size_each_fault_shows(seed: int, tmp_path: Path):
    found = run("faults", tmp_path, seed)
    working = found["working"]["noise removed"]
    assert working > 0.65
    # As the page says: a formula removes more than the network.
    assert found["linear map"]["noise removed"] > working + 0.01
    for name in program.SETUPS:
        row = found[name]
        for figure, (is_right, fault) in RIGHT.items():
            assert is_right(row[figure]) == (name != fault), (name, figure)
        assert name == "working" or row["noise removed"] < working - 0.05
