"""Comparing the text of outputs: with a pin, with a program's, with another version's.

Numbers written as floating point may differ by a tolerance; the rest must be the same,
except for file names and line numbers, which change with the file that holds the code.
"""

import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass

#: Texts that differ in more lines than this, multiplied, differ as a whole.
_MOST_PAIRS = 4_000_000

RTOL = 1e-5
ATOL = 1e-8

_FLOAT = re.compile(
    r"(?<![\w.])[-+]?(?:\d+\.\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?"
    r"|\d+[eE][-+]?\d+)(?![\w.])"
)
# A place in source code, in the forms that Python, IPython and JAX write it.
_PLACES = (
    (re.compile(r'File "[^"\n]*", line \d+(?:, in \S+)?'), "File <place>"),
    (re.compile(r"File <[^>\n]*>:\d+(?:, in \S+)?"), "File <place>"),
    (re.compile(r"Cell In\[\d+\], line \d+"), "File <place>"),
    (re.compile(r"<[^<>\n]*>:\d+(?::\d+)*"), "<place>"),
    (re.compile(r"\bnotebook cell:\d+"), "<place>"),  # as the instruments say it
    (re.compile(r"(?<![\w.])[\w./~-]*[\w-]+\.py:\d+(?::\d+)*"), "<place>"),
)


@dataclass(frozen=True)
class Difference:
    """The first place where two outputs differ.

    Attributes:
        line: line of the expected output, from 1.
        expected, got: the lines from there that differ; empty where there are none.
    """

    line: int
    expected: str
    got: str

    def __str__(self) -> str:
        return "\n".join(
            [
                f"output line {self.line}",
                *_marked("expected", self.expected),
                *_marked("got", self.got),
            ]
        )


def _marked(label: str, text: str) -> list[str]:
    lines = text.split("\n") if text else ["(nothing)"]
    return [f"  {label if not i else '':<8} | {line}" for i, line in enumerate(lines)]


def same_output(
    expected: str, got: str, rtol: float = RTOL, atol: float = ATOL
) -> Difference | None:
    """The first difference between two outputs, or None if they are the same.

    Args:
        expected, got: the outputs' text; white space at the ends does not count.
        rtol, atol: a floating-point number g matches e if
            `abs(g - e) <= atol + rtol * abs(e)`.

    >>> same_output("loss 0.3333333", "loss 0.3333334")
    >>> print(same_output("x\\nArray(3)", "x\\nArray(4)"))
    output line 2
      expected | Array(3)
      got      | Array(4)
    """
    return next(iter(differences(expected, got, rtol, atol)), None)


def differences(
    expected: str, got: str, rtol: float = RTOL, atol: float = ATOL
) -> list[Difference]:
    """Every difference between two outputs, in order; see `same_output`.

    As many lines as possible are paired with one that matches them, and of the ways to
    do so one that pairs the most identical lines.
    """
    wanted, had = _lines(expected), _lines(got)
    pairs = _paired(
        [_without_places(line) for line in wanted],
        [_without_places(line) for line in had],
        lambda e, g: _close(e, g, rtol, atol),
    )
    differing, i, m = [], 0, 0
    for j, n in [*pairs, (len(wanted), len(had))]:
        if i < j or m < n:
            texts = "\n".join(wanted[i:j]), "\n".join(had[m:n])
            differing.append(Difference(i + 1, *texts))
        i, m = j + 1, n + 1
    return differing


def _lines(text: str) -> list[str]:
    stripped = text.strip("\n").rstrip()
    return [line.rstrip() for line in stripped.split("\n")] if stripped else []


def _without_places(line: str) -> str:
    for pattern, replacement in _PLACES:
        line = pattern.sub(replacement, line)
    return line


def _paired(
    wanted: list[str], had: list[str], close: Callable[[str, str], bool]
) -> list[tuple[int, int]]:
    """The positions, in both texts, of the lines that are paired."""
    # Nearly always the texts match line by line. Closeness is not transitive, so this
    # is no special case of pairing identical lines first.
    if len(wanted) == len(had) and all(map(close, wanted, had)):
        return [(i, i) for i in range(len(wanted))]
    start, end = _same_ends(wanted, had)
    rows, columns = len(wanted) - start - end, len(had) - start - end
    if rows * columns > _MOST_PAIRS:  # too long to look for the best pairing
        rows = columns = 0
    # best[i][m]: what pairing the lines from there on is worth. One more pair is worth
    # more than all pairs being identical.
    pair = rows + columns + 1
    best = [[0] * (columns + 1) for _ in range(rows + 1)]
    worth: dict[tuple[int, int], int] = {}
    for i in reversed(range(rows)):
        below, row = best[i + 1], best[i]
        for m in reversed(range(columns)):
            e, g = wanted[start + i], had[start + m]
            row[m] = max(below[m], row[m + 1])
            if e == g or close(e, g):
                worth[i, m] = pair + (e == g)
                row[m] = max(row[m], below[m + 1] + worth[i, m])
    pairs, i, m = [(k, k) for k in range(start)], 0, 0
    while i < rows and m < columns:
        if (i, m) in worth and best[i][m] == best[i + 1][m + 1] + worth[i, m]:
            pairs.append((start + i, start + m))
            i, m = i + 1, m + 1
        elif best[i][m] == best[i + 1][m]:
            i += 1
        else:
            m += 1
    return pairs + [(len(wanted) - k, len(had) - k) for k in range(end, 0, -1)]


def _same_ends(wanted: list[str], had: list[str]) -> tuple[int, int]:
    """How many lines are identical at the start, and at the end of what is left."""
    shorter, start, end = min(len(wanted), len(had)), 0, 0
    while start < shorter and wanted[start] == had[start]:
        start += 1
    while start + end < shorter and wanted[-1 - end] == had[-1 - end]:
        end += 1
    return start, end


@functools.lru_cache(maxsize=4096)
def _shape(line: str) -> str:
    # Arrays are padded to the width of their longest number, which may be another one.
    return re.sub(r" *\0 *", "\0", _FLOAT.sub("\0", line)) if _has_float(line) else line


def _has_float(line: str) -> bool:
    return _FLOAT.search(line) is not None


def _close(wanted: str, had: str, rtol: float, atol: float) -> bool:
    if wanted == had:
        return True
    if _shape(wanted) != _shape(had):
        return False
    pairs = zip(_FLOAT.findall(wanted), _FLOAT.findall(had), strict=True)
    return all(
        e == g or math.isclose(float(e), float(g), rel_tol=0.0, abs_tol=bound)
        for e, g in pairs
        for bound in [atol + rtol * abs(float(e))]
    )
