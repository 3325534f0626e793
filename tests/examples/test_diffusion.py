"""Diffusion: its parts, its evaluation, and what that must not let pass."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest

from .conftest import load, run

program = load("diffusion")
LABELS = np.tile(np.arange(10), 40)


@pytest.fixture(scope="module")
def data() -> tuple:
    train, _, held_out = program.load(0)
    return train, held_out


@pytest.mark.parametrize("name", ["diffusion", "flow matching"])
def test_a_path_leads_from_the_digit_to_noise(name: str):
    digit, noise = jnp.arange(6.0).reshape(2, 3), -jnp.ones((2, 3))
    at = partial(program.mixed, program.PATHS[name], digit, noise)
    for t, end in ((0.0, digit), (1.0, noise)):
        np.testing.assert_allclose(at(jnp.full((2, 1), t))[0], end, atol=1e-6)
    # Its velocity is that of the path.
    ahead, behind = (at(jnp.full((2, 1), t))[0] for t in (0.41, 0.39))
    velocity = at(jnp.full((2, 1), 0.4))[1]
    np.testing.assert_allclose(velocity, (ahead - behind) / 0.02, rtol=1e-3)


class OneDigit:
    """The true velocity where all digits are one: what a perfect network finds."""

    def __init__(self, path, digit):
        self.path, self.digit = path, digit

    def __call__(self, x, t, label):
        keep, add = self.path(t)
        noise = (x - keep * self.digit) / jnp.maximum(add, 1e-3)
        return program.mixed(self.path, self.digit, noise, t)[1]


@pytest.mark.parametrize("name", ["diffusion", "flow matching"])
def test_following_the_true_velocity_arrives(name: str, data: tuple):
    digit = jnp.asarray(data[0][0][0])
    model = OneDigit(program.PATHS[name], digit)
    way = program.digits(model, np.zeros(3, int), 0, 1.0)
    assert way.shape == (41, 3, 64)
    np.testing.assert_allclose(way[-1], np.broadcast_to(digit, (3, 64)), atol=0.1)


def evaluated(make, data: tuple) -> dict:
    made = make(data[0], LABELS, np.random.default_rng(0))
    return program.evaluate(made, LABELS, *data)


def test_the_evaluation_passes_real_digits_and_not_what_only_looks_like_them(data):
    real, normal, blend, mean = (
        evaluated(make, data) for make in program.MAKERS.values()
    )
    assert min(mean["recognized"], normal["recognized"]) > 0.95  # the trap
    assert real["fidelity"] > 0.85
    assert real["variety"] > 0.65
    assert abs(real["told apart"] - 0.5) < 0.08
    assert mean["variety"] < 0.4
    assert normal["fidelity"] < real["fidelity"]
    assert min(mean["told apart"], normal["told apart"]) > 0.7
    assert real["copied"] == 1
    assert max(mean["copied"], normal["copied"]) < 0.05
    # A blend passes all but the last.
    assert min(blend["recognized"], blend["fidelity"]) > 0.95
    assert blend["told apart"] < normal["told apart"] - 0.05
    assert blend["copied"] > 0.5


def test_the_evaluation_sees_labels_that_are_shuffled(data: tuple):
    def shuffled(train, labels, rng):
        return program.real(train, rng.permutation(labels), rng)

    found = evaluated(shuffled, data)
    assert found["recognized"] < 0.2
    assert found["fidelity"] < 0.2


def test_the_parts_of_the_data_are_disjoint_and_all_of_it():
    parts = program.load(0)
    assert [len(x) for x, _ in parts] == [1000, 200, 597]
    images = np.concatenate([x for x, _ in parts])
    everything = np.sort(program.load_digits().data / 8 - 1, axis=None)
    np.testing.assert_allclose(np.sort(images, axis=None), everything, rtol=1e-6)


def test_a_choice_is_made_by_validation_digits():
    train, validation, _ = program.load(0)

    samples = {
        choice: make(train, LABELS, np.random.default_rng(0))
        for choice, make in enumerate((program.means, program.real, program.means))
    }
    assert program.best(samples, LABELS, train, validation) == 1


@pytest.mark.weekly
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_at_its_real_size_it_beats_what_a_classifier_lets_pass(seed, tmp_path):
    found = run("diffusion", tmp_path, seed)
    normal, blend, real = (found[name] for name in ("gaussians", "blends", "real"))
    narrow = found["gaussians, narrowed"]
    for name in program.PATHS:
        ours = found[f"{name}, guided"]
        assert ours["recognized"] > 0.98
        assert ours["fidelity"] > normal["fidelity"] + 0.05
        assert ours["variety"] > normal["variety"] + 0.03
        assert ours["variety"] > found["means"]["variety"] + 0.3
        assert ours["told apart"] < normal["told apart"] - 0.05
        # As the page says: by fidelity the samples would be better than real digits.
        assert ours["told apart"] > real["told apart"] + 0.05
        assert ours["fidelity"] > real["fidelity"]
        assert ours["copied"] < 0.2 < real["copied"]
        # So would Gaussians that are narrowed by the rule of the guidance.
        assert narrow["fidelity"] > real["fidelity"]
        assert ours["told apart"] < narrow["told apart"] - 0.1
        # And a blend is as good in all but the last.
        for what in ("fidelity", "variety"):
            assert blend[what] > ours[what] - 0.03
        assert blend["told apart"] < ours["told apart"]
        assert ours["copied"] < 0.2 < 0.5 < blend["copied"]
        unconditional = found[f"{name}, unconditional"]
        assert unconditional["recognized"] < 0.25
        assert unconditional["fidelity"] < 0.4
