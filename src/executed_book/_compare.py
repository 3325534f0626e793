"""Comparing the text of outputs: with a pin, with a program's, with another version's.

Numbers written as floating point may differ by a tolerance; the rest must be the same,
up to what differs whenever the same code stands in another file: where it stands.
"""

import difflib
import math
import re
from dataclasses import dataclass

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
    found = differences(expected, got, rtol, atol)
    return found[0] if found else None


def differences(
    expected: str, got: str, rtol: float = RTOL, atol: float = ATOL
) -> list[Difference]:
    """Every difference between two outputs, in order; see `same_output`."""
    wanted, had = _lines(expected), _lines(got)
    places = [_without_places(line) for line in wanted]
    # Lines that match a counterpart are given its text, so that difflib pairs them.
    levelled = _levelled(places, [_without_places(line) for line in had], rtol, atol)
    matcher = difflib.SequenceMatcher(None, places, levelled, autojunk=False)
    return [
        Difference(i + 1, "\n".join(wanted[i:j]), "\n".join(had[m:n]))
        for tag, i, j, m, n in matcher.get_opcodes()
        if tag != "equal"
    ]


def _lines(text: str) -> list[str]:
    stripped = text.strip("\n").rstrip()
    return [line.rstrip() for line in stripped.split("\n")] if stripped else []


def _without_places(line: str) -> str:
    for pattern, replacement in _PLACES:
        line = pattern.sub(replacement, line)
    return line


def _levelled(wanted: list[str], had: list[str], rtol: float, atol: float) -> list[str]:
    by_shape: dict[str, list[str]] = {}
    for line in wanted:
        by_shape.setdefault(_shape(line), []).append(line)
    return [
        next(
            (w for w in by_shape.get(_shape(h), ()) if _close(w, h, rtol, atol)),
            h,
        )
        for h in had
    ]


def _shape(line: str) -> str:
    # Arrays are padded to the width of their longest number, which may be another one.
    return re.sub(r" *\0 *", "\0", _FLOAT.sub("\0", line)) if _has_float(line) else line


def _has_float(line: str) -> bool:
    return _FLOAT.search(line) is not None


def _close(wanted: str, had: str, rtol: float, atol: float) -> bool:
    pairs = zip(_FLOAT.findall(wanted), _FLOAT.findall(had), strict=True)
    return all(
        e == g or math.isclose(float(e), float(g), rel_tol=0.0, abs_tol=bound)
        for e, g in pairs
        for bound in [atol + rtol * abs(float(e))]
    )
