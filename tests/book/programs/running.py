"""Runs whole programs, each by itself, as `python program.py` would."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from executed_book.running.pool import Pool
from executed_book.running.programs import ProgramTask, Ran
from executed_book.running.workers import open_workers


def run_programs(
    texts: Sequence[str],
    fresh: Collection[int] = (),
    jobs: int = 2,
    timeout: float = 120.0,
    environment: Mapping[str, str] | None = None,
) -> list[Ran]:
    """Run programs, `jobs` at a time; what each did, in order.

    `fresh` are the indices of those that must start without JAX imported, because they
    set what libraries read when they are imported. A program ends after `timeout`
    seconds with all that it started.
    """
    tasks = [ProgramTask(text, i in fresh, timeout) for i, text in enumerate(texts)]
    with open_workers(environment) as workers:
        Pool(workers, jobs).run(tasks)
    return [task.ran for task in tasks]
