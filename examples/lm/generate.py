"""Write text: `python -m lm.generate RUN --prompt "def read" --prompt "class "`.

`prefill` reads all prompts at once and keeps their keys and values in a cache; `step`
adds one token to each. Both draw the next token themselves, so two compiled functions
do everything.
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from . import corpus, evaluate
from .config import require, stop


def draw(logits, seeds, place, temperature, top_p):
    """One token for each row (b, vocab), by its own seed (b,) and place (b,).

    Only the likeliest tokens that together reach `top_p` can be drawn; a temperature
    of 0 takes the likeliest.
    """
    order = jnp.argsort(-logits, axis=-1)
    ranked = jnp.take_along_axis(logits, order, axis=-1)
    ranked = ranked / jnp.maximum(temperature, 1e-6)
    before = jnp.cumsum(jax.nn.softmax(ranked), axis=-1) - jax.nn.softmax(ranked)
    ranked = jnp.where(before < top_p, ranked, -jnp.inf)

    def one(seed, place, row):
        return jax.random.categorical(
            jax.random.fold_in(jax.random.key(seed), place), row
        )

    rank = jax.vmap(one)(seeds, place, ranked)
    rank = jnp.where(temperature > 0, rank, 0)
    return jnp.take_along_axis(order, rank[:, None], axis=-1)[:, 0].astype(jnp.int32)


def functions(graph):
    """`prefill` and `step` of a model, as functions of its weights."""

    def prefill(params, tokens, lengths, seeds, temperature, top_p):
        """The token after each prompt, padded to (b, context), and the cache."""
        logits, cache = nnx.merge(graph, params)(tokens, keep=True)
        last = jnp.take_along_axis(logits, lengths[:, None, None] - 1, axis=1)[:, 0]
        return draw(last, seeds, lengths, temperature, top_p), cache

    def step(params, cache, token, place, seeds, temperature, top_p):
        """The token after `token` (b,), at `place` (b,), and the cache."""
        logits, cache = nnx.merge(graph, params)(token[:, None], place[:, None], cache)
        return draw(logits[:, 0], seeds, place + 1, temperature, top_p), cache

    return prefill, step


def encode(tokenizer, prompts, context, new):
    """Prompts as tokens (b, context), padded behind, and their lengths (b,)."""
    for text in prompts:
        is_text = not any("\ud800" <= letter <= "\udfff" for letter in text)
        require(is_text, f"The prompt {text[:20]!r} is not UTF-8: give text.")
    ids = [[0, *each.ids] for each in tokenizer.encode_batch(list(prompts))]
    tokens = np.zeros((len(ids), context), np.int32)
    for row, prompt, text in zip(tokens, ids, prompts, strict=True):
        if len(prompt) + new > context:
            stop(
                f"The prompt {text[:20]!r} has {len(prompt)} tokens; with {new} new "
                f"ones that is more than the context of {context}: shorten it."
            )
        row[: len(prompt)] = prompt
    return tokens, np.array([len(prompt) for prompt in ids], np.int32)


def write(prefill, step, params, tokens, lengths, new, seed, temperature, top_p):
    """The prompts with `new` tokens behind each: a list of arrays of ids."""
    tokens, rows = tokens.copy(), np.arange(len(tokens))
    how = (
        np.arange(seed, seed + len(tokens), dtype=np.uint32),
        np.float32(temperature),
        np.float32(top_p),
    )
    token, cache = prefill(params, tokens, lengths, *how)
    for i in range(new):
        tokens[rows, lengths + i] = token
        if i + 1 < new:
            token, cache = step(params, cache, token, lengths + np.int32(i), *how)
    return [row[1 : n + new] for row, n in zip(tokens, lengths, strict=True)]


def write_uncached(graph, params, tokens, lengths, new, seed, temperature, top_p):
    """The same text without a cache: each new token reads the whole text again."""
    prefill = jax.jit(functions(graph)[0])
    tokens, rows = tokens.copy(), np.arange(len(tokens))
    seeds = np.arange(seed, seed + len(tokens), dtype=np.uint32)
    how = seeds, np.float32(temperature), np.float32(top_p)
    for i in range(new):
        token, _ = prefill(params, tokens, lengths + np.int32(i), *how)
        tokens[rows, lengths + i] = token
    return [row[1 : n + new] for row, n in zip(tokens, lengths, strict=True)]


def compiled(graph):
    """`prefill` and `step`, jitted; the cache is updated in place."""
    prefill, step = functions(graph)
    return jax.jit(prefill), jax.jit(step, donate_argnums=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="folder of a run")
    parser.add_argument("--prompt", action="append", help="several are written at once")
    parser.add_argument("--tokens", type=int, default=40, help="how many to write")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--top_p", type=float, default=0.95)
    args = parser.parse_args()
    require(args.tokens >= 1, "--tokens has to be at least 1")
    require(0 <= args.seed < 2**31, "--seed has to be from 0 to 2**31 - 1")
    require(args.temperature >= 0, "--temperature has to be at least 0")
    require(0 < args.top_p <= 1, "--top_p has to be above 0 and at most 1")
    config, graph, params, notes = evaluate.load(args.run)
    tokenizer = corpus.tokenizer_of(config.corpus, notes["tokenizer"])
    prompts = args.prompt or ["def read", "class "]
    tokens, lengths = encode(tokenizer, prompts, config.context, args.tokens)
    how = args.tokens, args.seed, args.temperature, args.top_p
    for ids in write(*compiled(graph), params, tokens, lengths, *how):
        print(tokenizer.decode(ids), end="\n---\n")


if __name__ == "__main__":
    main()
