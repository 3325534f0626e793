"""`train_convnet` on eight devices: its model, loss and step, and not a line changed.

Where arrays are put decides how the work is divided. The same compiled step runs with
the batch divided (data parallel), with weights and optimizer state divided as well
(FSDP), and on a mesh of two axes; older code does the first of these with `pmap`. The
loss goes the same way in all of them. What differs is what a device has to hold and
what it has to send, and the compiled program tells both.

    python convnet_on_devices.py      # eight devices, simulated on the CPU
    JAX_NUM_CPU_DEVICES=4 python convnet_on_devices.py

It needs `train_convnet.py` beside it, and the arrays of a real cluster need no more.
"""

import argparse
import json
import math
import os
import re
import shlex
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

# JAX reads this when it is imported; a machine with other devices uses those.
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

try:
    import train_convnet as convnet_file
except ImportError as error:
    sys.exit(f"{Path(__file__).name} needs train_convnet.py beside it: {error}")

EVERY = 20  # steps from one checkpoint to the next


class Size(NamedTuple):
    steps: int
    channels: tuple[int, ...]
    takes: str


SIZES = {
    "tiny": Size(20, (8, 16), "about 20 seconds, to see that it runs"),
    "small": Size(100, (32, 64), "about 30 seconds and 550 MB on two cores"),
    "large": Size(
        1000, (64, 128, 256), "half an hour on two cores; meant for a cluster"
    ),
}

# --- Layouts: a mesh, and the axis or axes over which each array is divided ---------


def mesh(**axes):
    """A mesh of named axes and their sizes, on which JAX divides the work itself."""
    automatic = (AxisType.Auto,) * len(axes)
    return jax.make_mesh(tuple(axes.values()), tuple(axes), axis_types=automatic)


class Layout(NamedTuple):
    mesh: Any
    weights: Any  # from a weight's shape to its PartitionSpec
    rows: Any = P("data")  # of the batch
    gathered: bool = False  # whether a step collects the whole weights before use


def whole(shape):
    """Every device holds all of it."""
    return P()


def divided_over(axis, count):
    """Divide the last dimension that `count` divides; leave small arrays whole."""

    def spec(shape):
        if np.prod(shape, dtype=int) < 64:
            return P()
        fits = [i for i, n in enumerate(shape) if n % count == 0]
        return (
            P(*(axis if i == fits[-1] else None for i in range(len(shape))))
            if fits
            else P()
        )

    return spec


