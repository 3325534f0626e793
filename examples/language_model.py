"""A small language model: a transformer that reads and writes bytes.

It learns from the reference texts that ship with Python (`pydoc_data.topics`), and is
judged in bits per byte on texts it has not seen, beside models that count. Attention
is written out; the layers are stacked and run by `scan`, with `checkpoint`; the table
that reads a byte also writes it. Text is written with a cache of keys and values, and
without one, which gives the same text more slowly.

    python language_model.py
    python language_model.py --size large --seed 1 --output elsewhere
"""

import argparse
import json
import math
import shlex
import sys
import time
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from pydoc_data.topics import topics
from typing import NamedTuple

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
from jax import lax
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

EVERY = 50  # steps from one checkpoint to the next


class Size(NamedTuple):
    steps: int
    width: int
    layers: int
    heads: int
    context: int  # bytes that the model sees
    batch: int
    takes: str


SIZES = {
    "tiny": Size(60, 48, 2, 2, 64, 16, "half a minute, to see that it runs"),
    "small": Size(2400, 128, 2, 4, 96, 8, "about 2 minutes and 600 MB on two cores"),
    "large": Size(10000, 512, 8, 8, 512, 64, "days on two cores; meant for a GPU"),
}

# --- Text ---------------------------------------------------------------------------


def load():
    """Bytes (n,) to train on, and bytes of other topics, a tenth, to judge by."""
    names = sorted(topics)
    judged = names[::10]
    learned = [name for name in names if name not in judged]

    def read(names):
        text = "\n\n".join(topics[name] for name in names).encode()
        return np.frombuffer(text, np.uint8).astype(np.int32)

    return read(learned), read(judged)


# --- The model ----------------------------------------------------------------------


def init(key, size):
    """Weights; those of the layers are stacked, one array for all of them."""

    def weight(key, *shape):
        return jax.random.normal(key, shape) / jnp.sqrt(shape[-2])

    d, n = size.width, size.layers
    keys = jax.random.split(key, 6)
    return {
        "bytes": 0.02 * jax.random.normal(keys[0], (256, d)),
        "places": 0.02 * jax.random.normal(keys[1], (size.context, d)),
        "layers": {
            "look": weight(keys[2], n, d, 3 * d),
            "join": weight(keys[3], n, d, d) / math.sqrt(2 * n),
            "up": weight(keys[4], n, d, 4 * d),
            "down": weight(keys[5], n, 4 * d, d) / math.sqrt(2 * n),
            "scale": jnp.ones((n, 2, d)),
        },
        "scale": jnp.ones(d),
    }


def normalize(x, scale):
    """Each vector (..., d) at length one on average, times a learned scale (d,)."""
    return scale * x / jnp.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-6)


def attend(query, key, value, first):
    """What each query (n, t, heads, c) takes from the values (n, s, heads, c).

    The queries stand at places first, first + 1, ..., keys and values at 0, 1, ...
    A query sees what stands where it stands, or before.
    """
    scores = jnp.einsum("nthc,nshc->nhts", query, key) / math.sqrt(query.shape[-1])
    places = first + jnp.arange(query.shape[1])
    seen = jnp.arange(key.shape[1]) <= places[:, None]  # (t, s)
    shares = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), axis=-1)
    return jnp.einsum("nhts,nshc->nthc", shares, value)


def three_of(w, h, heads):
    """Queries, keys and values (n, t, heads, c) of h (n, t, d)."""
    x = normalize(h, w["scale"][0]) @ w["look"]
    return jnp.split(x.reshape(*h.shape[:2], 3 * heads, -1), 3, axis=2)


def after_attention(w, h, taken):
    """The rest of a layer: join the heads, then two products on each vector."""
    h = h + taken.reshape(h.shape) @ w["join"]
    x = normalize(h, w["scale"][1])
    return h + jax.nn.gelu(x @ w["up"]) @ w["down"]


