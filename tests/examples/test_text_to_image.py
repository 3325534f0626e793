"""Text to image: the pictures, the parser, the codes, the models, and the judge."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from .conftest import load, run

program = load("text_to_image")
ALL = program.COMBINATIONS


def pictures(rows: np.ndarray | slice = slice(None)) -> jax.Array:
    return program.draw(jax.random.key(0), jnp.asarray(ALL[rows]))


@pytest.mark.parametrize("seed", range(5))
def test_every_pair_is_seen_and_no_unseen_combination_is(seed: int):
    seen, unseen = program.split(seed)
    assert (len(seen), len(unseen)) == (168, 48)
    assert not set(seen) & set(unseen)
    for one, two in ((0, 1), (0, 2), (1, 2)):
        pairs = {(c[one], c[two]) for c in ALL[seen]}
        assert pairs == {(c[one], c[two]) for c in ALL}


def test_the_parser_reads_every_real_picture():
    kinds = ("color", "shape", "place", "all")
    assert program.score(pictures(), ALL) == dict.fromkeys(kinds, 1.0)


def test_the_judge_sees_pictures_of_other_prompts():
    other = np.random.default_rng(0).permutation(216)
    found = program.score(pictures(other), ALL)
    assert found["all"] < 0.05
    assert found["color"] < 0.4
    assert program.score(jnp.zeros((216, 16, 16, 3)), ALL)["all"] < 0.05


def test_patches_are_taken_apart_and_put_together():
    x = pictures()
    np.testing.assert_array_equal(program.unpatch(program.patches(x)), x)


def test_prompts_say_what_they_mean():
    assert program.prompt((0, 0, 0), 0) == "a red square top left"
    assert program.PROMPTS.shape == (216, 4, program.LENGTH)
    assert len(np.unique(program.PROMPTS[:, 0], axis=0)) == 216


@pytest.fixture(scope="module")
def autoencoder(tmp_path_factory: pytest.TempPathFactory):
    size, folder = program.SIZES["tiny"], tmp_path_factory.mktemp("autoencoder")
    seen, _ = program.split(0)
    return program.fit_autoencoder(size, seen, {"seed": 0}, folder, False)


def test_corruption_leaves_a_share_and_leans_high():
    tokens = jnp.full((4000, 16), 999)
    share = np.asarray(program.corrupt(jax.random.key(0), tokens) != 999).mean(axis=1)
    assert 0.6 < share.mean() < 0.72
    assert share.min() < 0.1
    assert share.max() == 1


@program.eqx.filter_jit
def scores(net, tokens, words):
    return net(tokens, words)


def model(ordered: bool) -> program.Transformer:
    return program.Transformer(program.SIZES["tiny"], ordered, jax.random.key(0))


@pytest.mark.parametrize("ordered", [True, False])
def test_in_order_a_token_sees_the_earlier_ones_or_else_every_other(ordered: bool):
    tokens, words = jnp.arange(16), jnp.asarray(program.PROMPTS[0, 0])
    net = model(ordered)
    before = scores(net, tokens, words)
    after = scores(net, tokens.at[7].set(200), words)
    changed = np.asarray(before != after).any(axis=1)
    assert changed.tolist() == [not ordered] * 8 + [True] * 8
    other = scores(net, tokens, jnp.asarray(program.PROMPTS[9, 0]))
    assert (other != before).any(axis=1).all(), "it sees the words"


def test_words_that_are_not_there_are_not_seen():
    net, tokens = model(ordered=False), jnp.arange(16)
    short = program.PROMPTS[0, 0]
    assert (short == 0).any()
    before = scores(net, tokens, jnp.asarray(short))
    net = program.eqx.tree_at(lambda m: m.words, net, net.words.at[0].add(9.0))
    np.testing.assert_array_equal(scores(net, tokens, jnp.asarray(short)), before)


def test_the_second_step_is_part_of_the_loss_and_its_draw_passes_no_gradient():
    net, key = model(ordered=False), jax.random.key(0)
    tokens = jnp.zeros((4, 16), jnp.int32)
    words = jnp.asarray(program.PROMPTS[:4, 0])

    @program.eqx.filter_jit
    @program.eqx.filter_value_and_grad
    def both(net):
        first = program.denoising_loss(net, tokens, words, key, 1)
        return program.denoising_loss(net, tokens, words, key, 2) - first

    difference, gradient = both(net)
    assert difference != 0
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


class Knows:
    """A perfect network: it scores the tokens of the picture that the words ask for."""

    def __init__(self, autoencoder, blind: bool):
        self.prompts = jnp.asarray(program.PROMPTS[:, 0])
        self.tokens, self.blind = autoencoder.tokens(pictures()), blind

    def __call__(self, tokens, words):
        asked = (self.prompts == words).all(axis=1).argmax()
        right = self.tokens[jnp.where(self.blind, 0, asked)]
        return 50.0 * jax.nn.one_hot(right, program.CODES)


@pytest.mark.parametrize("name", ["two steps", "in order"])
def test_a_perfect_network_draws_what_is_asked_and_a_blind_one_does_not(
    name: str, autoencoder
):
    words = jnp.asarray(program.PROMPTS[:, 0])
    right = {}
    for blind in (False, True):
        models = {"autoencoder": autoencoder, name: Knows(autoencoder, blind)}
        made = program.make(name, models, words, 0, 1.0)
        right[blind] = program.score(made, ALL)["all"]
    assert right[False] > 0.9
    assert right[True] < 0.05


@pytest.mark.weekly
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_at_its_real_size_it_draws_what_it_never_saw(seed: int, tmp_path: Path):
    found = run("text_to_image", tmp_path, seed)
    assert found["parser"]["real"]["all"] == 1
    assert found["parser"]["coded"]["all"] > 0.99
    ours = found["two steps"]
    for share in ours["unseen"].values():
        assert share >= 0.95
    assert ours["another's prompt"]["all"] < 0.06
    # Rounding decides whether a training with one step ends well: with these seeds it
    # did thrice on one CPU, and twice on another.
    assert abs(found["in order"]["unseen"]["all"] - ours["unseen"]["all"]) < 0.05
    assert found["one step"]["unseen"]["all"] > 0.4
    # As the page says: this task does not tell many rounds from one, in which every
    # token is drawn. After two, a quarter are still noise.
    by_rounds = ours["by rounds"]
    assert abs(by_rounds["1"] - by_rounds["16"]) < 0.05
    assert by_rounds["2"] < by_rounds["16"] - 0.1