def layouts(count):
    """How the work can be divided over `count` devices, by name."""
    return {
        "one device": Layout(mesh(data=1), whole),
        "data parallel": Layout(mesh(data=count), whole),
        "FSDP": Layout(mesh(data=count), divided_over("data", count), gathered=True),
        "two axes": Layout(mesh(data=count // 2, model=2), divided_over("model", 2)),
    }


def placed(layout, tree, spec):
    """The tree, each array divided over the layout's mesh as `spec(shape)` says."""

    def sharding(leaf):
        return NamedSharding(layout.mesh, spec(np.shape(leaf)))

    return jax.device_put(tree, jax.tree.map(sharding, tree))


# --- Training: the step is that of train_convnet ------------------------------------


def start(channels, seed):
    """The model, its optimizer, and weights with the optimizer's memory, not placed."""
    model, optimizer = convnet_file.convnet(channels), optax.adam(1e-3)
    params = jax.jit(model.init)(jax.random.key(seed))
    return model, optimizer, (params, optimizer.init(params))


def gathering(layout, forward):
    """The same function, for which every device first collects the whole weights."""
    everywhere = NamedSharding(layout.mesh, P())
    return lambda p, x: forward(lax.with_sharding_constraint(p, everywhere), x)


def jit_step(layout, model, optimizer, state):
    """The step of the other file, its results divided as its arguments are."""
    forward = gathering(layout, model.forward) if layout.gathered else model.forward
    step = convnet_file.make_step(forward, optimizer)
    kept = jax.tree.map(lambda leaf: leaf.sharding, state)
    return jax.jit(step, out_shardings=(*kept, NamedSharding(layout.mesh, P())))


def pmap_step(model, optimizer):
    """The step as older code has it: what one device does with its rows (n / 8, ...).

    Sums over all devices are ours to take. The mean of the devices' own means would
    be wrong here: of a short batch, some devices have no images at all.
    """

    def step(params, memory, batch):
        def loss(params):
            scores = model.forward(params, batch["x"])
            each = optax.softmax_cross_entropy_with_integer_labels(scores, batch["y"])
            return (batch["weight"] * each).sum() / images

        images = lax.psum(batch["weight"].sum(), "data")
        value, gradient = lax.psum(jax.value_and_grad(loss)(params), "data")
        moves, memory = optimizer.update(gradient, memory, params)
        return optax.apply_updates(params, moves), memory, value

    return jax.pmap(step, axis_name="data")


def training(step, place, state, done, steps, data, seed):
    """Go on after `done` steps; yield after each (done, state, loss)."""
    stream = convnet_file.batches(*data["train"], seed, done)
    for number in range(done, steps):
        *state, value = step(*state, place(next(stream)))
        # Simulated devices share the cores: more than one step at a time can block.
        yield number + 1, tuple(state), float(np.ravel(value.block_until_ready())[0])


# --- What a device holds, and what it sends -----------------------------------------


def bytes_held(tree):
    """Bytes of a tree of arrays that the first device holds."""
    return sum(leaf.addressable_shards[0].data.nbytes for leaf in jax.tree.leaves(tree))


COLLECTIVE = re.compile(
    r"= (?P<results>.*?) (?P<name>all-reduce|all-gather|reduce-scatter|all-to-all"
    r"|collective-permute)(?:-start)?\("
)


def bytes_sent(compiled):
    """Bytes of the results of each kind of collective in a compiled program."""
    sent = {}
    for found in COLLECTIVE.finditer(compiled.as_text()):
        shapes = re.findall(r"\b[a-z]+(\d+)\[([\d,]*)\]", found["results"])
        for bits, shape in shapes:
            count = math.prod(int(n) for n in shape.split(",") if n)
            sent[found["name"]] = sent.get(found["name"], 0) + count * int(bits) // 8
    return sent


# --- What goes wrong on the way, and what cures it -----------------------------------


def rows_that_do_not_divide(count, model, data):
    """250 images over eight devices; the cure is padding, as for training batches."""
    rows = NamedSharding(mesh(data=count), P("data"))
    yield lambda: jax.device_put(data["validation"][0], rows)
    padded = next(convnet_file.batches(*data["validation"], 0, size=32 * count))
    yield lambda: jax.device_put(padded, rows)


def arrays_on_other_devices(count, model, data):
    """Weights on all devices, a batch on the first alone; the cure is to place both."""
    params = jax.device_put(
        model.init(jax.random.key(0)), NamedSharding(mesh(data=count), P())
    )
    x = data["validation"][0]
    forward = jax.jit(model.forward)
    yield lambda: forward(params, jax.device_put(x, jax.devices()[0]))
    yield lambda: forward(params, x)  # not placed: JAX moves it where the weights are


def one_spec_for_every_weight(count, model, data):
    """A spec of two entries for a bias of one; the cure is a rule for shapes."""
    params, divided = model.init(jax.random.key(0)), mesh(data=count)
    yield lambda: jax.device_put(params, NamedSharding(divided, P(None, "data")))
    layout = Layout(divided, divided_over("data", count))
    yield lambda: placed(layout, params, layout.weights)


def axes_that_are_explicit(count, model, data):
    """`make_mesh` asks for shardings in types; the cure is to leave them to JAX."""
    x, y = (a[: 8 * count] for a in data["validation"])
    batch = {"x": x, "y": y, "weight": np.ones(len(x), np.float32)}
    grad = jax.jit(jax.grad(lambda p, b: convnet_file.loss(model.forward, p, b)))
    params = model.init(jax.random.key(0))

    def attempt(divided):
        whole, rows = NamedSharding(divided, P()), NamedSharding(divided, P("data"))
        return grad(jax.device_put(params, whole), jax.device_put(batch, rows))

    yield lambda: attempt(jax.make_mesh((count,), ("data",)))
    yield lambda: attempt(mesh(data=count))


FAULTS = [
    rows_that_do_not_divide,
    arrays_on_other_devices,
    one_spec_for_every_weight,
    axes_that_are_explicit,
]


def met_on_the_way(count, model, data):
    """For each fault, the error that JAX raises; each cure is run."""
    said = {}
    for fault in FAULTS:
        wrong, right = fault(count, model, data)
        try:
            wrong()
        except Exception as error:  # of several classes; the test names them
            said[fault.__name__] = f"{type(error).__name__}: {error}".partition("\n")[0]
        right()
    return said


# --- Checkpoints: whole arrays in one file, whatever the layout ----------------------


def save(path, state, notes):
    """Write all, then rename: a stop in between leaves the earlier file whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name("checkpoint.tmp")
    with half.open("wb") as file:
        np.savez(file, *jax.tree.leaves(state), notes=json.dumps(notes))
    half.replace(path)


def restore(path, state, notes):
    """What was saved, placed as `state` is; `state` and `notes` if nothing was."""
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
        placed = [
            jax.device_put(a, b.sharding) for a, b in zip(arrays, like, strict=True)
        ]
    except Exception as error:  # NumPy, zipfile and json each have their own
        reason = str(error).partition("\n")[0]
        sys.exit(f"Cannot read {path}: {reason}. Begin without --resume.")
    print(f"Going on after step {saved['step']}.")
    return jax.tree.unflatten(structure, placed), saved


# --- The program --------------------------------------------------------------------


def fit(name, step, place, state, data, settings, path, resume):
    """Train in one layout with a progress bar; the state after, losses and speed."""
    notes = {"settings": settings, "step": 0, "losses": []}
    if resume:
        state, notes = restore(path, state, notes)
    first, steps = notes["step"], settings["steps"]
    columns = "{task.description:13}", BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TimeRemainingColumn(), "{task.fields[said]}") as bar:
        task = bar.add_task(name, total=steps, completed=first, said="")
        began = time.perf_counter()
        rest = training(step, place, state, first, steps, data, settings["seed"])
        for done, state, value in rest:
            notes["losses"].append(value)
            if done % EVERY == 0 or done == steps:
                notes["step"] = done
                save(path, state, notes)
            speed = (done - first) / (time.perf_counter() - began)
            said = f"loss {value:.3f}, {speed:.0f} steps/s"
            bar.update(task, completed=done, said=said)
    return state, notes["losses"]


def fit_layout(name, layout, size, data, settings, path, resume):
    """Place everything as a layout says, and train; losses, and bytes a device."""
    model, optimizer, state = start(size.channels, settings["seed"])
    state = placed(layout, state, layout.weights)
    step = jit_step(layout, model, optimizer, state)

    def place(batch):
        return placed(layout, batch, lambda shape: layout.rows)

    batch = place(next(convnet_file.batches(*data["train"], 0)))
    sent = bytes_sent(step.lower(*state, batch).compile())
    held = bytes_held(state)
    state, losses = fit(name, step, place, state, data, settings, path, resume)
    return losses, {"held": held, "sent": sent, "batch": bytes_held(batch)}


def fit_pmap(size, data, settings, path, resume):
    """The same by `pmap`: arrays have one more axis, of the devices, in front."""
    count = jax.device_count()
    model, optimizer, state = start(size.channels, settings["seed"])
    state = jax.tree.map(lambda leaf: jnp.stack([leaf] * count), state)
    each = NamedSharding(mesh(data=count), P("data"))
    state = jax.device_put(state, each)

    def place(batch):
        return jax.tree.map(lambda a: a.reshape(count, -1, *a.shape[1:]), batch)

    given = place, state, data, settings, path, resume
    state, losses = fit("pmap", pmap_step(model, optimizer), *given)
    return losses, {"held": bytes_held(state)}


def draw(curves, path):
    """The losses of all layouts, which lie on one another."""
    figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
    for i, (name, losses) in enumerate(curves.items()):
        axes.semilogy(losses, linewidth=5 - i, label=name)
    axes.set(xlabel="step", ylabel="loss")
    axes.legend()
    figure.savefig(path, dpi=150)
    plt.close(figure)


def run(options):
    size, count = SIZES[options.size], jax.device_count()
    if count < 2 or 64 % count:
        sys.exit(f"A batch of 64 cannot be divided over {count} devices.")
    print(f"{options.size}: {size.takes}; {count} x {jax.devices()[0].device_kind}")
    options.output.mkdir(parents=True, exist_ok=True)
    settings = {"size": options.size, "steps": options.steps or size.steps}
    settings |= {"seed": options.seed, "devices": count}
    data, curves, table = convnet_file.load(options.seed), {}, {}
    for name, layout in layouts(count).items():
        path = options.output / f"{name.replace(' ', '-')}.checkpoint"
        given = size, data, settings, path, options.resume
        curves[name], table[name] = fit_layout(name, layout, *given)
    path = options.output / "pmap.checkpoint"
    curves["pmap"], table["pmap"] = fit_pmap(size, data, settings, path, options.resume)
    for name, row in table.items():
        apart = np.subtract(curves[name], curves["one device"])
        row["losses apart"] = float(abs(apart).max())
    errors = met_on_the_way(count, convnet_file.convnet(size.channels), data)
    report(table, errors)
    results = {"layouts": table, "errors": errors}
    (options.output / "results.json").write_text(json.dumps(results, indent=1))
    draw(curves, options.output / "losses.png")


def report(table, errors):
    """Print what was found."""
    print(f"{'':14}{'held':>10}{'losses apart':>14}   sent in a step, by kind")
    for name, row in table.items():
        kinds = row.get("sent", {"not asked": 0})
        sent = ", ".join(f"{kind} {count:,}" for kind, count in kinds.items())
        print(f"{name:14}{row['held']:10,}{row['losses apart']:14.1e}   {sent}")
    for name, said in errors.items():
        print(f"{name.replace('_', ' ')}:\n  {said[:120]}")


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
    add(
        "--output", type=Path, default=Path("convnet_on_devices"), help="where to write"
    )
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
