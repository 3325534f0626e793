"""Instruments for seeing what JAX does with a function."""

from __future__ import annotations

import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._lens import *  # noqa: F403
    from ._measure import *  # noqa: F403
    from ._watch import *  # noqa: F403

# Source that was written later may be another than what runs.
_IMPORTED = time.time()

# Each public name and the module that it is in. A module is imported when one of its
# names is first asked for: the lens imports parts of JAX that add settings to it, and
# with a new setting JAX traces every function again.
_HOMES = {
    "_lens": "Costs Equation Instruction Kernel Lens Link Row Source Span Table lens",
    "_measure": "Comparison Measurement Spread measure",
    "_watch": "Compilation Log Reason Record RetraceError Trace watch",
}
_NAMES = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_NAMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
