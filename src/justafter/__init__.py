"""Instruments for seeing what JAX does with a function."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._lens import Costs as Costs
    from ._lens import Equation as Equation
    from ._lens import Instruction as Instruction
    from ._lens import Kernel as Kernel
    from ._lens import Lens as Lens
    from ._lens import Link as Link
    from ._lens import Row as Row
    from ._lens import Source as Source
    from ._lens import Span as Span
    from ._lens import Table as Table
    from ._lens import lens as lens
    from ._measure import Comparison as Comparison
    from ._measure import Measurement as Measurement
    from ._measure import Provenance as Provenance
    from ._measure import Spread as Spread
    from ._measure import measure as measure
    from ._watch import Compilation as Compilation
    from ._watch import Log as Log
    from ._watch import Reason as Reason
    from ._watch import Record as Record
    from ._watch import RetraceError as RetraceError
    from ._watch import Trace as Trace
    from ._watch import watch as watch

    __version__: str

# Source that was written later may be another than what runs.
_IMPORTED = time.time()

# Each public name and the module that it is in. The modules are imported when one of
# their names is first asked for, so that importing this package costs next to nothing.
_HOMES = {
    "_lens": "Costs Equation Instruction Kernel Lens Link Row Source Span Table lens",
    "_measure": "Comparison Measurement Provenance Spread measure",
    "_watch": "Compilation Log Reason Record RetraceError Trace watch",
}
_NAMES = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = sorted([*_NAMES, "__version__"])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        found: Any = version("justafter")
    elif name in _NAMES:
        from importlib import import_module

        found = getattr(import_module(f".{_NAMES[name]}", __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
