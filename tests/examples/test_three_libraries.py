"""One network in three libraries: what has to be equal, and what would not be."""

import io
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from .conftest import load, run

program = load("three_libraries")
LIBRARIES = list(program.LIBRARIES)


@pytest.fixture(scope="module")
def data() -> tuple:
    return program.load()


def begin(name: str, seed: int = 0) -> tuple:
    weights = program.plain_init(jax.random.key(seed), (4, 8))
    return program.LIBRARIES[name], program.LIBRARIES[name].start(*weights)


def trained(name: str, data: tuple, seed: int = 0, steps: int = 8) -> tuple:
    library, run = begin(name, seed)
    after = [*program.training(library, run, 0, steps, data[0], 0)]
    return after[-1][1], np.array([float(value) for _, _, value in after])


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_run_that_is_saved_and_loaded_goes_on_alike(name: str, data: tuple):
    library = program.LIBRARIES[name]
    once, _ = trained(name, data)
    file = io.BytesIO()
    library.save(file, once)
    file.seek(0)
    other = library.load(file, begin(name, seed=1)[1])
    key = jax.random.key(3)
    for step in range(3):
        batch = program.batch(data[0], 9, step)
        once, value = library.step(once, *batch, key)
        other, again = library.step(other, *batch, key)
        assert value == again
    ours, theirs = (np.array(library.logits(r, data[1][0])) for r in (once, other))
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_step_is_traced_once_a_shape(name: str, data: tuple):
    library, run = begin(name)
    program.traced.clear()
    x, y = data[0]
    for rows in (32, 32, 32, 16, 32, 16):
        run, _ = library.step(run, x[:rows], y[:rows], jax.random.key(0))
    assert program.traced[name] == 2


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_statistics_are_part_of_what_was_learned(name: str, data: tuple):
    """Weights alone, with statistics as at the start, give other logits."""
    library, run = begin(name)
    *_, (_, run, _) = program.training(library, run, 0, 8, data[0], 0)
    before = np.array(library.logits(run, data[1][0]))
    if name == "plain":
        run = (run[0], program.plain_init(jax.random.key(0), (4, 8))[1], run[2])
    elif name == "flax":
        for norm in (run[0].norm0, run[0].norm1):
            norm.mean[...], norm.var[...] = 0 * norm.mean[...], 0 * norm.var[...] + 1
    else:
        run = (run[0], begin(name)[1][1], run[2])
    assert abs(library.logits(run, data[1][0]) - before).max() > 0.1


def test_what_is_apart_is_the_largest_difference_from_plain_jax(monkeypatch, tmp_path):
    curves = {"plain": [3, 2, 1.0], "flax": [3, 1.75, 1.0], "equinox": [3.5, 2, 1.25]}
    logits = {"plain": [0, 0], "flax": [0.125, 0], "equinox": [0.25, -0.75]}
    instead = {
        "fit": lambda name, run, *_: (run, curves[name]),
        "examine": lambda name, *_: (np.array(logits[name]), {"test accuracy": 1.0}),
        "seconds_a_step": lambda *_: 0.0,
    }
    for name, function in instead.items():
        monkeypatch.setitem(program.run.__globals__, name, function)
    options = SimpleNamespace(seed=0, output=tmp_path, settings={"steps": 3})
    table = program.run(options, program.SIZES["tiny"])
    for figure, wanted in {
        "losses apart": {"plain": 0, "flax": 0.25, "equinox": 0.5},
        "logits apart after": {"plain": 0, "flax": 0.125, "equinox": 0.75},
    }.items():
        assert {name: row[figure] for name, row in table.items()} == wanted


@pytest.mark.weekly
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_at_its_real_size_all_three_learn_alike(seed: int, tmp_path: Path):
    table = run("three_libraries", tmp_path, seed)
    for row in table.values():
        assert row["test accuracy"] > 0.92
        assert row["losses apart"] < 1e-4
        assert row["logits apart before"] < 1e-5
        assert row["frozen part moved"] == 0
