"""What each kernel costs, by XLA's own analysis of it alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from .._internals import _stages
from ._hlo import Module, Raw, parse
from ._model import Costs, Kernel
from ._work import bytes_of

# What the analysis does not read, and what names tables that a part does not have.
_UNREAD = {"metadata", "backend_config", "frontend_attributes", "original_value"}


def of_kernels(hlo: str, kernels: Sequence[Kernel]) -> tuple[Costs, ...]:
    """XLA's estimate for each kernel, for one run of it."""
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
    # What a call out of the program costs, XLA does not know.
    if raw is None or raw.opcode == "custom-call":
        return Costs()
    report = _stages.estimate(alone(module, raw))
    keys = ("flops", "transcendentals", "bytes accessed")
    figures = [float((report or {}).get(key, 0.0)) for key in keys]
    if report is None or min(figures) < 0:
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
    if raw.opcode in ("constant", "parameter", "iota"):
        entry = f"  ROOT {_line(raw)}"
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
