"""How a log of traces looks: aligned text, and a table for notebooks and pages."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._watch import Log, Record, Trace

# A table lists this many traces of a function, and says how many more there are.
_SHOWN = 8


def names_of(record: Record) -> tuple[str, str, str]:
    return record.name, record.qualname, f"{record.module}.{record.qualname}"


def shortest(record: Record, records: Sequence[Record]) -> str:
    for i, name in enumerate(names_of(record)):
        if sum(names_of(other)[i] == name for other in records) == 1:
            return name
    return names_of(record)[-1]


def _summary(record: Record) -> str:
    kinds = Counter(reason.kind for trace in record.history[1:] for reason in trace.why)
    extra = Counter(
        reason.kind
        for compilation in record.compiled
        for reason in compilation.why
        if reason.kind in ("transformation",)
    )
    moved = (
        sum(c.why[0].kind == "sharding" for c in record.compiled) - kinds["sharding"]
    )
    words = [f"{kind} ×{count}" for kind, count in kinds.items()]
    words += [f"{kind} ×{count} (no retrace)" for kind, count in extra.items()]
    words += [f"sharding ×{moved} (no retrace)"] * (moved > 0)
    return ", ".join(words)


def _shown(history: Sequence[Trace]) -> tuple[Sequence[Trace], int]:
    """The traces to list, and how many are left out."""
    if len(history) <= _SHOWN:
        return history, 0
    return history[:_SHOWN], len(history) - _SHOWN


def _reasons(trace: Trace) -> str:
    text = "; ".join(str(reason) for reason in trace.why)
    return text + (f" (raised {trace.raised})" if trace.raised else "")


def _eager_words(eager: Counter[str]) -> str:
    common = sorted(eager.items(), key=lambda item: (-item[1], item[0]))
    words = ", ".join(f"{name} ×{count}" for name, count in common[:5])
    return words + (f" and {len(common) - 5} more" if len(common) > 5 else "")


def _rows(log: Log) -> list[tuple[str, str, str, str]]:
    records = log.records
    rows = [
        (shortest(r, records), str(r.traces), str(r.compilations), _summary(r))
        for r in records
    ]
    if log.eager:
        count = str(sum(log.eager.values()))
        rows.append(("eager operations", "", count, _eager_words(log.eager)))
    return rows


_HEAD = ("function", "traces", "compilations", "why again")


def as_text(log: Log, times: bool) -> str:
    rows = _rows(log)
    if not rows:
        return "nothing traced or compiled"
    wide = [max(len(row[i]) for row in (_HEAD, *rows)) for i in range(3)]
    lines = []
    for row, record in zip([_HEAD, *rows], [None, *log.records, None], strict=False):
        name, traces, compilations, why = row
        line = f"{name:<{wide[0]}}  {traces:>{wide[1]}}  {compilations:>{wide[2]}}  "
        lines.append((line + why).rstrip())
        lines += _trace_lines(record.history, times) if record else []
    return "\n".join(lines)


def _trace_lines(history: Sequence[Trace], times: bool) -> list[str]:
    if len(history) < 2 and not (times and history):
        return []
    shown, left = _shown(history)
    lines = []
    for trace in shown:
        took = f" [{trace.seconds * 1e3:.1f} ms]" if times else ""
        lines.append(f"  {trace.number}. {trace.call}{took}")
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
    rows = _rows(log)
    if not rows:
        return f'{_STYLE}<div class="ja-watch">nothing traced or compiled</div>'
    head = "".join(
        f'<th scope="col"{_number(i)}>{title}</th>' for i, title in enumerate(_HEAD)
    )
    body = "".join(
        _html_row(row, record, times)
        for row, record in zip(rows, [*log.records, None], strict=False)
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'{_STYLE}<div class="ja-watch">{table}</div>'


def _number(column: int) -> str:
    return ' class="n"' if column in (1, 2) else ""


def _html_row(row: tuple[str, ...], record: Record | None, times: bool) -> str:
    name, traces, compilations, why = map(html.escape, row)
    again = ' class="n again"' if record and record.traces > 1 else ' class="n"'
    details = _html_traces(record.history, times) if record else ""
    title = f"<code>{name}</code>" if record else name
    return (
        f'<tr><th scope="row">{title}</th><td{again}>{traces}</td>'
        f'<td class="n">{compilations}</td><td>{why}</td></tr>{details}'
    )


def _html_traces(history: Sequence[Trace], times: bool) -> str:
    if len(history) < 2 and not (times and history):
        return ""
    shown, left = _shown(history)
    items = "".join(
        f"<li><code>{html.escape(trace.call)}</code>{_html_time(trace, times)}<br>"
        f'<span class="soft">{html.escape(_reasons(trace))}</span></li>'
        for trace in shown
    )
    more = f'<p class="soft">and {left} more</p>' if left else ""
    return (
        # A row of its own: on a phone the last column has no room for a list.
        '<tr class="all"><td colspan="4"><details open>'
        f"<summary>trace by trace</summary><ol>{items}</ol>{more}</details></td></tr>"
    )


def _html_time(trace: Trace, times: bool) -> str:
    if not times:
        return ""
    return f' <span class="measured">{trace.seconds * 1e3:.1f} ms</span>'
