"""What each kernel costs: by XLA's analysis of it alone, and in a profile."""

from __future__ import annotations

import re
import statistics
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import jax

from .._internals import _equations, _stages
from ._hlo import Module, Raw, parse
from ._model import Costs, Kernel
from ._trace import Program
from ._work import bytes_of

# What the analysis does not read, and what names tables that a part does not have.
_UNREAD = {"metadata", "backend_config", "frontend_attributes", "original_value"}

# What a profile says of an instruction that ran: when it began (nanoseconds), its name,
# the number of the run if it is known, and its seconds.
_Event = tuple[float, str, Any, float]


def of_kernels(hlo: str, kernels: Sequence[Kernel]) -> tuple[Costs, ...]:
    """What one run of each kernel costs, by XLA's estimate but for gathered rows."""
    module = parse(hlo)
    return tuple(_of(module, module.by_name.get(one.name)) for one in kernels)


def summed(kernels: Sequence[Kernel], each: Sequence[Costs], rest: Costs) -> Costs:
    """What some kernels cost in one call, from the costs of `each` for one run."""
    known = [
        (one.runs, each[one.index])
        for one in kernels
        if one.runs is not None and each[one.index].bytes_accessed is not None
    ]
    flops, accessed = (
        sum((runs * (getattr(cost, name) or 0.0) for runs, cost in known), 0.0)
        for name in ("flops", "bytes_accessed")
    )
    unknown = len(kernels) - len(known)
    return replace(rest, flops=flops, bytes_accessed=accessed, unknown=unknown)


def _of(module: Module, raw: Raw | None) -> Costs:
    report = _stages.estimate(alone(module, raw)) if raw is not None else None
    keys = ("flops", "transcendentals", "bytes accessed")
    figures = [float((report or {}).get(key, 0.0)) for key in keys]
    # What a call out of the program costs, XLA does not know, and says so by -1.
    if raw is None or report is None or min(figures) < 0:
        return Costs()
    flops, special, accessed = figures
    return Costs(flops + special, accessed - _not_gathered(module, raw))


def _not_gathered(module: Module, raw: Raw) -> int:
    """Bytes of inputs that are counted whole, and of which a kernel gathers rows."""
    body = module.computations.get(raw.called()[0][1], []) if raw.called() else []
    left = 0
    for one in body:
        users = module.users.get(one.name, []) if one.opcode == "parameter" else []
        gathers = [u for u in users if u.opcode == "gather" and u.inputs[0] == one.name]
        if gathers and len(gathers) == len(users):
            read = sum(bytes_of(user.type) for user in gathers)
            left += max(bytes_of(one.type) - read, 0)
    return left


def alone(module: Module, raw: Raw) -> str:
    """Write a module that does nothing but one instruction."""
    names = list(dict.fromkeys(raw.inputs))
    inputs = [
        f"  %{name} = {module.by_name[name].type} parameter({i})"
        for i, name in enumerate(names)
        if name in module.by_name
    ]
    entry = "\n".join([*inputs, f"  ROOT {_line(raw)}"])
    called = "\n\n".join(_blocks(module, raw, set()))
    return f"HloModule alone\n\n{called}\n\nENTRY %alone {{\n{entry}\n}}\n"


def _blocks(module: Module, raw: Raw, seen: set[str]) -> Iterator[str]:
    """The computations that an instruction calls, those that they call before them."""
    keys = ("calls", "to_apply", "select", "scatter", "comparator")
    names = [raw.attributes[key].lstrip("%") for key in keys if key in raw.attributes]
    for name in (*names, *(name for _, name in raw.called())):
        if name in seen or name not in module.computations:
            continue
        seen.add(name)
        for one in module.computations[name]:
            yield from _blocks(module, one, seen)
        lines = [
            f"  {'ROOT ' * one.is_root}{_line(one)}"
            for one in module.computations[name]
        ]
        yield "\n".join([f"%{name} {{", *lines, "}"])


def _line(raw: Raw) -> str:
    kept = {k: v for k, v in raw.attributes.items() if k not in _UNREAD}
    after = "".join(f", {k}={v}" if v else f", {k}" for k, v in kept.items())
    operands = ", ".join(raw.operands)
    return f"%{raw.name} = {raw.type} {raw.opcode}({operands}){after}"


def seconds(
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
    events: list[_Event] = []
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for positional, named in inputs:
                jax.block_until_ready(program.call(*positional, **named))
        for path in Path(folder).glob("**/*.xplane.pb"):
            events += _events(path, program.hlo, kernels)
    runs = by_run(events, calls)
    each = [[run[k.name] for run in runs.values() if k.name in run] for k in kernels]
    if not any(each):
        raise RuntimeError(
            f"JAX {jax.__version__} gave no times of kernels on {program.platform}"
        )
    return tuple(statistics.median(times) if times else None for times in each)


def by_run(events: Sequence[_Event], calls: int) -> dict[Any, dict[str, float]]:
    """The seconds of each instruction in each call.

    A GPU's events do not name their run. One call ran after another, so an
    instruction's events, in the order of their begins, are divided evenly among calls.
    """
    runs: dict[Any, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    unnamed: dict[str, list[float]] = defaultdict(list)
    for _, name, run, seconds in sorted(events, key=lambda event: event[0]):
        if run is None:
            unnamed[name].append(seconds)
        else:
            runs[run][name] += seconds
    for name, times in unnamed.items():
        for i, seconds in enumerate(times):
            runs[i * calls // len(times)][name] += seconds
    return runs


def _functions(hlo: str, kernels: Sequence[Kernel]) -> dict[str, Iterator[str]]:
    """The kernels' names by that of the function which a GPU runs for them, in turn.

    XLA writes few functions for equal kernels, and no dot in a name.
    """
    pattern = r'%(\S+) = .*deduplicated_name="([^"]*)"'
    twins = dict(re.findall(pattern, _equations.plain_names(hlo)))
    groups: dict[str, list[Kernel]] = defaultdict(list)
    for kernel in kernels:
        groups[_equations.plain_name(twins.get(kernel.name, kernel.name))] += [kernel]
    found: dict[str, Iterator[str]] = {}
    for first, equal in groups.items():
        # One in a loop and one before it do not take turns.
        if len({kernel.runs for kernel in equal}) == 1:
            turns = cycle([kernel.name for kernel in equal])
            for name in (first, *(kernel.name for kernel in equal)):
                found[re.sub(r"\W", "_", name)] = turns
    return found


def _events(path: Path, hlo: str, kernels: Sequence[Kernel]) -> Iterator[_Event]:
    """The instructions that ran while a profile was made."""
    names = {kernel.name for kernel in kernels}
    with warnings.catch_warnings():
        # Of the reader's own types, on some versions of Python.
        warnings.simplefilter("ignore", DeprecationWarning)
        data = jax.profiler.ProfileData.from_file(str(path))
        for plane in data.planes:
            is_gpu = plane.name.startswith("/device:GPU")
            functions = _functions(hlo, kernels) if is_gpu else {}
            for line in plane.lines:
                for event in line.events:
                    stats = dict(event.stats)
                    name, run = stats.get("hlo_op"), stats.get("run_id")
                    if not is_gpu and None in (name, run):
                        continue
                    plain = _equations.plain_name(str(name))
                    if plain not in names:
                        # Of a kernel in a CUDA graph it may be the graph's name.
                        turns = functions.get(_equations.plain_name(event.name))
                        plain = next(turns) if turns else plain
                    yield event.start_ns, plain, run, event.duration_ns * 1e-9
