"""How a log of traces looks: aligned text, and a table for notebooks and pages."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._log import Log
    from ._record import Record, Trace

# Reasons of a compilation that is of no trace of its own.
_COMPILED_ALONE = ("transformation", "commitment", "sharding", "layout")
# A table lists this many traces of a function, and says how many more there are.
_SHOWN = 8


def names_of(record: Record) -> tuple[str, str, str]:
    """A function's names, from the shortest to the full one."""
    return record.name, record.qualname, f"{record.module}.{record.qualname}"


def named(records: Sequence[Record]) -> dict[str, Record]:
    """The functions of a log, each by the shortest name that no other one has.

    Those that share all names, such as two lambdas of a module, are numbered.
    """
    found: dict[str, Record] = {}
    for record in records:
        alone = (
            name
            for i, name in enumerate(names_of(record))
            if sum(names_of(other)[i] == name for other in records) == 1
        )
        full = names_of(record)[-1]
        numbered = (f"{full} #{i}" for i in range(1, len(records) + 1))
        free = (name for name in numbered if name not in found)
        found[next(alone, None) or next(free)] = record
    return found


@dataclass(frozen=True)
class _Row:
    """A line of the table; `record` where the traces are listed below it."""

    name: str
    traces: str
    compilations: str
    seconds: float | None
    why: str
    record: Record | None = None


def _summary(records: Sequence[Record]) -> str:
    """The reasons of all retraces, then those of compilations without one."""
    kinds = Counter(
        reason.kind
        for record in records
        for trace in record.history
        for reason in trace.why
        if reason.kind != "first call"
    )
    alone = Counter(
        compilation.why[0].kind
        for record in records
        for compilation in record.compiled
        if compilation.why[0].kind in _COMPILED_ALONE
    )
    alone -= Counter({kind: kinds[kind] for kind in alone})
    words = [f"{kind} ×{count}" for kind, count in kinds.items()]
    words += [f"{kind} ×{count} (no retrace)" for kind, count in alone.items()]
    return ", ".join(words)


def _shown(history: Sequence[Trace]) -> tuple[Sequence[Trace], int]:
    """The traces to list, and how many are left out."""
    if len(history) <= _SHOWN:
        return history, 0
    return history[:_SHOWN], len(history) - _SHOWN


def _reasons(trace: Trace) -> str:
    text = "; ".join(str(reason) for reason in trace.why)
    return text + (f" (raised {trace.raised})" if trace.raised else "")


def _where(trace: Trace) -> str:
    """Where the call stands that caused a retrace."""
    is_first = trace.why[0].kind == "first call"
    return f", from {trace.where}" if trace.where and not is_first else ""


def _eager_words(eager: Counter[str]) -> str:
    common = sorted(eager.items(), key=lambda item: (-item[1], item[0]))
    words = ", ".join(f"{name} ×{count}" for name, count in common[:5])
    return words + (f" and {len(common) - 5} more" if len(common) > 5 else "")


def _compilations(records: Sequence[Record]) -> str:
    count, loads = (
        sum(getattr(record, name) for record in records)
        for name in ("compilations", "loads")
    )
    return f"{count} ({loads} loaded)" if loads else str(count)


def _rows(log: Log) -> list[_Row]:
    """One row a function; one for all functions of a library; one for the rest."""
    names = named(log.records)
    rows = [_row(name, [r], r) for name, r in names.items() if not r.library]
    libraries: dict[str, dict[str, Record]] = {}
    for name, record in names.items():
        if record.library:
            libraries.setdefault(record.library, {})[name] = record
    for library, group in libraries.items():
        if len(group) == 1:
            ((name, record),) = group.items()
            rows.append(_row(name, [record], record))
        else:
            title = f"{library}: {len(group)} functions"
            rows.append(_row(title, list(group.values()), None))
    if log.eager:
        count = str(sum(log.eager.values()))
        rows.append(_Row("eager operations", "", count, None, _eager_words(log.eager)))
    return rows


def _row(name: str, group: Sequence[Record], record: Record | None) -> _Row:
    seconds = sum(one.compile_seconds for one in group)
    traces = str(sum(one.traces for one in group))
    return _Row(name, traces, _compilations(group), seconds, _summary(group), record)


def _cells(row: _Row, times: bool) -> list[str]:
    seconds = "" if row.seconds is None else _milliseconds(row.seconds)
    middle = [seconds] if times else []
    return [row.name, row.traces, row.compilations, *middle, row.why]


def _head(times: bool) -> list[str]:
    middle = ["compiling"] if times else []
    return ["function", "traces", "compilations", *middle, "why again"]


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms" if seconds < 10 else f"{seconds:.1f} s"


