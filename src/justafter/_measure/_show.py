"""How measurements look: aligned text, and a table for notebooks and pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _table

if TYPE_CHECKING:
    from ._provenance import Provenance
    from ._results import Comparison, Measurement
    from ._spread import Spread

_UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))


def unit_of(seconds: float) -> tuple[str, float]:
    """The unit to say a time in, and its size in seconds."""
    return next((u for u in _UNITS if abs(seconds) >= u[1]), _UNITS[-1])


def digits(value: float) -> str:
    """Three digits, without an exponent."""
    for places, bound in ((0, 99.95), (1, 9.995), (2, 0.9995)):
        if abs(value) >= bound:
            return f"{value:.{places}f}"
    return f"{value:.3g}"


def seconds_words(seconds: float) -> str:
    """A time with its unit."""
    unit, size = unit_of(seconds)
    return f"{digits(seconds / size)} {unit}"


def _between(spread: Spread) -> str:
    """The 95% interval of a time; nothing where one call was all."""
    if spread.samples == 1:
        return "one call"
    unit, size = unit_of(spread.median)
    return f"{digits(spread.least / size)} to {digits(spread.most / size)} {unit}"


def _runs(spread: Spread) -> str:
    calls = f" of {spread.calls} calls" if spread.calls > 1 else ""
    return f"{spread.samples}{calls}"


def provenance_words(facts: Provenance) -> str:
    """One line: device, versions, date."""
    devices = f"{facts.device_count} {facts.device_kind}"
    if facts.platform != facts.device_kind:
        devices += f" ({facts.platform})"
    return (
        f"{devices}, {facts.cpus} CPU cores; JAX {facts.jax}, jaxlib {facts.jaxlib}, "
        f"NumPy {facts.numpy}, Python {facts.python}; {facts.date[:10]}"
    )


_STAGE_WORDS = {"load": "load from cache", "first": "first call"}


def _measurement_rows(result: Measurement) -> list[tuple[str, ...]]:
    head = ("stage", "median", "95% interval", "minimum", "runs")
    return [
        head,
        *(
            (
                _STAGE_WORDS.get(name, name),
                seconds_words(spread.median),
                _between(spread),
                seconds_words(spread.minimum),
                _runs(spread),
            )
            for name, spread in result.stages.items()
        ),
    ]


def _comparison_rows(result: Comparison) -> list[tuple[str, ...]]:
    head = ("candidate", "median", "minimum", f"time / {result.baseline}")
    rows: list[tuple[str, ...]] = [(*head, "95% interval", "rounds")]
    for name, spread in result.times.items():
        times = seconds_words(spread.median), seconds_words(spread.minimum)
        ratio = result.ratios[name]
        cells = ("1", "")
        if name != result.baseline:
            interval = f"{digits(ratio.least)} to {digits(ratio.most)}"
            cells = digits(ratio.median), interval
        rows.append((name, *times, *cells, _runs(spread)))
    return rows


def _parts(result: Any) -> tuple[str, list[tuple[str, ...]], list[str]]:
    """A title, the table's rows with its head, and the lines below it."""
    if hasattr(result, "ratios"):
        title, rows = "", _comparison_rows(result)
    else:
        title, rows = result.name, _measurement_rows(result)
    below = [result.note] * bool(result.note)
    if not result.reached:
        below.append("the precision asked for was not reached in the budget")
    return title, rows, [*below, provenance_words(result.provenance)]


def as_text(result: Any) -> str:
    """Aligned columns for a terminal."""
    return _table.as_text(*_parts(result))


def as_html(result: Any) -> str:
    """A table; each measured number is in a ``<span class="measured">``."""
    title, rows, below = _parts(result)
    lines = [f"<p>{_table.measured(line)}</p>" for line in below]
    return _table.as_html(title, rows, lines)
