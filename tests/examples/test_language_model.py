"""The language model: what it may see, its cache, and the models that count."""

from __future__ import annotations

import math
from pathlib import Path

import jax
import numpy as np
import pytest

from .conftest import load, run

program = load("language_model")
SIZE = program.SIZES["tiny"]


@pytest.fixture(scope="module")
def params() -> dict:
    return program.init(jax.random.key(0), SIZE)


def some_bytes(n: int, length: int) -> np.ndarray:
    return np.random.default_rng(0).integers(32, 127, (n, length)).astype(np.int32)


def test_a_byte_sees_nothing_that_comes_after_it(params: dict):
    tokens = some_bytes(1, 20)
    other = tokens.copy()
    other[0, 12:] += 1
    ours, theirs = (program.forward(params, t, SIZE.heads) for t in (tokens, other))
    np.testing.assert_array_equal(ours[0, :12], theirs[0, :12])
    assert (ours[0, 12:] != theirs[0, 12:]).any(axis=1).all()


def test_attention_is_that_of_jax():
    query, key, value = jax.random.normal(jax.random.key(0), (3, 2, 7, 4, 5))
    ours = program.attend(query, key, value, first=0)
    theirs = jax.nn.dot_product_attention(query, key, value, is_causal=True)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    late = program.attend(query[:, 3:5], key, value, first=3)
    np.testing.assert_allclose(late, ours[:, 3:5], atol=1e-6)


def test_scores_from_the_cache_are_those_of_the_whole_text(params: dict):
    tokens = some_bytes(3, 10)
    whole = program.forward(params, tokens, SIZE.heads)
    cache = program.empty_cache(SIZE, 3)
    for place in range(10):
        scores, cache = program.next_scores(
            params, cache, tokens[:, place], place, SIZE.heads
        )
        np.testing.assert_allclose(scores, whole[:, place], atol=1e-4)


def test_a_cache_that_forgets_would_be_seen(params: dict):
    tokens = some_bytes(1, 6)
    whole = program.forward(params, tokens, SIZE.heads)
    cache = program.empty_cache(SIZE, 1)
    scores, _ = program.next_scores(params, cache, tokens[:, 5], 5, SIZE.heads)
    assert abs(scores - whole[:, 5]).max() > 1e-3


@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_cached_and_uncached_text_is_the_same(params: dict, temperature: float):
    prompt = some_bytes(2, 5)
    given = params, prompt, jax.random.key(1), temperature, SIZE
    cached, uncached = program.write_cached(*given), program.write_uncached(*given)
    np.testing.assert_array_equal(cached, uncached)
    np.testing.assert_array_equal(cached[:, :5], prompt)
    other = program.write_cached(params, prompt, jax.random.key(2), temperature, SIZE)
    assert (other != cached).any()


def test_the_layers_are_one_scan_and_are_computed_again_backward(params: dict):
    tokens = some_bytes(2, 9)
    grad = jax.make_jaxpr(jax.grad(program.loss), static_argnums=2)
    text = str(grad(params, tokens, SIZE.heads))
    assert text.count("scan[") == 2  # forward and backward
    assert "remat" in text


def test_counting_is_right_where_it_can_be_worked_out():
    always = np.full(1000, 65)
    assert program.counting_bits(always, always[:100], 3) < 0.02
    rng = np.random.default_rng(0)
    coins = rng.integers(0, 2, (2, 20000)) + 65
    assert abs(program.counting_bits(*coins, 1) - 1) < 0.01
    # What was never seen has its share: no text is impossible.
    assert 8 < program.counting_bits(always, np.full(100, 66), 1) < 20


def test_longer_contexts_count_better_on_text():
    learned, judged = program.load()
    bits = [program.counting_bits(learned[:60000], judged[:4000], n) for n in (1, 2, 3)]
    assert bits == sorted(bits, reverse=True)


def test_learned_and_judged_texts_are_others():
    learned, judged = (bytes(part.astype(np.uint8)) for part in program.load())
    assert 0.03 < len(judged) / len(learned) < 0.4
    assert judged[1000:1200] not in learned


def trained(text: np.ndarray, steps: int = 60) -> dict:
    params = program.init(jax.random.key(0), SIZE)
    state = params, program.make_optimizer(steps).init(params)
    *_, (_, (params, _), _) = program.training(state, 0, steps, text, SIZE, 0)
    return params


def test_it_learns_and_from_shuffled_bytes_only_how_often_each_comes():
    learned, judged = program.load()
    bits = program.model_bits(trained(learned, 200), judged, SIZE)
    shuffled = np.random.default_rng(0).permutation(learned)
    without = program.model_bits(trained(shuffled, 200), judged, SIZE)
    alone = program.counting_bits(learned, judged, 1)
    assert bits < 4.4 < alone - 0.2 < without


def test_bits_of_a_model_that_knows_nothing(params: dict):
    assert math.isclose(
        program.model_bits(params, program.load()[1], SIZE), 8, rel_tol=0.02
    )


def test_bits_of_a_short_text_and_of_weights_that_are_zero(params: dict):
    """Fewer pieces than a batch are judged as well, and the last batch is counted."""
    judged = program.load()[1]
    nothing = jax.tree.map(lambda leaf: 0 * leaf, params)
    for length in (SIZE.context + 1, 500, 5000):
        bits = program.model_bits(nothing, judged[:length], SIZE)
        assert math.isclose(bits, 8, rel_tol=1e-5), length


@pytest.mark.weekly
def test_the_counts_that_it_has_to_beat_are_the_best_ones():
    learned, judged = program.load()
    bits = [program.counting_bits(learned, judged, n) for n in (3, 4, 5, 6, 7, 8)]
    assert min(bits) == bits[2]


@pytest.mark.weekly
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_at_its_real_size_it_beats_counting(seed: int, tmp_path: Path):
    found = run("language_model", tmp_path, seed)
    bits = found["bits per byte"]
    assert found["same text"]
    assert bits["model"] < bits["5-grams"] - 0.05
    assert bits["5-grams"] < bits["3-grams"] < bits["1-grams"]
