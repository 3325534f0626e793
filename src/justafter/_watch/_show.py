"""The table of a log, and the traces below it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import _table

if TYPE_CHECKING:
    from ._record import Record, Trace

# Reasons of a compilation that belongs to no trace.
_COMPILED_ALONE = ("transformation", "commitment", "sharding", "layout")
# A table lists this many traces of a function, and says how many more there are.
_SHOWN = 8
_HEAD = ("function", "traces", "compilations", "why again")

# The cells of a line, and the traces to list below it.
_Row = tuple[_table.Row, Sequence["Trace"]]


def names_of(record: Record) -> tuple[str, str, str]:
    """A function's names, from the shortest to the full one."""
    return record.name, record.qualname, f"{record.module}.{record.qualname}"


def named(records: Sequence[Record]) -> dict[str, Record]:
    """The functions of a log, each by the shortest name that no other one has.

    Those that share all names, such as two lambdas of a module, are numbered.
    """
    counts = [Counter(names_of(one)[i] for one in records) for i in range(3)]
    found: dict[str, Record] = {}
    for record in records:
        names = names_of(record)
        alone = (
            name for name, seen in zip(names, counts, strict=True) if seen[name] == 1
        )
        numbered = (f"{names[-1]} #{i}" for i in range(1, len(records) + 1))
        free = (name for name in numbered if name not in found)
        found[next(alone, None) or next(free)] = record
    return found


def _row(name: str, records: Sequence[Record]) -> _Row:
    """One function, or all of a library."""
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
    words = [f"{kind} ×{count}" for kind, count in kinds.items()]
    words += [f"{kind} ×{n} (no retrace)" for kind, n in (alone - kinds).items()]
    traces, compiled = (
        str(sum(getattr(record, key) for record in records))
        for key in ("traces", "compilations")
    )
    history = records[0].history if len(records) == 1 else []
    # One trace needs no list, unless it has a reason.
    if len(history) == 1 and history[0].why[0].kind == "first call":
        history = []
    return (name, traces, compiled, ", ".join(words)), history


def _rows(records: Sequence[Record], eager: Counter[str]) -> list[_Row]:
    """One row a function; one for all functions of a library; one for the rest."""
    names = named(records)
    rows = [_row(name, [one]) for name, one in names.items() if not one.library]
    for library in dict.fromkeys(one.library for one in records if one.library):
        group = {name: one for name, one in names.items() if one.library == library}
        title = f"{library}: {len(group)} functions"
        rows.append(
            _row(title if len(group) > 1 else next(iter(group)), [*group.values()])
        )
    if eager:
        common = sorted(eager.items(), key=lambda item: (-item[1], item[0]))
        words = ", ".join(f"{name} ×{count}" for name, count in common[:5])
        words += f" and {len(common) - 5} more" if len(common) > 5 else ""
        rows.append((("eager operations", "", str(eager.total()), words), []))
    return rows


def _listed(name: str, history: Sequence[Trace]) -> list[str]:
    """Each trace: its call, the line that made a retrace, and the reasons."""
    lines = [f"{name}, trace by trace"] * bool(history)
    for number, trace in enumerate(history[:_SHOWN], 1):
        is_again = trace.where and trace.why[0].kind != "first call"
        where = f", from {trace.where}" if is_again else ""
        raised = f" (raised {trace.raised})" if trace.raised else ""
        lines.append(f"  {number}. {trace.call}{where}")
        lines.append(f"     {'; '.join(map(str, trace.why))}{raised}")
    left = len(history) - _SHOWN
    return [*lines, *[f"  and {left} more"] * (left > 0)]


def parts(
    records: Sequence[Record], eager: Counter[str]
) -> tuple[str, list[_table.Row], list[str]]:
    """A title, the rows, and below them the traces of each function.

    `eager` counts the operations that ran outside of compiled functions.
    """
    if not (rows := _rows(records, eager)):
        return "nothing traced or compiled", [], []
    below = [line for cells, traces in rows for line in _listed(cells[0], traces)]
    return "", [_HEAD, *(cells for cells, _ in rows)], below
