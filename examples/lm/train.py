"""Train the model: `python -m lm.train --data FOLDER --output RUN`.

Given again, the same command goes on from the newest checkpoint. SIGTERM saves one and
leaves. What the run measures goes to RUN/metrics.jsonl, one line of JSON an event, and
to a file that TensorBoard reads.
"""

import json
import math
import os
import signal
import time
from collections import deque
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax import lax
from jax.experimental import multihost_utils

from . import config as options
from . import corpus, evaluate, events, loader, model, parallel
from .checkpoint import Checkpoints, quiet

# --- One step -------------------------------------------------------------------------


def is_matrix(path, _leaf):
    names = jax.tree_util.keystr(path)
    return "kernel" in names or "embedding" in names


def make_optimizer(config):
    """AdamW with warm-up and cosine decay; only matrices decay."""
    warm = max(config.steps // 20, 1)
    schedule = optax.warmup_cosine_decay_schedule(
        0.0, config.rate, warm, config.steps, 0.1 * config.rate
    )
    mask = partial(jax.tree_util.tree_map_with_path, is_matrix)
    adam = optax.adamw(schedule, b2=0.95, weight_decay=0.1, mask=mask)
    return optax.chain(optax.clip_by_global_norm(1.0), adam)


def loss(graph, params, tokens):
    """Mean cross-entropy of rows (n, context + 1), each token after those before it."""
    logits, _ = nnx.merge(graph, params)(tokens[:, :-1])
    each = optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:])
    return each.mean()


def make_step(config, graph):
    """The jitted step from (state, rows) to (state, loss); the state is donated."""
    optimizer = make_optimizer(config)
    differentiate = jax.value_and_grad(partial(loss, graph))

    @partial(jax.jit, donate_argnums=0)
    def step(state, rows):
        params = state["params"]

        def add(total, part):
            return jax.tree.map(jnp.add, total, differentiate(params, part)), None

        # The parts (accumulate, n, context + 1) are equally large.
        total = differentiate(params, rows[0])
        if config.accumulate > 1:
            total, _ = lax.scan(add, total, rows[1:])
        value, grads = jax.tree.map(lambda x: x / config.accumulate, total)
        updates, opt_state = optimizer.update(grads, state["opt_state"], params)
        params = optax.apply_updates(params, updates)
        return {"params": params, "opt_state": opt_state}, value

    return step


def make_state(config, mesh):
    """The graph, a jitted function that makes the state, and the abstract state."""
    graph, weights = model.create(config)

    def init(key):
        params = weights(key)
        return {"params": params, "opt_state": make_optimizer(config).init(params)}

    shapes = jax.eval_shape(init, jax.random.key(0))
    places = parallel.shardings(shapes, mesh, config)
    abstract = jax.tree.map(
        lambda leaf, place: jax.ShapeDtypeStruct(
            leaf.shape, leaf.dtype, sharding=place
        ),
        shapes,
        places,
    )
    return graph, jax.jit(init, out_shardings=places), abstract


# --- Speed ----------------------------------------------------------------------------


def flops_a_token(config, params):
    """Of forward and backward, in matrix products: 6 a weight, and attention."""
    leaves = jax.tree_util.tree_leaves_with_path(params)
    weights = sum(leaf.size for path, leaf in leaves if is_matrix(path, leaf))
    return 6 * weights + 6 * config.layers * config.context * config.width


def roof(config, tries=5):
    """Operations a second of a large matrix product, the best of a few."""
    # A GPU multiplies a small matrix faster than Python asks for it.
    size = 1024 if jax.default_backend() == "cpu" else 8192
    x = jnp.ones((size, size), config.compute)
    product = jax.jit(jnp.matmul)
    product(x, x).block_until_ready()
    seconds = []
    for _ in range(tries):
        began = time.perf_counter()
        product(x, x).block_until_ready()
        seconds.append(time.perf_counter() - began)
    # Simulated devices share the cores of one CPU.
    devices = 1 if jax.default_backend() == "cpu" else jax.device_count()
    return 2 * size**3 / min(seconds) * devices


# --- Metrics --------------------------------------------------------------------------


class Metrics:
    """Lines of JSON, and the same for TensorBoard.

    A loss is fetched two steps late, when it is long computed.
    """

    def __init__(self, path, first, write):
        self.path, self.write, self.pending = path, write, deque()
        if write:
            # A run keeps its lines up to its checkpoint; without one it starts over.
            lines = path.read_text().splitlines() if first and path.exists() else []
            kept = [line for line in lines if json.loads(line)["step"] <= first]
            path.write_text("".join(f"{line}\n" for line in kept))
            self.board = events.Writer(path.parent)
            for line in kept:
                self.board.add(**json.loads(line))

    def add(self, step, value, **more):
        value.copy_to_host_async()
        self.pending.append((step, value, more))
        while len(self.pending) > 2:
            self.line(*self.pending.popleft())

    def line(self, step, value, more):
        value = float(value)  # in nats a token
        if not math.isfinite(value):
            options.stop(f"The loss of step {step} is {value}: lower --rate.")
        self.event(step=step, loss=value, **more)

    def event(self, **event):
        if self.write:
            with self.path.open("a") as file:
                file.write(json.dumps(event) + "\n")
            self.board.add(**event)

    def flush(self):
        while self.pending:
            self.line(*self.pending.popleft())


# --- The run --------------------------------------------------------------------------


