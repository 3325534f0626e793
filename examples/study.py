"""What the studies beside this file share: data, arguments, checkpoints, progress.

A study is one program that trains something small and says how well it works. It
imports this module, so copy both files into one folder.
"""

import argparse
import json
import shlex
import sys
from contextlib import contextmanager
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

# --- Data and figures ---------------------------------------------------------------


def digits():
    """Images (n, 8, 8) in [0, 1] and labels (n,): 1,500 to learn from, 297 to test.

    Most of the last 297 are by other writers than the rest.
    """
    data = load_digits()
    x, y = (data.images / 16).astype(np.float32), data.target.astype(np.int32)
    return (x[:1500], y[:1500]), (x[1500:], y[1500:])


def accuracy(logits, y):
    return float((np.asarray(logits).argmax(axis=1) == y).mean())


def neighbors(train, test, count):
    """Which test images the nearest training images by pixels read: booleans (n,)."""
    (x, y), (asked, labels) = train, test
    model = KNeighborsClassifier(count).fit(x.reshape(len(x), -1), y)
    return model.predict(asked.reshape(len(asked), -1)) == labels


def mean_and_error(values):
    """The mean, and its standard error by drawing the values anew a thousand times."""
    n, rng = len(values), np.random.default_rng(0)
    means = values[rng.integers(0, n, (1000, n))].mean(axis=1)
    return float(values.mean()), float(means.std())


def print_table(rows):
    """Print rows of figures, which are dictionaries with the same keys."""
    columns = [*next(iter(rows.values()))]
    left, widths = max(map(len, rows)), [max(len(name), 8) + 2 for name in columns]
    heads = zip(columns, widths, strict=True)
    print(" " * left + "".join(f"{name:>{width}}" for name, width in heads))
    for name, row in rows.items():
        cells = zip(row.values(), widths, strict=True)
        figures = "".join(f"{figure:{width}.3g}" for figure, width in cells)
        print(f"{name:{left}}{figures}")


def save_figure(figure, path):
    figure.savefig(path, dpi=150)
    plt.close(figure)


# --- Checkpoints: a line of JSON, then the arrays -----------------------------------


def write_arrays(file, state):
    for leaf in jax.tree.leaves(state):
        np.save(file, leaf)


def read_arrays(file, like):
    # NumPy reads bfloat16 as bytes without a dtype.
    return jax.tree.map(lambda leaf: jnp.asarray(np.load(file).view(leaf.dtype)), like)


def save(path, state, notes, write=write_arrays):
    """Write all, then rename: a stop in between leaves the earlier file whole."""
    unfinished = path.with_name("checkpoint.tmp")
    with unfinished.open("wb") as file:
        file.write(json.dumps(notes).encode() + b"\n")
        write(file, state)
    unfinished.replace(path)


def restore(path, state, notes, read=read_arrays):
    """The state and notes that were saved; those passed in, if nothing was."""
    if not path.exists():
        print(f"No checkpoint {path} yet: this begins with the first step.")
        return state, notes
    try:
        with path.open("rb") as file:
            saved = json.loads(file.readline())
            check_settings(path, saved, notes)
            state = read(file, state)
    except Exception as error:  # NumPy, json and each library have their own
        reason = str(error).partition("\n")[0]
        sys.exit(f"Cannot read {path}: {reason}. Begin without --resume.")
    print(f"Going on after step {saved['step']}.")
    return state, saved


def check_settings(path, saved, notes):
    if (other := saved["settings"]) != notes["settings"]:
        sys.exit(f"The run in {path} has {other}: go on with these.")


# --- Training -----------------------------------------------------------------------


@contextmanager
def progress(name, steps, done=0):
    """A progress bar, as a function of the steps done and a few words."""
    columns = "{task.description:20}", BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TimeRemainingColumn(), "{task.fields[said]}") as bar:
        task = bar.add_task(name, total=steps, completed=done, said="")
        yield lambda done, said: bar.update(task, completed=done, said=said)


ARRAYS = write_arrays, read_arrays


def fit(name, state, training, steps, options, every, record=20, codec=ARRAYS):
    """Train, with a progress bar and a checkpoint; the last state, and some losses.

    `training` goes on from (state, done) and yields (done, state, loss) after each
    step. A checkpoint is saved every `every` steps, a loss recorded every `record`.
    """
    write, read = codec
    path = options.output / f"{name.replace(' ', '-')}.checkpoint"
    notes = {"settings": options.settings, "step": 0, "losses": []}
    if options.resume:
        state, notes = restore(path, state, notes, read)
    with progress(name, steps, notes["step"]) as show:
        rest = training(state, notes["step"])
        for done, state, loss in rest:
            if done % record == 0:
                notes["losses"].append(float(loss))
            if done % record == 0 or done == steps:
                show(done, f"loss {loss:.3f}")
            if done % every == 0 or done == steps:
                notes["step"] = done
                save(path, state, notes, write)
    return state, notes["losses"]


# --- The program --------------------------------------------------------------------


def positive(text):
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text} is not a positive whole number")
    return int(text)


def seed_number(text):
    if not text.isdecimal() or int(text) >= 2**31:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0 to 2**31 - 1")
    return int(text)


def read_options(doc, sizes, more):
    parser = argparse.ArgumentParser(description=doc.partition("\n")[0])
    add, name = parser.add_argument, Path(sys.argv[0]).stem
    add("--output", type=Path, default=Path(name), help="folder to write to")
    takes = "; ".join(f"{name}: {size.takes}" for name, size in sizes.items())
    add("--size", choices=sizes, default="small", help=f"small, if not said; {takes}")
    add("--steps", type=positive, help="at most, if not those of the size")
    add("--seed", type=seed_number, default=0, help="of weights and batches")
    add("--resume", action="store_true", help="go on with a run that was stopped")
    for name, choices in more.items():
        add(f"--{name}", choices=choices, default=choices[0])
    options = parser.parse_args()
    size = sizes[options.size]
    steps = options.steps or size.steps
    options.settings = {"size": options.size, "steps": steps, "seed": options.seed}
    options.settings |= {name: getattr(options, name) for name in more}
    return options, size


def is_interrupt(error):
    """Whether an interrupt is behind an error.

    Between two calls of a compiled function JAX compares the static parts of a module
    of Flax. That runs Python, and an interrupt there is raised as a ValueError.
    """
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None


def main(run, doc, sizes, **more):
    """Read the arguments, call `run(options, size)`, and write the figures it returns.

    After an interrupt one line says how to go on; after a failed write, what failed.
    """
    options, size = read_options(doc, sizes, more)
    try:
        print(f"{options.size}: {size.takes}")
        options.output.mkdir(parents=True, exist_ok=True)
        results = run(options, size)
        (options.output / "results.json").write_text(json.dumps(results, indent=1))
    except BaseException as error:
        if is_interrupt(error):
            again = sys.argv if options.resume else [*sys.argv, "--resume"]
            sys.exit(f"Stopped. To go on from here: python {shlex.join(again)}")
        if isinstance(error, OSError):
            sys.exit(f"Cannot write to {options.output}: {error}")
        raise
