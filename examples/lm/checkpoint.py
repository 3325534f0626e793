"""Checkpoints by Orbax v1: asynchronous, sharded, with the position in the data.

A checkpoint can be loaded on other devices than it was written on: the shardings of
the abstract state say where its arrays go.
"""

import os
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import jax
import orbax.checkpoint.experimental.v1 as ocp

from .config import Config, differences, stop

policies = ocp.training.preservation_policies


class Checkpoints:
    """The checkpoints of a run; use it in a `with` statement."""

    def __init__(self, config, tokenizer):
        self.config, self.tokenizer = config, tokenizer
        self.folder = Path(config.output).absolute() / "checkpoints"
        try:
            self.inner = ocp.training.Checkpointer(
                self.folder,
                preservation_policy=policies.LatestN(2),
                cleanup_tmp_directories=True,
            )
        except OSError as error:
            stop(f"Cannot write to {config.output}: {error}. Give another --output.")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        """Wait for the last save; if the run failed anyway, let that error through."""
        try:
            self.inner.close()
        except Exception as error:
            if kind is None:
                self.full(error)

    @property
    def latest(self):
        return self.inner.latest.step if self.inner.latest else 0

    def save(self, step, state, position):
        """Begin to write; an error of the save before it is raised here."""
        notes = {
            "config": asdict(self.config),
            "tokenizer": self.tokenizer,
            "position": position,
        }
        try:
            self.inner.save_checkpointables_async(
                step, {"state": state}, force=True, custom_metadata=notes
            )
        except Exception as error:  # of the file system, by the library that met it
            self.full(error)

    def full(self, error):
        line = str(error).strip().splitlines()[0][:200]
        newest = self.newest()
        left = (
            f"The checkpoint of step {newest} is" if newest else "No checkpoint is yet"
        )
        stop(
            f"Cannot save to {self.folder}: {line}. {left} whole: make room, and give "
            "the same command again."
        )

    def newest(self):
        return max(
            (int(p.name) for p in self.folder.glob("*") if p.name.isdigit()), default=0
        )

    def load(self, abstract):
        """The newest state and its position in the data."""
        notes = self.inner.metadata().custom_metadata
        old = Config(**notes["config"])
        if changed := differences(old, self.config):
            stop(
                f"The run in {self.config.output} was made with {changed}: give these, "
                "or another --output."
            )
        if notes["tokenizer"] != self.tokenizer:
            stop(
                f"{self.config.corpus} is not the corpus of the run in "
                f"{self.config.output}: give its --corpus, or another --output."
            )
        with readable(self.folder, self.latest):
            return self.inner.load(abstract_state=abstract), notes["position"]


@contextmanager
def readable(folder, step):
    """End with one line if a checkpoint is damaged."""
    try:
        yield
    except Exception as error:  # Orbax and TensorStore each have their own
        line = str(error).strip().splitlines()[0][:200]
        stop(
            f"Cannot read {folder / str(step)}: {line}. Remove it; the same command "
            "takes the checkpoint before it."
        )


def load_weights(run, step=None, *, abstract=None):
    """Weights of a run (the newest ones) for one device, and the notes with them."""
    folder = Path(run).absolute() / "checkpoints"
    if not folder.is_dir():
        stop(f"{run} holds no checkpoint: train one with python -m lm.train first.")
    with ocp.training.Checkpointer(folder) as inner:
        if inner.latest is None:
            stop(f"{run} holds no finished checkpoint yet: wait, or train longer.")
        notes = inner.metadata(step).custom_metadata
        one = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
        wanted = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=one),
            abstract(Config(**notes["config"])),
        )
        with (
            ocp.Context(
                pytree_options=ocp.options.PyTreeOptions(
                    loading=ocp.options.PyTreeOptions.Loading(partial_load=True)
                )
            ),
            readable(folder, step or inner.latest.step),
        ):
            state = inner.load(step, {"params": wanted})
    return state["params"], notes


def quiet():
    """Keep the notes of Orbax and of XLA about each save off the terminal."""
    from absl import logging

    logging.set_verbosity(logging.FATAL)  # errors are raised as well
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