def forward(params, tokens, heads):
    """Bytes (n, t) to scores (n, t, 256) of what comes next."""

    @jax.checkpoint
    def layer(h, w):
        taken = attend(*three_of(w, h, heads), first=0)
        return after_attention(w, h, taken), None

    h = params["bytes"][tokens] + params["places"][: tokens.shape[1]]
    h, _ = lax.scan(layer, h, params["layers"])
    return normalize(h, params["scale"]) @ params["bytes"].T


def loss(params, tokens, heads):
    """Mean negative log-likelihood of bytes (n, t + 1), each after those before it."""
    scores = forward(params, tokens[:, :-1], heads)
    each = optax.softmax_cross_entropy_with_integer_labels(scores, tokens[:, 1:])
    return each.mean()


# --- Writing text -------------------------------------------------------------------


def empty_cache(size, n):
    """Room for the keys and values of every layer: (layers, n, context, heads, c)."""
    shape = size.layers, n, size.context, size.heads, size.width // size.heads
    return jnp.zeros(shape), jnp.zeros(shape)


def next_scores(params, cache, token, place, heads):
    """Scores (n, 256) after one more byte (n,) at a place, and the cache with it."""

    def layer(h, inputs):
        w, keys, values = inputs
        query, key, value = three_of(w, h, heads)
        keys = lax.dynamic_update_slice(keys, key, (0, place, 0, 0))
        values = lax.dynamic_update_slice(values, value, (0, place, 0, 0))
        taken = attend(query, keys, values, first=place)
        return after_attention(w, h, taken), (keys, values)

    h = (params["bytes"][token] + params["places"][place])[:, None]
    h, cache = lax.scan(layer, h, (params["layers"], *cache))
    return (normalize(h, params["scale"]) @ params["bytes"].T)[:, 0], cache


def choose(key, place, scores, temperature):
    return jax.random.categorical(jax.random.fold_in(key, place), scores / temperature)


@partial(jax.jit, static_argnames="size")
def write_cached(params, prompt, key, temperature, size):
    """The prompt (n, m) and what follows, up to the context's length: (n, context)."""
    n, m = prompt.shape

    def step(carry, place):
        tokens, cache = carry
        scores, cache = next_scores(params, cache, tokens[:, place], place, size.heads)
        new = choose(key, place, scores, temperature)
        given = tokens[:, place + 1]
        tokens = tokens.at[:, place + 1].set(jnp.where(place + 1 < m, given, new))
        return (tokens, cache), None

    tokens = jnp.pad(prompt, [(0, 0), (0, size.context - m)])
    start = tokens, empty_cache(size, n)
    (tokens, _), _ = lax.scan(step, start, jnp.arange(size.context - 1))
    return tokens


@partial(jax.jit, static_argnames="size")
def write_uncached(params, prompt, key, temperature, size):
    """The same text; every new byte reads all of it again."""
    m = prompt.shape[1]

    def step(tokens, place):
        scores = forward(params, tokens, size.heads)[:, place]
        new = choose(key, place, scores, temperature)
        given = tokens[:, place + 1]
        return tokens.at[:, place + 1].set(jnp.where(place + 1 < m, given, new)), None

    tokens = jnp.pad(prompt, [(0, 0), (0, size.context - m)])
    tokens, _ = lax.scan(step, tokens, jnp.arange(size.context - 1))
    return tokens


# --- Models that count --------------------------------------------------------------


def counting_bits(learned, judged, order):
    """Bits per byte of a model of n-grams: what followed the last bytes before?

    A context counts as much as it was seen, against the next shorter context; it
    gives way to that in proportion to how many different bytes followed it.
    """
    text, bits = bytes(learned.astype(np.uint8)), 0.0
    tables = [defaultdict(Counter) for _ in range(order)]
    for n, table in enumerate(tables):
        for i in range(n, len(text)):
            table[text[i - n : i]][text[i]] += 1
    said = bytes(judged.astype(np.uint8))
    for i in range(order, len(said)):
        share = 1 / 256
        for n, table in enumerate(tables):
            follow = table.get(said[i - n : i])
            if follow:
                kinds, total = len(follow), follow.total()
                share = (follow[said[i]] + kinds * share) / (total + kinds)
        bits -= math.log2(share)
    return bits / (len(said) - order)


