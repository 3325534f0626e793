"""How measurements look: aligned text, and a table for notebooks and pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _table

if TYPE_CHECKING:
    from ._results import Comparison, Measurement
    from ._spread import Spread

_UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))


def _digits(value: float) -> str:
    """Three digits, without an exponent."""
    for places, bound in ((0, 99.95), (1, 9.995), (2, 0.9995)):
        if abs(value) >= bound:
            return f"{value:.{places}f}"
    return f"{value:.3g}"


def _seconds(*times: float) -> str:
    """One time, or the first and the last one, with the unit of the largest."""
    known = (one for one in _UNITS if abs(times[-1]) >= one[1])
    unit, size = next(known, _UNITS[-1])
    return f"{' to '.join(_digits(one / size) for one in times)} {unit}"


def _runs(spread: Spread) -> str:
    calls = f" of {spread.calls} calls" if spread.calls > 1 else ""
    return f"{spread.samples}{calls}"


def of_measurement(m: Measurement) -> list[_table.Row]:
    """A row for each stage."""
    rows: list[_table.Row] = [("stage", "median", "95% interval", "minimum", "runs")]
    for name, one in m.stages.items():
        interval = _seconds(one.least, one.most)
        interval = "one call" if one.samples == 1 else interval
        label = "first call" if name == "first" else name
        middle = _seconds(one.median)
        rows.append((label, middle, interval, _seconds(one.minimum), _runs(one)))
    return rows


def of_comparison(c: Comparison) -> list[_table.Row]:
    """A row for each candidate."""
    head = ("candidate", "median", "minimum", f"time / {c.baseline}")
    rows: list[_table.Row] = [(*head, "95% interval", "rounds")]
    for name, one in c.times.items():
        ratio, cells = c.ratios[name], ("1", "")
        if name != c.baseline:
            interval = f"{_digits(ratio.least)} to {_digits(ratio.most)}"
            cells = _digits(ratio.median), interval
        times = _seconds(one.median), _seconds(one.minimum)
        rows.append((name, *times, *cells, _runs(one)))
    return rows


def below(result: Measurement | Comparison) -> list[str]:
    """What is said below a table: notes, and where it was measured."""
    lines = [result.note] * bool(result.note)
    if not result.reached:
        lines.append("the precision asked for was not reached in the budget")
    return [*lines, result.provenance]