def as_text(log: Log, times: bool) -> str:
    """Aligned columns for a terminal."""
    rows = _rows(log)
    if not rows:
        return "nothing traced or compiled"
    table = [_head(times), *(_cells(row, times) for row in rows)]
    wide = [max(len(cells[i]) for cells in table) for i in range(len(table[0]))]
    lines = []
    for cells, row in zip(table, [None, *rows], strict=True):
        numbers = zip(cells[1:-1], wide[1:-1], strict=True)
        middle = "  ".join(f"{cell:>{width}}" for cell, width in numbers)
        lines.append(f"{cells[0]:<{wide[0]}}  {middle}  {cells[-1]}".rstrip())
        if row is not None and row.record is not None:
            lines += _trace_lines(row.record.history, times)
    return "\n".join(lines)


def _is_listed(history: Sequence[Trace], times: bool) -> bool:
    """One trace needs no list, unless it has a reason or its time is asked for."""
    is_retrace = bool(history) and history[0].why[0].kind != "first call"
    return len(history) > 1 or is_retrace or (times and bool(history))


def _trace_lines(history: Sequence[Trace], times: bool) -> list[str]:
    if not _is_listed(history, times):
        return []
    shown, left = _shown(history)
    lines = []
    for trace in shown:
        took = f" [{_milliseconds(trace.seconds)}]" if times else ""
        lines.append(f"  {trace.number}. {trace.call}{_where(trace)}{took}")
        lines.append(f"     {_reasons(trace)}")
    return lines + [f"  and {left} more"] * bool(left)


_STYLE = """<style>
.ja-watch{--ja-ink:#1f2328;--ja-soft:#59636e;--ja-line:#d1d9e0;--ja-mark:#9a3412;
color:var(--ja-ink);font-size:.95em;max-width:100%;overflow-x:auto}
@media (prefers-color-scheme:dark){html:not([data-theme=light]) .ja-watch{
--ja-ink:#e6edf3;--ja-soft:#9ea7b3;--ja-line:#3d444d;--ja-mark:#f0a36b}}
html[data-theme=dark] .ja-watch{
--ja-ink:#e6edf3;--ja-soft:#9ea7b3;--ja-line:#3d444d;--ja-mark:#f0a36b}
.ja-watch table{border-collapse:collapse;margin:0;width:auto;color:inherit}
.ja-watch th,.ja-watch td{text-align:left;vertical-align:top;padding:.25em .8em;
border:0;border-bottom:1px solid var(--ja-line);background:none;color:inherit}
.ja-watch tr:has(+.all)>*{border-bottom:0}
.ja-watch .n{text-align:right;font-variant-numeric:tabular-nums}
.ja-watch .again{color:var(--ja-mark);font-weight:600}
.ja-watch ol{margin:.3em 0 .3em 1.6em;padding:0}
.ja-watch li{margin:.15em 0}
.ja-watch .soft,.ja-watch summary,.ja-watch caption{color:var(--ja-soft)}
.ja-watch code{background:none;border:0;padding:0;color:inherit}
</style>"""


def as_html(log: Log, times: bool) -> str:
    """A table; each measured number is in a ``<span class="measured">``."""
    rows = _rows(log)
    if not rows:
        return f'{_STYLE}<div class="ja-watch">nothing traced or compiled</div>'
    titles = _head(times)
    head = "".join(
        f'<th scope="col"{_number(0 < i < len(titles) - 1)}>{title}</th>'
        for i, title in enumerate(titles)
    )
    body = "".join(_html_row(row, times) for row in rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'{_STYLE}<div class="ja-watch">{table}</div>'


def _number(is_number: bool) -> str:
    return ' class="n"' if is_number else ""


def _html_row(row: _Row, times: bool) -> str:
    name, traces, compilations, *middle, why = map(html.escape, _cells(row, times))
    record = row.record
    again = ' class="n again"' if record and record.traces > 1 else ' class="n"'
    details = _html_traces(record.history, times) if record else ""
    title = f"<code>{name}</code>" if record else name
    took = "".join(
        f'<td class="n"><span class="measured">{cell}</span></td>' for cell in middle
    )
    return (
        f'<tr><th scope="row">{title}</th><td{again}>{traces}</td>'
        f'<td class="n">{compilations}</td>{took}<td>{why}</td></tr>{details}'
    )


def _html_traces(history: Sequence[Trace], times: bool) -> str:
    if not _is_listed(history, times):
        return ""
    shown, left = _shown(history)
    items = "".join(
        f"<li><code>{html.escape(trace.call)}</code>{_html_where(trace)}"
        f'{_html_time(trace, times)}<br><span class="soft">'
        f"{html.escape(_reasons(trace))}</span></li>"
        for trace in shown
    )
    more = f'<p class="soft">and {left} more</p>' if left else ""
    return (
        # A row of its own: on a phone the last column has no room for a list.
        f'<tr class="all"><td colspan="{len(_head(times))}"><details open>'
        f"<summary>trace by trace</summary><ol>{items}</ol>{more}</details></td></tr>"
    )


def _html_where(trace: Trace) -> str:
    where = html.escape(_where(trace))
    return f'<span class="soft">{where}</span>' if where else ""


def _html_time(trace: Trace, times: bool) -> str:
    if not times:
        return ""
    return f' <span class="measured">{_milliseconds(trace.seconds)}</span>'
