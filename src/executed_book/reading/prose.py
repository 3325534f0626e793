"""Finding measured numbers that were typed into running text by hand.

A number that came from a run belongs in a value role, which is computed at each
build. What is looked for is a number with a unit of time, memory or rate, or
one that compares ("3.2× faster"). A bound in words ("at least five times
faster") is prose, and a check asserts it.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..errors import PageError

_NUMBER = r"(?<![\w.,/-])\d[\d,]*(?:\.\d+)?(?:\s*[-–]\s*\d[\d,.]*)?"
_TIME = r"(?:[nµμum]s|s|sec|seconds?|minutes?|hours?|milliseconds?|microseconds?)"
_SIZE = r"(?:[kKMGT]i?B|bytes of temporar\w+)"
_RATE = r"(?:[kKMGTP]?(?:FLOPS?|FLOP/s|B/s|iB/s))"
_RATIO = (
    r"(?:[×x%]|times|percent|-fold)\s*"
    r"(?:faster|slower|quicker|longer|shorter|smaller|larger|speed-?up|less|more|as)"
)
_MEASURED = re.compile(
    rf"{_NUMBER}(?:\s*(?:{_TIME}|{_SIZE}|{_RATE})(?![\w/])|\s*{_RATIO}\b|-fold\b)"
)
#: What is not the author's number: code, roles with their content, math, targets.
_NOT_PROSE = re.compile(
    r"\{[\w:-]+\}`[^`]*`|(`+).+?\1|\$[^$]*\$|\]\([^)]*\)|<https?:[^>]*>|^:\w+:.*$"
)


def check_prose(path: Path, running: Iterable[tuple[int, str]]) -> Iterator[PageError]:
    """Every bare measured number in the numbered lines of running text."""
    for line, content in running:
        for match in _MEASURED.finditer(_NOT_PROSE.sub(" ", content)):
            yield PageError(
                path,
                line,
                f"a measured number typed by hand: {match[0]!r}",
                "compute it in a cell and quote it: {measured}`name:.1f`, or say"
                " a bound in words and assert it",
            )
