"""Runs whole programs, each by itself, as `python program.py` would."""

import atexit
import functools
import shutil
import tempfile
from pathlib import Path
from typing import Any

from executed_book.programs.verify import compiled_into
from executed_book.running.pool import Pool
from executed_book.running.programs import ProgramTask, Ran
from executed_book.running.workers import open_workers


def run_programs(texts, fresh=(), jobs=2, timeout=120.0) -> list[Ran]:
    """Run programs, `jobs` at a time; what each did, in order.

    `fresh` are the indices of those that must start without JAX imported, because they
    set what libraries read when they are imported. A program ends after `timeout`
    seconds with all that it started. JAX keeps what any of them compiles: most of a
    program's time goes into what the other programs of its page compile as well.
    """
    tasks = [ProgramTask(text, i in fresh, timeout) for i, text in enumerate(texts)]
    with open_workers(compiled()) as workers:
        Pool(workers, jobs).run(tasks)
    return [task.ran for task in tasks]


@functools.cache
def compiled() -> dict[str, str]:
    """Variables with which JAX keeps what it compiles until this process ends."""
    folder = tempfile.mkdtemp(prefix="compiled-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return compiled_into(Path(folder))


def as_settings(variables: dict[str, str]) -> dict[str, Any]:
    """The same for `jax.config` where JAX has been imported already."""
    kinds: dict[str, type] = {"SECS": float, "BYTES": int}
    return {
        name.lower(): kinds.get(name.rpartition("_")[2], str)(value)
        for name, value in variables.items()
    }
