"""The table of a lens: a row for each expression of the reader's."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .. import _table
from ._costs import summed
from ._model import Costs, Equation, Kernel, Link
from ._work import elements

if TYPE_CHECKING:
    from . import Lens

_WIDTH, _TAIL = 46, 16
_KERNELS = 4
_PICKS = ("slice", "dynamic_slice", "gather")
_HEAD = ("expression", "line", "kernels", "FLOPs", "bytes", "time")


@dataclass(frozen=True)
class Row:
    """An expression of yours, and what it costs in one call.

    Attributes:
        expression: its text; for kernels without a known expression, why.
        kernels: indices of the kernels whose cost counts here.
        shared: indices of further kernels that hold a part of it.
        seconds: the measured time; None where it was not measured.
        unknown: how many of these kernels are not in `flops` and `bytes`.
        untimed: how many of them are not in `seconds`, if it was measured.
    """

    expression: str
    line: str
    kernels: tuple[int, ...]
    shared: tuple[int, ...]
    flops: float
    bytes: float
    seconds: float | None = None
    unknown: int = 0
    untimed: int = 0

    def _cells(self) -> tuple[str, ...]:
        text = self.expression
        if len(text) > _WIDTH:  # its end tells operations apart
            text = f"{text[: _WIDTH - _TAIL - 1]}…{text[-_TAIL:]}"
        own = self.kernels if self.line or text.startswith("(") else ()
        names = [f"k{i}" for i in own] + [f"(k{i})" for i in self.shared]
        more = len(names) - _KERNELS
        costs = ("", "")
        if self.kernels:
            plus = " + ?" * bool(self.unknown)
            flops, accessed = quantity(self.flops), quantity(self.bytes)
            costs = f"{flops}FLOPs{plus}", f"{accessed}B{plus}"
        known = [] if self.seconds is None else [f"{self.seconds * 1e6:,.1f} µs"]
        time = " + ".join([*known, *["?"] * bool(self.untimed)])
        kernels = " ".join(names[:_KERNELS]) + (f" +{more}" if more > 0 else "")
        return text, self.line, kernels, *costs, time


@dataclass(frozen=True, repr=False)
class Table(_table.Shown):
    """The expressions of a function by what they cost; see :meth:`Lens.table`."""

    name: str
    rows: tuple[Row, ...]
    total: Row

    def _parts(self) -> tuple[str, list[_table.Row], list[str]]:
        rows = [_HEAD, *(row._cells() for row in (*self.rows, self.total))]
        used = [i for i, _ in enumerate(_HEAD) if any(row[i] for row in rows[1:])]
        below = []
        if any(row.shared for row in self.rows):
            below.append("(k): holds a part of it, and counts in another row")
        if self.total.unknown:
            below.append(
                "?: a call out of the program, a branch, or a loop of unknown length"
            )
        if self.total.untimed:
            below.append("? of the time: kernels that the profile does not name")
        return self.name, [tuple(row[i] for i in used) for row in rows], below

    def _fixed(self, head: _table.Row) -> list[int]:
        return [i for i, name in enumerate(head) if name != "time"]


def table(view: Lens, seconds: Sequence[float | None] | None) -> Table:
    """Count each kernel for one expression; see :meth:`Lens.table`."""
    home = {i: link for link in view.links for i in link.equations}
    own: dict[Link | str, list[Kernel]] = defaultdict(list)
    shared: dict[Link | str, list[Kernel]] = defaultdict(list)
    for kernel in view.kernels:
        members = [view.equations[i] for i in kernel.members if home[i].expression]
        if not members:
            why = "added by XLA" if kernel.appeared else "no source of yours"
            why = "XLA kept no record of which" if kernel.lost else why
            own[f"({why})"].append(kernel)
            continue
        work: dict[Link, float] = defaultdict(float)
        for eqn in members:
            work[home[eqn.index]] += _work(eqn)
        most = max(work, key=work.__getitem__)
        own[most].append(kernel)
        for link in work:
            if link is not most:
                shared[link].append(kernel)

    def row(one: Link | str, kernels: Sequence[Kernel]) -> Row:
        costs = summed(kernels, view.kernel_costs, Costs())
        span = None if isinstance(one, str) else one.span
        each = [] if seconds is None else [seconds[k.index] for k in kernels]
        times = [one for one in each if one is not None]
        return Row(
            expression=one if isinstance(one, str) else one.expression or "",
            line=f"L{span.line}" if span else "",
            kernels=tuple(kernel.index for kernel in kernels),
            shared=tuple(kernel.index for kernel in shared[one]),
            flops=costs.flops or 0.0,
            bytes=costs.bytes_accessed or 0.0,
            seconds=sum(times) if times else None,
            unknown=costs.unknown,
            untimed=each.count(None),
        )

    rows = [row(one, own[one]) for one in dict.fromkeys([*own, *shared])]
    rows.sort(key=lambda row: (-(row.seconds or 0.0), -row.flops, -row.bytes))
    total = row("total", view.kernels)
    if seconds is not None:  # in another order, the last digit would be another
        total = replace(total, seconds=sum(one.seconds or 0.0 for one in rows))
    return Table(view.name, tuple(rows), total)


def _work(eqn: Equation) -> float:
    """About how much an equation computes: to compare those of one kernel."""
    # What picks elements leaves the others alone.
    is_pick = eqn.primitive in _PICKS
    types = eqn.outputs if is_pick else (*eqn.inputs, *eqn.outputs)
    sizes = [max(elements(one), 1) for one in types]
    if eqn.primitive == "dot_general":
        return 2 * math.sqrt(math.prod(sizes))
    return max(sizes, default=0)


def quantity(value: float) -> str:
    """Three digits and a prefix.

    >>> quantity(25_165_828), quantity(64), quantity(0)
    ('25.2 M', '64 ', '0 ')
    """
    for size, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {prefix}"
    return f"{value:.3g} "