class Preemption:
    """Whether SIGTERM has come; on several processes, at the same step on all."""

    def __init__(self):
        self.came = False
        if jax.process_count() == 1:
            signal.signal(signal.SIGTERM, self.note)

    def note(self, *_):
        self.came = True

    def at(self, step):
        if jax.process_count() > 1:
            return multihost_utils.reached_preemption_sync_point(step)
        return self.came


def prepare(config):
    """The corpus; process 0 makes it, and the others wait."""
    if jax.process_index() == 0:
        corpus.prepare(config)
    multihost_utils.sync_global_devices("corpus")
    return corpus.prepare(config)


def train(config):
    """Train to the last step, or until SIGTERM; the results, or None."""
    begin_distributed()
    quiet()
    mesh = parallel.make_mesh(config, jax.device_count())
    described, run = prepare(config), Path(config.output)
    first_process = jax.process_index() == 0
    with jax.set_mesh(mesh), Checkpoints(config, described["tokenizer"]) as checkpoints:
        graph, init, abstract = make_state(config, mesh)
        first, rows = (
            checkpoints.latest,
            loader.batches(config, jax.process_index(), jax.process_count()),
        )
        if first:
            state, position = checkpoints.load(abstract)
            rows.set_state(position)
            say(f"Going on after step {first}.")
        else:
            state = init(jax.random.key(config.seed))
            if first_process:
                options.write(config, run / "config.json")
        step = (
            make_step(config, graph).lower(state, spec_of_rows(config, mesh)).compile()
        )
        metrics = Metrics(run / "metrics.jsonl", first, first_process)
        if not first:
            metrics.event(step=0, devices=jax.device_count(), **parallel.report(step))
        preemption, began, ended = Preemption(), time.perf_counter(), first
        for done in range(first + 1, config.steps + 1):
            with profiler(config, done, run):
                state, value = step(state, loader.to_devices(next(rows), mesh))
            if done % config.log_every == 0 or done == config.steps:
                seconds = time.perf_counter() - began
                tokens = (done - ended) * config.batch * config.context
                metrics.add(done, value, tokens_a_second=tokens / seconds)
                began, ended = time.perf_counter(), done
            elif done % 5 == 0:  # keeps the queue of steps short
                value.block_until_ready()
            stopped = preemption.at(done)
            evaluates = done % config.eval_every == 0
            saves = stopped or done % config.save_every == 0 or done == config.steps
            # All is noted before the step is saved: what goes on begins with the next.
            if evaluates or saves:
                metrics.flush()
            if evaluates:
                bits = evaluate.quick(config, graph, state["params"], described)
                metrics.event(step=done, validation_bits_a_byte=bits)
                say(f"step {done}: {bits:.3f} bits a byte of validation text")
                began, ended = time.perf_counter(), done
            if saves:
                checkpoints.save(done, state, rows.get_state())
            if stopped and done < config.steps:
                say(f"SIGTERM: saved step {done}. The same command goes on from here.")
                return None
        results = finish(config, graph, state, described, run / "metrics.jsonl")
        if first_process:
            (run / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    return results


def finish(config, graph, state, described, metrics):
    """What the trained model reaches; the test text is read here, and only once."""
    test = evaluate.evaluate(config, graph, state["params"], described, "test")
    say(f"test: {test:.3f} bits a byte")
    results = {"test": test}
    if jax.process_index() == 0:
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        speeds = [line["tokens_a_second"] for line in lines if "loss" in line]
        speed, top = float(np.median(speeds)), roof(config)
        share = speed * flops_a_token(config, state["params"]) / top
        results["weights"] = sum(x.size for x in jax.tree.leaves(state["params"]))
        results |= {"tokens a second": speed, "share of the roof": share}
        say(f"{speed:,.0f} tokens a second, {share:.0%} of a large product's speed")
    return results


def spec_of_rows(config, mesh):
    shape = config.accumulate, config.batch // config.accumulate, config.context + 1
    sharding = jax.NamedSharding(mesh, jax.P(None, "data", None))
    return jax.ShapeDtypeStruct(shape, jnp.int32, sharding=sharding)


def profiler(config, step, run):
    """Steps 10 to 15 are one recording; every other step goes unrecorded."""
    if config.profile and step == 10:
        jax.profiler.start_trace(run / "profile")
    if config.profile and step == 16:
        jax.profiler.stop_trace()
        say(f"Recorded steps 10 to 15 in {run / 'profile'}.")
    recorded = config.profile and 10 <= step <= 15
    return (
        jax.profiler.StepTraceAnnotation("step", step_num=step)
        if recorded
        else nullcontext()
    )


def begin_distributed():
    """Join the other processes, if `lm.launch` started several."""
    if "LM_PROCESSES" in os.environ and not jax.distributed.is_initialized():
        count, index = os.environ["LM_PROCESSES"], os.environ["LM_PROCESS"]
        jax.distributed.initialize(os.environ["LM_COORDINATOR"], int(count), int(index))


def say(line):
    if jax.process_index() == 0:
        print(line, flush=True)


def main():
    parser = options.parser(__doc__.splitlines()[0])
    config = options.from_options(parser.parse_args())
    try:
        train(config)
    except KeyboardInterrupt:
        options.stop("Stopped. The same command goes on from the newest checkpoint.")
    except BrokenPipeError:  # what reads the lines has ended, as `head` does
        options.stop("Nobody reads its lines. The same command goes on.")
    except OSError as error:
        options.stop(
            f"Cannot write to {config.output} or {config.corpus}: {error}. Make room, "
            "or give other folders; the same command goes on."
        )


if __name__ == "__main__":
    main()
