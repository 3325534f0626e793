"""Comparing the text of outputs: with a pin, with a program's, with another version's.

Numbers written as floating point may differ by a tolerance; the rest must be the same,
except for file names and line numbers, which change with the file that holds the code.
"""

import itertools
import math
import re

#: How far apart two numbers may be: another CPU rounds otherwise.
RTOL, ATOL = 1e-4, 1e-8

_FLOAT = re.compile(
    r"(?<![\w.])[-+]?(?:\d+\.\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?"
    r"|\d+[eE][-+]?\d+)(?:(?![\w.])|(?=j\b))"
)
# A place in source code, in the forms that Python, IPython and JAX write it.
_PLACES = (
    (re.compile(r'File "[^"\n]*", line \d+(?:, in \S+)?'), "File <place>"),
    (re.compile(r"File <[^>\n]*>:\d+(?:, in \S+)?"), "File <place>"),
    (re.compile(r"Cell In\[\d+\], line \d+"), "File <place>"),
    (re.compile(r"<[^<>\n]*>:\d+(?::\d+)*"), "<place>"),
    (re.compile(r"\bnotebook cell:\d+"), "<place>"),  # as the instruments say it
    (re.compile(r" {2,}L\d+(?= {2,})"), "  <place>"),  # in a table of the lens
    (re.compile(r"(?<![\w.])[\w./~-]*[\w-]+\.py:\d+(?::\d+)*"), "<place>"),
)


def same_output(expected: str, got: str) -> str | None:
    """Where two outputs differ, in words, or None if they are the same.

    The text lists the lines of both from the first to the last that differs. White
    space at the ends does not count.

    >>> same_output("loss 0.3333333", "loss 0.3333334")
    >>> print(same_output("x\\nArray(3)", "x\\nArray(4)"))
    output line 2
      expected | Array(3)
      got      | Array(4)
    """
    wanted, had = _lines(expected), _lines(got)
    start = _alike(wanted, had)
    if start == len(wanted) == len(had):
        return None
    end = _alike(wanted[start:][::-1], had[start:][::-1])
    expected_lines = _marked("expected", wanted[start : len(wanted) - end])
    got_lines = _marked("got", had[start : len(had) - end])
    return "\n".join([f"output line {start + 1}", *expected_lines, *got_lines])


def _marked(label: str, lines: list[str]) -> list[str]:
    lines = lines or ["(nothing)"]
    return [f"  {label if not i else '':<8} | {line}" for i, line in enumerate(lines)]


def _alike(wanted: list[str], had: list[str]) -> int:
    """How many lines are the same, from the first."""
    pairs = zip(wanted, had, strict=False)
    same = itertools.takewhile(lambda pair: _close(*pair), pairs)
    return sum(1 for _ in same)


def _lines(text: str) -> list[str]:
    stripped = text.strip("\n").rstrip()
    return [line.rstrip() for line in stripped.split("\n")] if stripped else []


def _without_places(line: str) -> str:
    for pattern, replacement in _PLACES:
        line = pattern.sub(replacement, line)
    return line


def _shape(line: str) -> str:
    """A line with marks for its numbers; what pads them in an array is left out."""
    return re.sub(r" *\0 *", "\0", _FLOAT.sub("\0", line))


def _close(wanted: str, had: str) -> bool:
    if wanted == had:
        return True
    wanted, had = _without_places(wanted), _without_places(had)
    if _shape(wanted) != _shape(had):
        return False
    pairs = zip(_FLOAT.findall(wanted), _FLOAT.findall(had), strict=True)
    numbers = ((float(e), float(g)) for e, g in pairs if e != g)
    return all(
        math.isclose(e, g, rel_tol=0.0, abs_tol=ATOL + RTOL * abs(e))
        for e, g in numbers
    )
