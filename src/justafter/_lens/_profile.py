"""Times each kernel of a program, from a profile of several calls."""

from __future__ import annotations

import statistics
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax

from .._internals import _equations
from ._model import Kernel
from ._trace import Program


def timed(
    program: Program, kernels: Sequence[Kernel], args: Any, kwargs: Any, calls: int
) -> tuple[float | None, ...]:
    """See :meth:`Lens.timed`."""
    if type(calls) is not int or calls < 1:
        raise ValueError(f"calls must be 1 or more, got {calls!r}")
    leaves = jax.tree.leaves((args, kwargs))
    if any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in leaves):
        raise TypeError(
            "timed runs the program, so it needs arrays with values: "
            "a jax.ShapeDtypeStruct has none"
        )
    jax.block_until_ready(program.call(*_copied(args), **kwargs))
    inputs = [_copied(args) for _ in range(calls)]
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for one in inputs:
                jax.block_until_ready(program.call(*one, **kwargs))
        runs = list(_runs(Path(folder)))
    if not runs:
        raise RuntimeError(
            f"JAX {jax.__version__} gave no times of kernels on {program.platform}"
        )
    return tuple(_median(runs, one.name) for one in kernels)


def _copied(args: Any) -> Any:
    # A program may consume its inputs; the caller's arrays stay.
    return jax.block_until_ready(jax.tree.map(_copy, args))


def _copy(leaf: Any) -> Any:
    return leaf.copy() if isinstance(leaf, jax.Array) else leaf


def _median(runs: list[dict[str, float]], name: str) -> float | None:
    times = [run[name] for run in runs if name in run]
    return statistics.median(times) if times else None


def _runs(folder: Path) -> Iterator[dict[str, float]]:
    """The seconds of each instruction, run by run."""
    found: dict[Any, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for path in folder.glob("**/*.xplane.pb"):
        for name, run, seconds in _events(path):
            found[run][name] += seconds
    yield from found.values()


def _events(path: Path) -> Iterator[tuple[str, Any, float]]:
    with warnings.catch_warnings():
        # Of the reader's own types, on some versions of Python.
        warnings.simplefilter("ignore", DeprecationWarning)
        data = jax.profiler.ProfileData.from_file(str(path))
        for plane in data.planes:
            for line in plane.lines:
                for event in line.events:
                    stats = dict(event.stats)
                    name, run = stats.get("hlo_op"), stats.get("run_id")
                    if name and run is not None:
                        plain = _equations.plain_name(str(name))
                        yield plain, run, event.duration_ns * 1e-9
