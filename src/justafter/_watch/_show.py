"""How a log of traces looks: aligned text, and a table for notebooks and pages."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .. import _table

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


def _cells(row: _Row, times: bool) -> tuple[str, ...]:
    seconds = "" if row.seconds is None else _milliseconds(row.seconds)
    middle = (seconds,) * times
    return (row.name, row.traces, row.compilations, *middle, row.why)


def _head(times: bool) -> tuple[str, ...]:
    middle = ("compiling",) * times
    return ("function", "traces", "compilations", *middle, "why again")


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms" if seconds < 10 else f"{seconds:.1f} s"


def as_text(log: Log, times: bool) -> str:
    """Aligned columns for a terminal."""
    rows = _rows(log)
    if not rows:
        return "nothing traced or compiled"
    table = [_head(times), *(_cells(row, times) for row in rows)]
    lines = _table.as_text("", table, [], left=len(table[0]) - 1).splitlines()
    for i in reversed(range(len(rows))):
        record = rows[i].record
        lines[i + 2 : i + 2] = _trace_lines(record.history, times) if record else []
    return "\n".join(lines)


def _is_listed(history: Sequence[Trace], times: bool) -> bool:
    """One trace needs no list, unless it has a reason or its time is asked for."""
    is_retrace = bool(history) and history[0].why[0].kind != "first call"
    return len(history) > 1 or is_retrace or (times and bool(history))


def _trace_lines(history: Sequence[Trace], times: bool) -> list[str]:
    if not _is_listed(history, times):
        return []
    lines = []
    for trace in history[:_SHOWN]:
        took = f" [{_milliseconds(trace.seconds)}]" if times else ""
        lines.append(f"  {trace.number}. {trace.call}{_where(trace)}{took}")
        lines.append(f"     {_reasons(trace)}")
    left = len(history) - _SHOWN
    return lines + [f"  and {left} more"] * (left > 0)


def as_html(log: Log, times: bool) -> str:
    """A table, and below it the traces of each function that was traced again."""
    rows, head = _rows(log), _head(times)
    if not rows:
        return "<p>nothing traced or compiled</p>"
    fixed = [i for i, title in enumerate(head) if title != "compiling"]
    table = [head, *(_cells(row, times) for row in rows)]
    traces = [_html_traces(row.name, row.record, times) for row in rows if row.record]
    return _table.as_html("", table, traces, fixed)


def _html_traces(name: str, record: Record, times: bool) -> str:
    if not _is_listed(record.history, times):
        return ""
    items = "".join(
        f"<li><code>{html.escape(trace.call)}</code>{html.escape(_where(trace))}"
        f"{f' {_table.measured(_milliseconds(trace.seconds))}' if times else ''}"
        f"<br><small>{html.escape(_reasons(trace))}</small></li>"
        for trace in record.history[:_SHOWN]
    )
    left = len(record.history) - _SHOWN
    more = f"<p>and {left} more</p>" if left > 0 else ""
    title = f"<summary>{html.escape(name)}, trace by trace</summary>"
    return f"<details open>{title}<ol>{items}</ol>{more}</details>"
