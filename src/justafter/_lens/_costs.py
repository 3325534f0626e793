"""What each kernel costs, by XLA's own analysis of it alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .._internals import _costs
from ._hlo import Module, Raw, parse
from ._model import Costs, Kernel

# What the analysis does not read, and what names tables that a part does not have.
_UNREAD = {"metadata", "backend_config", "frontend_attributes", "original_value"}


def of_kernels(hlo: str, kernels: Sequence[Kernel]) -> tuple[Costs, ...]:
    """XLA's estimate for each kernel."""
    module = parse(hlo)
    return tuple(_of(module, module.by_name.get(one.name)) for one in kernels)


def _of(module: Module, raw: Raw | None) -> Costs:
    # What a call out of the program costs, XLA does not know.
    if raw is None or raw.opcode == "custom-call":
        return Costs()
    report = _costs.estimate(alone(module, raw))
    if report is None:
        return Costs()
    return Costs(
        flops=_figure(report, "flops"),
        bytes_accessed=_figure(report, "bytes accessed"),
        transcendentals=_figure(report, "transcendentals"),
    )


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