def model_bits(params, judged, size):
    """Bits per byte of the model, for bytes with at least half a context before."""
    half = size.context // 2
    starts = np.arange(0, len(judged) - size.context, half)
    windows = np.stack([judged[i : i + size.context + 1] for i in starts])

    @jax.jit
    def late(tokens):
        scores = forward(params, tokens[:, :-1], size.heads)[:, half:]
        truth = tokens[:, 1 + half :]
        return optax.softmax_cross_entropy_with_integer_labels(scores, truth).sum()

    parts = [float(late(windows[i : i + 64])) for i in range(0, len(windows), 64)]
    judged_bytes = len(windows) * (size.context - half)
    return sum(parts) / judged_bytes / math.log(2)


# --- Training -----------------------------------------------------------------------


def make_optimizer(steps):
    schedule = optax.warmup_cosine_decay_schedule(0.0, 3e-3, steps // 10, steps)
    adam = optax.adamw(schedule, b2=0.99, weight_decay=0.01)
    return optax.chain(optax.clip_by_global_norm(1.0), adam)


def training(state, done, steps, text, size, seed):
    """Go on after `done` steps; yield after each (done, state, loss)."""
    optimizer = make_optimizer(steps)

    @jax.jit
    def step(params, memory, tokens):
        value, gradient = jax.value_and_grad(loss)(params, tokens, size.heads)
        moves, memory = optimizer.update(gradient, memory, params)
        return optax.apply_updates(params, moves), memory, value

    for number in range(done, steps):
        rng = np.random.default_rng([seed, number])
        starts = rng.integers(0, len(text) - size.context, size.batch)
        tokens = text[starts[:, None] + np.arange(size.context + 1)]
        *state, value = step(*state, tokens)
        yield number + 1, tuple(state), value


def save(path, state, notes):
    """Write all, then rename: a stop in between leaves the earlier file whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name("checkpoint.tmp")
    with half.open("wb") as file:
        np.savez(file, *jax.tree.leaves(state), notes=json.dumps(notes))
    half.replace(path)


def restore(path, state, notes):
    """What was saved; `state` and `notes` as given if nothing was."""
    if not path.exists():
        print(f"No checkpoint {path} yet: this begins with the first step.")
        return state, notes
    like, structure = jax.tree.flatten(state)
    try:
        with path.open("rb") as raw, np.load(raw) as file:
            saved = json.loads(str(file["notes"]))
            if (other := saved["settings"]) != notes["settings"]:
                sys.exit(f"The run in {path} has {other}: go on with these.")
            arrays = [file[f"arr_{i}"] for i in range(len(like))]
    except Exception as error:  # NumPy, zipfile and json each have their own
        reason = str(error).partition("\n")[0]
        sys.exit(f"Cannot read {path}: {reason}. Begin without --resume.")
    print(f"Going on after step {saved['step']}.")
    return jax.tree.unflatten(structure, map(jnp.asarray, arrays)), saved


# --- The program --------------------------------------------------------------------


def fit(size, text, settings, folder, resume):
    """Train with a progress bar; weights and losses."""
    path, steps = folder / "model.checkpoint", settings["steps"]
    params = jax.jit(init, static_argnums=1)(jax.random.key(settings["seed"]), size)
    state = params, make_optimizer(steps).init(params)
    notes = {"settings": settings, "step": 0, "losses": []}
    if resume:
        state, notes = restore(path, state, notes)
    first = notes["step"]
    columns = "{task.description}", BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TimeRemainingColumn(), "{task.fields[said]}") as bar:
        task = bar.add_task("model", total=steps, completed=first, said="")
        began = time.perf_counter()
        rest = training(state, first, steps, text, size, settings["seed"])
        for done, state, value in rest:
            notes["losses"].append(float(value) / math.log(2))
            if done % EVERY == 0 or done == steps:
                notes["step"] = done
                save(path, state, notes)
            read = (done - first) * size.batch * size.context
            speed = read / (time.perf_counter() - began)
            said = f"{notes['losses'][-1]:.2f} bits a byte, {speed:,.0f} bytes/s"
            bar.update(task, completed=done, said=said)
    return state[0], notes["losses"]


def timed(write, *arguments):
    """The text that was written, and bytes a second; compiled beforehand."""
    jax.block_until_ready(write(*arguments))
    began = time.perf_counter()
    tokens = jax.block_until_ready(write(*arguments))
    return np.asarray(tokens), tokens.size / (time.perf_counter() - began)


def as_text(tokens):
    return bytes(tokens.astype(np.uint8)).decode(errors="replace")


def draw(losses, bits, path):
    """The training's loss, and the judged bits of all models."""
    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    axes.plot(losses, linewidth=0.6, label="model, training batch")
    for i, (name, value) in enumerate(bits.items()):
        axes.axhline(value, color=f"C{i + 1}", label=f"{name}, other texts")
    axes.set(xlabel="step", ylabel="bits per byte", ylim=(1, 6))
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def run(options):
    size, seed = SIZES[options.size], options.seed
    print(f"{options.size}: {size.takes}")
    options.output.mkdir(parents=True, exist_ok=True)
    settings = {"size": options.size, "steps": options.steps or size.steps}
    settings |= {"seed": seed}
    learned, judged = load()
    params, losses = fit(size, learned, settings, options.output, options.resume)
    bits = {"model": model_bits(params, judged, size)}
    for order in (1, 3, 5):
        bits[f"{order}-grams"] = counting_bits(learned, judged, order)
    prompt = np.frombuffer(b"The statement ", np.uint8).astype(np.int32)
    given = params, np.tile(prompt, (4, 1)), jax.random.key(seed), 0.7, size
    cached, fast = timed(write_cached, *given)
    uncached, slow = timed(write_uncached, *given)
    results = {"bits per byte": bits, "same text": bool((cached == uncached).all())}
    (options.output / "results.json").write_text(json.dumps(results, indent=1))
    (options.output / "text.txt").write_text("\n---\n".join(map(as_text, cached)))
    draw(losses, bits, options.output / "losses.png")
    for name, value in bits.items():
        print(f"{name:8} {value:.2f} bits per byte")
    print(f"cached {fast:,.0f} bytes/s, uncached {slow:,.0f}: the same text", end="")
    print(f": {results['same text']}\n{as_text(cached[0])}")


def positive(text):
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text} is not a positive whole number")
    return int(text)


def seed_number(text):
    if not text.isdecimal() or int(text) >= 2**31:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0 to 2**31 - 1")
    return int(text)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--output", type=Path, default=Path("language_model"), help="where to write")
    takes = "; ".join(f"{name}: {size.takes}" for name, size in SIZES.items())
    add("--size", choices=SIZES, default="small", help=f"small, if not said; {takes}")
    add("--steps", type=positive, help="at most, if not those of the size")
    add("--seed", type=seed_number, default=0, help="of weights and batches")
    add("--resume", action="store_true", help="go on with a run that was stopped")
    return parser.parse_args()


def main():
    options = read_arguments()
    try:
        run(options)
    except KeyboardInterrupt:
        again = sys.argv if options.resume else [*sys.argv, "--resume"]
        sys.exit(f"Stopped. To go on from here: python {shlex.join(again)}")
    except OSError as error:
        sys.exit(f"Cannot write to {options.output}: {error}")


if __name__ == "__main__":
    main()
