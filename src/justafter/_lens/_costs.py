"""What each kernel costs, by XLA's own analysis of it alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from .. import _internals
from ._hlo import Module, Raw, parse
from ._model import Costs, Kernel
from ._work import bytes_of

# What the analysis does not read, and what names tables that a part does not have.
_UNREAD = {"metadata", "backend_config", "frontend_attributes", "original_value"}


def of_kernels(hlo: str, kernels: Sequence[Kernel]) -> tuple[Costs, ...]:
    """XLA's estimate for each kernel, for one run of it."""
    module = parse(hlo)
    return tuple(_of(module, module.by_name.get(one.name)) for one in kernels)


def total(reported: Costs, kernels: Sequence[Kernel], each: Sequence[Costs]) -> Costs:
    """The costs of one call: each kernel counts as often as it runs."""
    known = [
        (one.runs, cost)
        for one, cost in zip(kernels, each, strict=True)
        if one.runs is not None and cost.bytes_accessed is not None
    ]
    if not known and kernels:
        return replace(reported, unknown=len(kernels))
    flops, accessed, special = (
        sum(runs * (getattr(cost, name) or 0.0) for runs, cost in known)
        for name in ("flops", "bytes_accessed", "transcendentals")
    )
    return replace(
        reported,
        flops=flops,
        bytes_accessed=accessed,
        transcendentals=special,
        unknown=len(kernels) - len(known),
    )


def _of(module: Module, raw: Raw | None) -> Costs:
    # What a call out of the program costs, XLA does not know.
    if raw is None or raw.opcode == "custom-call":
        return Costs()
    report = _internals.estimate(alone(module, raw))
    if report is None:
        return Costs()
    accessed = _figure(report, "bytes accessed")
    return Costs(
        flops=_figure(report, "flops"),
        bytes_accessed=accessed and accessed - _not_gathered(module, raw),
        transcendentals=_figure(report, "transcendentals"),
    )


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


def _figure(report: dict[str, float], key: str) -> float | None:
    value = float(report.get(key, 0.0))
    return value if value >= 0 else None


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
    for name in _names(raw):
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


def _names(raw: Raw) -> Iterator[str]:
    for key in ("calls", "to_apply", "select", "scatter", "comparator"):
        if key in raw.attributes:
            yield raw.attributes[key].lstrip("%")
    yield from (name for _, name in raw.called())


def _line(raw: Raw) -> str:
    kept = {k: v for k, v in raw.attributes.items() if k not in _UNREAD}
    after = "".join(f", {k}={v}" if v else f", {k}" for k, v in kept.items())
    operands = ", ".join(raw.operands)
    return f"%{raw.name} = {raw.type} {raw.opcode}({operands}){after}"
