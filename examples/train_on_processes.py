# /// script
# dependencies = ["jax", "orbax-checkpoint"]
# ///
"""Training on several processes of one machine, with a checkpoint to go on from.

Run without arguments, this program starts its own workers. Each is a Python of its
own, reads its own rows, and runs the same `train`; together they fit one model.
"""

import inspect
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# What a worker runs. It cannot outlive its limit, whatever becomes of its parent.
# After an error it leaves at once: an ordinary end would wait for the others, and
# one of them may be dead.
WORKER = """
import os, signal, sys, traceback
signal.alarm({limit})
sys.stdout.reconfigure(line_buffering=True)
{source}
try:
    {name}(*{args})
except BaseException:
    traceback.print_exc()
    os._exit(1)
"""


def train(address, count, index, folder, steps=40, dies=None):
    """Fit three weights to 64 rows, of which each process reads its own."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import orbax.checkpoint as ocp
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    jax.distributed.initialize(address, count, index)

    def read(first, last):
        """Rows and targets: made up here, read from a file elsewhere."""
        rng = np.random.default_rng(0)
        x = rng.normal(size=(64, 3)).astype(np.float32)
        y = x @ np.float32([1, 2, 3]) + rng.normal(0, 0.1, 64).astype(np.float32)
        return x[first:last], y[first:last]

    def loss(w, x, y):
        return ((x @ w - y) ** 2).mean()

    @jax.jit
    def step(w, x, y):
        return w - 0.1 * jax.grad(loss)(w, x, y)

    mesh = jax.make_mesh((jax.device_count(),), ("rows",))
    divided, whole = NamedSharding(mesh, P("rows")), NamedSharding(mesh, P())
    own = read(64 * index // count, 64 * (index + 1) // count)
    x, y = (jax.make_array_from_process_local_data(divided, a) for a in own)
    w, done = jax.device_put(jnp.zeros(3), whole), 0

    with ocp.CheckpointManager(folder) as checkpoints:
        if checkpoints.latest_step() is not None:
            done = checkpoints.latest_step()
            w = checkpoints.restore(done, args=ocp.args.StandardRestore({"w": w}))["w"]
        print(f"own rows {len(own[0])} of {len(x)}, begins after step {done}")
        while done < steps:
            # Waiting for each step keeps a queue of messages from building up.
            w, done = step(w, x, y).block_until_ready(), done + 1
            if done % 10 == 0:
                checkpoints.save(done, args=ocp.args.StandardSave({"w": w}))
                checkpoints.wait_until_finished()
            if (done, index) == dies:
                os.kill(os.getpid(), 9)  # as if its machine had lost power
    print(f"step {done}: w =", *(f"{value:.3f}" for value in np.asarray(w)))


def free_port():
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def launch(count, work, *args, limit=120):
    """Run work(address, count, index, *args) in `count` processes.

    Returns for each process, in order, its status, its output and its errors.
    No process is left when this returns or raises.
    """
    address = f"127.0.0.1:{free_port()}"
    source = inspect.getsource(work)
    # Neither this process's settings of JAX nor a proxy are for the workers.
    ours = {
        name: value
        for name, value in os.environ.items()
        if not name.upper().startswith(("JAX_", "XLA_"))
        and not name.upper().endswith("_PROXY")
    }
    workers, deadline = [], time.monotonic() + limit
    with tempfile.TemporaryDirectory() as folder:
        try:
            for index in range(count):
                program = WORKER.format(
                    limit=limit + 5,
                    source=source,
                    name=work.__name__,
                    args=(address, count, index, *args),
                )
                out, err = (Path(folder, f"{name}{index}") for name in ("out", "err"))
                with out.open("w") as said, err.open("w") as complained:
                    worker = subprocess.Popen(
                        [sys.executable, "-c", program],
                        env={**ours, "JAX_PLATFORMS": "cpu"},
                        stdout=said,
                        stderr=complained,
                    )
                workers.append((worker, out, err))
            for worker, _, _ in workers:
                worker.wait(max(0, deadline - time.monotonic()))
        finally:
            for worker, _, _ in workers:
                worker.kill()  # not terminate(): JAX swallows SIGTERM
                worker.wait()
        return [
            (worker.returncode, without_gloo(out.read_text()), err.read_text())
            for worker, out, err in workers
        ]


def without_gloo(text):
    """The lines of a worker, less those of the library that connects them."""
    return [line for line in text.splitlines() if not line.startswith("[Gloo]")]


def show(ended):
    """Print what each process said, in their order; whether all went well."""
    for index, (status, said, complained) in enumerate(ended):
        for line in said:
            print(f"process {index}: {line}")
        if status:
            print(f"process {index} failed:\n{complained}", file=sys.stderr)
    return all(status == 0 for status, _, _ in ended)


def main():
    with tempfile.TemporaryDirectory() as folder:
        if not show(launch(2, train, folder)):
            sys.exit("A process failed.")


if __name__ == "__main__":
    main()
