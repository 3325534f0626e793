"""Batches of tokens, by Grain: shuffled by index, sharded by process, resumable.

Row i of a batch always comes from the same shard, however many processes read. The
position in the data is one number, so a run can go on with other processes.
"""

import mmap
from pathlib import Path

import grain
import jax
import numpy as np
from jax.sharding import PartitionSpec as P

from .config import stop


class Windows:
    """A shard cut into windows (context + 1,): what goes in, and what comes next."""

    def __init__(self, tokens, context):
        self.tokens, self.context = tokens, context

    def __len__(self):
        return (len(self.tokens) - 1) // self.context

    def __getitem__(self, i):
        start = i * self.context
        return self.tokens[start : start + self.context + 1].astype(np.int32)


def on_disk(path):
    """The tokens of a file, read where they are used, without reading ahead."""
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    mapped.madvise(mmap.MADV_RANDOM)
    return np.frombuffer(mapped, np.uint16)


def shard(path, config, number):
    """An endless dataset of rows (accumulate, rows, context + 1) of one shard."""
    windows = Windows(on_disk(path), config.context)
    if not len(windows):
        stop(
            f"{path} is shorter than --context {config.context}: lower it or --shards."
        )
    rows = config.batch // config.shards
    endless = (
        grain.MapDataset.source(windows)
        .seed(config.seed * config.shards + number)
        .shuffle()  # another order in each epoch
        .repeat()
    )
    # Grain cannot divide the length of what has no end by one.
    batched = endless.batch(rows) if rows > 1 else endless.map(lambda x: x[None])
    return batched.map(lambda x: x.reshape(config.accumulate, -1, config.context + 1))


def batches(config, process=0, processes=1):
    """An iterator over this process's part of every batch, with a state."""
    if config.shards % processes:
        stop(
            f"{processes} processes do not divide --shards {config.shards}: change one."
        )
    own = config.shards // processes
    datasets = [
        shard(Path(config.corpus) / f"train-{i}.bin", config, i)
        for i in range(process * own, (process + 1) * own)
    ]
    read = grain.ReadOptions(num_threads=config.threads, prefetch_buffer_size=8)
    return iter(
        grain.experimental.ZipMapDataset(datasets)
        .map(lambda parts: np.concatenate(parts, axis=1))
        .to_iter_dataset(read)
    )


def to_devices(rows, mesh):
    """The batch of all processes as one array, its rows divided over the data axis."""
    sharding = jax.NamedSharding(mesh, P(None, "data", None))
    return jax.make_array_from_process_local_data(sharding, rows)
