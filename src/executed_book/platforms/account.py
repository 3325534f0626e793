"""The account of a recording: what was recorded of each chapter, what failed, why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Failed:
    """A cell that failed, the page's line, and why; number 0 is the whole chapter."""

    number: int
    line: int
    why: str


@dataclass
class Account:
    """What came of one chapter.

    Attributes:
        docname: the chapter.
        recorded: how many cells have a record now.
        same: how many gave what the CPU gives, and need none.
        different: how many of those recorded gave something else than the CPU. The
            others may differ from run to run or from device to device anyway.
        failed: the cells that failed, unless they were known to.
        expected: those that the page says fail here, with its reason.
        held: cells that the page says fail here, and that do not.
        needing: cells that were not looked at, since they need one that failed.
    """

    docname: str
    recorded: int = 0
    same: int = 0
    different: int = 0
    failed: list[Failed] = field(default_factory=list)
    expected: list[Failed] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    needing: list[int] = field(default_factory=list)

    @property
    def surprises(self) -> int:
        """How many cells failed that nobody knew of."""
        return len(self.failed)


_COLUMNS = ("chapter", "recorded", "same as CPU", "different", "failed")


def table(accounts: Sequence[Account]) -> str:
    """The accounts as lines of text, with their sum; below each chapter its failures.

    >>> print(table([Account("one", 2, 5, 1, [Failed(3, 20, "it raised")])]))
    chapter  recorded  same as CPU  different  failed
    one             2            5          1       1
        cell 3, line 20: it raised
    total           2            5          1       1
    """
    rows = [_row(account) for account in accounts]
    numbers = [[int(n) for n in row[1:]] for row in rows]
    total = ["total", *(str(sum(column)) for column in zip(*numbers, strict=True))]
    if not rows:
        total += ["0"] * (len(_COLUMNS) - 1)
    first = max(len(row[0]) for row in [_COLUMNS, total, *rows])
    widths = [-first, *(len(name) for name in _COLUMNS[1:])]
    lines = [_line(_COLUMNS, widths)]
    for account, row in zip(accounts, rows, strict=True):
        lines += [_line(row, widths), *_notes(account)]
    return "\n".join([*lines, _line(total, widths)])


def _row(account: Account) -> list[str]:
    numbers = (account.recorded, account.same, account.different)
    failures = len(account.failed) + len(account.expected)
    return [account.docname, *map(str, numbers), str(failures)]


def _line(texts: Sequence[str], widths: Sequence[int]) -> str:
    """A row; a negative width is that of text, a positive one that of a number."""
    pairs = zip(texts, widths, strict=True)
    return "  ".join(t.ljust(-w) if w < 0 else t.rjust(w) for t, w in pairs).rstrip()


def _notes(account: Account) -> Iterator[str]:
    for found in account.failed:
        where = f"cell {found.number}, " if found.number else ""
        yield f"    {where}line {found.line}: {found.why}"
    for found in account.expected:
        yield f"    cell {found.number}, line {found.line}: as expected: {found.why}"
    if account.needing:
        listed = ", ".join(map(str, account.needing))
        yield f"    not looked at, since they need one of these: cells {listed}"
    if account.held:
        listed = ", ".join(map(str, account.held))
        yield f"    announced with :fails-on:, and do not fail here: cells {listed}"
