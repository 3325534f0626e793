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
    """Seconds for each kernel in one call, the median; None where it has no time."""
    if type(calls) is not int or calls < 1:
        raise ValueError(f"calls must be 1 or more, got {calls!r}")
    leaves = jax.tree.leaves((args, kwargs))
    if any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in leaves):
        raise TypeError(
            "table runs the program, so it needs arrays with values: "
            "a jax.ShapeDtypeStruct has none"
        )

    def copied() -> Any:
        # A program may consume its inputs; the caller's arrays stay.
        copies = jax.tree.map(
            lambda leaf: leaf.copy() if isinstance(leaf, jax.Array) else leaf,
            (args, kwargs),
        )
        return jax.block_until_ready(copies)

    warm_up, *inputs = [copied() for _ in range(calls + 1)]
    jax.block_until_ready(program.call(*warm_up[0], **warm_up[1]))
    runs: dict[Any, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for positional, named in inputs:
                jax.block_until_ready(program.call(*positional, **named))
        for path in Path(folder).glob("**/*.xplane.pb"):
            for name, run, seconds in _events(path):
                runs[run][name] += seconds
    if not runs:
        raise RuntimeError(
            f"JAX {jax.__version__} gave no times of kernels on {program.platform}"
        )
    each = [[run[k.name] for run in runs.values() if k.name in run] for k in kernels]
    return tuple(statistics.median(times) if times else None for times in each)


def _events(path: Path) -> Iterator[tuple[str, Any, float]]:
    """The instructions that ran: the name of each, the call, and its seconds."""
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
