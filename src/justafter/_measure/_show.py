"""How measurements look: aligned text, a table for notebooks and pages, a plot."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._provenance import Provenance
    from ._results import Change, Comparison, Measurement
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


def _time(spread: Spread) -> tuple[str, str]:
    unit, size = unit_of(spread.median)
    between = f"{digits(spread.low / size)} to {digits(spread.high / size)} {unit}"
    return f"{digits(spread.median / size)} {unit}", _once(spread, between)


def _ratio(spread: Spread) -> tuple[str, str]:
    between = f"{digits(spread.low)} to {digits(spread.high)}"
    return digits(spread.median), _once(spread, between)


def _sure(spread: Spread) -> str:
    """How well the median is known: half the 95% interval, in percent of it."""
    if not spread.precision < 10:
        return ""
    return f"±{digits(100 * spread.precision)}%"


def _once(spread: Spread, between: str) -> str:
    return between if spread.samples > 1 else "one call"


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


_STAGE_WORDS = {
    "trace": "trace",
    "lower": "lower",
    "compile": "compile",
    "load": "load from cache",
    "first": "first call",
    "steady": "steady",
}


def _measurement_rows(result: Measurement) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        ("stage", "median", "known to", "middle half", "runs")
    ]
    for name, spread in result.stages.items():
        middle, half = _time(spread)
        rows.append((_STAGE_WORDS[name], middle, _sure(spread), half, _runs(spread)))
    return rows


def _comparison_rows(result: Comparison) -> list[tuple[str, ...]]:
    head = ("candidate", "median", "middle half", f"time / {result.baseline}")
    rows: list[tuple[str, ...]] = [(*head, "middle half", "rounds")]
    for name, spread in result.times.items():
        ratio = _ratio(result.ratios[name])
        if name == result.baseline:
            ratio = ("1", "")
        rows.append((name, *_time(spread), *ratio, _runs(spread)))
    return rows


def _change_rows(result: Change) -> list[tuple[str, ...]]:
    between = f"{digits(result.least)} to {digits(result.most)}"
    head = ("function", "then", "now", "now / then", "between", "verdict")
    times = (_time(result.then)[0], _time(result.now)[0])
    return [head, (result.name, *times, digits(result.ratio), between, result.verdict)]


def changes_as_text(changes: Sequence[Change]) -> str:
    """Several changes in one table."""
    rows = [_change_rows(one) for one in changes]
    table = [rows[0][0], *(row[1] for row in rows)] if rows else []
    differences = dict.fromkeys(text for one in changes for text in one.differences)
    return "\n".join([*_aligned(table), *map(_not_the_same, differences)])


def _not_the_same(text: str) -> str:
    return f"not the same: {text}"


def _parts(result: Any) -> tuple[str, list[tuple[str, ...]], list[str]]:
    """A title, the table's rows with its head, and the lines below it."""
    if hasattr(result, "verdict"):
        said = [_not_the_same(text) for text in result.differences]
        return "", _change_rows(result), said
    if hasattr(result, "ratios"):
        title, rows = "", _comparison_rows(result)
    else:
        title, rows = result.name, _measurement_rows(result)
    below = [result.note] * bool(result.note)
    below += ["the precision asked for was not reached in the budget"] * (
        not result.reached
    )
    return title, rows, [*below, provenance_words(result.provenance)]


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [f"{row[0]:<{wide[0]}}"]
        pairs = zip(row[1:], wide[1:], strict=True)
        cells += [f"{cell:>{width}}" for cell, width in pairs]
        lines.append("  ".join(cells).rstrip())
    return lines


def as_text(result: Any) -> str:
    """Aligned columns for a terminal."""
    title, rows, below = _parts(result)
    return "\n".join([*[title] * bool(title), *_aligned(rows), *below])


_STYLE = """<style>
.ja-measure{--ja-ink:#1f2328;--ja-soft:#59636e;--ja-line:#d1d9e0;
color:var(--ja-ink);font-size:.95em;max-width:100%;overflow-x:auto}
@media (prefers-color-scheme:dark){html:not([data-theme=light]) .ja-measure{
--ja-ink:#e6edf3;--ja-soft:#9ea7b3;--ja-line:#3d444d}}
html[data-theme=dark] .ja-measure{
--ja-ink:#e6edf3;--ja-soft:#9ea7b3;--ja-line:#3d444d}
.ja-measure table{border-collapse:collapse;margin:0;width:auto;color:inherit}
.ja-measure caption{text-align:left;color:inherit;font-weight:600;caption-side:top}
.ja-measure th,.ja-measure td{padding:.25em .8em;text-align:right;border:0;
border-bottom:1px solid var(--ja-line);background:none;color:inherit;
font-variant-numeric:tabular-nums;white-space:nowrap}
.ja-measure th:first-child{text-align:left}
.ja-measure p{color:var(--ja-soft);margin:.3em 0;font-size:.9em}
</style>"""


def as_html(result: Any) -> str:
    """A table; each measured number is in a ``<span class="measured">``."""
    title, (head, *rows), below = _parts(result)
    caption = f"<caption><code>{html.escape(title)}</code></caption>" if title else ""
    top = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in head)
    body = "".join(_html_row(row) for row in rows)
    foot = "".join(f"<p>{_measured(line)}</p>" for line in below)
    return (
        f'{_STYLE}<div class="ja-measure"><table>{caption}<thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table>{foot}</div>"
    )


def _html_row(row: tuple[str, ...]) -> str:
    cells = "".join(f"<td>{_measured(cell)}</td>" for cell in row[1:])
    return f'<tr><th scope="row">{html.escape(row[0])}</th>{cells}</tr>'


def _measured(text: str) -> str:
    return f'<span class="measured">{html.escape(text)}</span>' if text else ""


def plot(result: Comparison, ax: Any = None) -> Any:
    """Medians as dots, the middle half of the samples as bars."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "a plot needs matplotlib: install justafter[plot], or print the result"
        ) from error

    if ax is None:
        _, ax = plt.subplots(figsize=(6, 0.8 + 0.45 * len(result.times)))
    unit, size = unit_of(min(spread.median for spread in result.times.values()))
    names = list(result.times)
    for row, spread in enumerate(result.times.values()):
        below, above = spread.median - spread.low, spread.high - spread.median
        ax.errorbar(
            spread.median / size,
            row,
            xerr=[[below / size], [above / size]],
            fmt="o",
            capsize=4,
        )
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xscale(_scale(result))
    ax.set_xlabel(f"time per call ({unit}), median and middle half")
    return ax


def _scale(result: Comparison) -> str:
    medians = [spread.median for spread in result.times.values()]
    return "log" if max(medians) > 8 * min(medians) else "linear"
