"""A decoder-only transformer in Flax NNX.

RMSNorm, rotary positions, grouped queries, SwiGLU; the layers are one scan. Weights
are float32, activations of the dtype in the configuration. `out_sharding` says how an
activation lies on the mesh, where there is one; see `lm.parallel`.
"""

from functools import partial

import jax
import jax.numpy as jnp
from flax import nnx

from .parallel import gathered, layout

POLICIES = {
    "dots": jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
    "all": jax.checkpoint_policies.nothing_saveable,
}


def rotate(x, positions):
    """Turn pairs of features of x (b, t, heads, c) by angles that grow with (b, t)."""
    half = x.shape[-1] // 2
    angles = positions[..., None] * 10_000.0 ** (-jnp.arange(half) / half)
    cos, sin = jnp.cos(angles)[:, :, None], jnp.sin(angles)[:, :, None]
    a, b = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1).astype(x.dtype)


class Attention(nnx.Module):
    def __init__(self, config, linear):
        d, c = config.width, config.width // config.heads
        self.query = linear(d, config.heads * c)
        self.key = linear(d, config.kv_heads * c)
        self.value = linear(d, config.kv_heads * c)
        self.output = linear(config.heads * c, d)
        self.size = c

    def heads(self, linear, x):
        y = linear(x, out_sharding=layout("data", None, "model"))
        # JAX maps its attention over a single head, and maps over no axis of a mesh.
        model = "model" if y.shape[-1] > self.size else None
        sharding = layout("data", None, model, None)
        return jnp.reshape(y, (*y.shape[:2], -1, self.size), out_sharding=sharding)

    def __call__(self, x, positions, cache=None):
        """Outputs (b, t, d), and keys and values: those of x, or the updated cache.

        With a cache (b, context, heads, c), x is one token at `positions` (b, 1).
        """
        query = rotate(self.heads(self.query, x), positions)
        key = rotate(self.heads(self.key, x), positions)
        value = self.heads(self.value, x)
        if cache is None:
            out = jax.nn.dot_product_attention(query, key, value, is_causal=True)
        else:
            at = jnp.arange(x.shape[0]), positions[:, 0]  # may be symbolic
            key = cache[0].at[at].set(key[:, 0])
            value = cache[1].at[at].set(value[:, 0])
            known = positions[:, 0] + 1
            out = jax.nn.dot_product_attention(
                query, key, value, key_value_seq_lengths=known
            )
        sharding = layout("data", None, "model")
        out = jnp.reshape(out, (*x.shape[:2], -1), out_sharding=sharding)
        return self.output(out, out_sharding=layout("data", None, None)), (key, value)


class SwiGLU(nnx.Module):
    def __init__(self, config, linear):
        d = config.width
        hidden = -(-8 * d // 3 // 32) * 32  # as many weights as two products with 4 d
        self.gate, self.up = linear(d, hidden), linear(d, hidden)
        self.down = linear(hidden, d)

    def __call__(self, x):
        wide = layout("data", None, "model")
        h = jax.nn.silu(self.gate(x, out_sharding=wide)) * self.up(x, out_sharding=wide)
        return self.down(h, out_sharding=layout("data", None, None))


class Block(nnx.Module):
    def __init__(self, config, rngs):
        dtype = jnp.dtype(config.compute)
        linear = partial(nnx.Linear, use_bias=False, dtype=dtype, rngs=rngs)
        norm = partial(nnx.RMSNorm, config.width, dtype=dtype, rngs=rngs)
        self.attention, self.mlp = Attention(config, linear), SwiGLU(config, linear)
        self.before_attention, self.before_mlp = norm(), norm()

    def __call__(self, x, positions, cache=None):
        attended, cache = self.attention(self.before_attention(x), positions, cache)
        x = x + attended
        return x + self.mlp(self.before_mlp(x)), cache


class Transformer(nnx.Module):
    def __init__(self, config, rngs):
        @nnx.split_rngs(splits=config.layers)
        @nnx.vmap
        def stack(rngs):
            return Block(config, rngs)

        dtype = jnp.dtype(config.compute)
        normal = nnx.initializers.normal(0.02)
        self.embed = nnx.Embed(
            config.vocab, config.width, dtype=dtype, embedding_init=normal, rngs=rngs
        )
        self.blocks = stack(rngs)
        self.norm = nnx.RMSNorm(config.width, dtype=dtype, rngs=rngs)
        self.remat = config.remat

    def __call__(self, tokens, positions=None, cache=None, keep=False):
        """Logits (b, t, vocab) of tokens (b, t), each seeing those before it.

        With `keep`, or with a cache (layers, b, context, heads, c) of keys and values,
        the second result is the cache, else None.
        """
        if positions is None:
            positions = jnp.arange(tokens.shape[1])[None]

        def layer(block, x, cache):
            x, cache = gathered(block)(x, positions, cache)
            return x, cache if keep or cache_given else None

        cache_given = cache is not None
        if self.remat != "none" and not (keep or cache_given):
            layer = nnx.remat(layer, policy=POLICIES[self.remat])
        run = nnx.scan(layer, in_axes=(0, nnx.Carry, 0), out_axes=(nnx.Carry, 0))
        embed = gathered(self.embed)
        x = embed(tokens, out_sharding=layout("data", None, None))
        x, cache = run(self.blocks, x, cache)
        logits = embed.attend(self.norm(x))
        return logits.astype(jnp.float32), cache


def create(config):
    """The model's graph definition, and a function of a key that makes its weights."""

    def weights(key):
        return nnx.split(Transformer(config, nnx.Rngs(key)))[1]

    abstract = nnx.eval_shape(lambda: Transformer(config, nnx.Rngs(0)))
    return nnx.split(abstract)[0], weights
