"""Finding measured numbers that were typed into running text by hand.

A number that came from a run belongs in a value role, which is computed at each
build. What is looked for is a number with a unit of time, memory or rate, or
one that compares ("3.2× faster"). A bound in words ("at least five times
faster") is prose, and stands beside its check.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ._errors import PageError

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
_FENCE = re.compile(
    r"^\s*(?P<mark>`{3,}|~{3,}|:{3,})\s*(?:\{(?P<name>[\w-]+)\})?(?P<rest>.*)$"
)
#: Directives whose content is running text; what else is fenced is not prose.
_PROSE_DIRECTIVES = frozenset(
    {"admonition", "attention", "card", "caution", "danger", "dropdown", "epigraph"}
    | {"error", "figure", "glossary", "grid", "grid-item", "grid-item-card", "hint"}
    | {"important", "margin", "note", "seealso", "sidebar", "tab-item", "tab-set"}
    | {"tip", "versionadded", "versionchanged", "warning", "div"}
)
#: What is not the author's number: code, roles with their content, math, targets.
_NOT_PROSE = re.compile(
    r"\{[\w:-]+\}`[^`]*`|(`+).+?\1|\$[^$]*\$|\]\([^)]*\)|<https?:[^>]*>|^:\w+:.*$"
)


def check_prose(path: Path, text: str) -> Iterator[PageError]:
    """Every bare measured number of a page, at its line."""
    for line, content in running_text(text):
        for found in _MEASURED.finditer(_NOT_PROSE.sub(" ", content)):
            yield PageError(
                path,
                line,
                f"a measured number typed by hand: {found[0]!r}",
                "compute it in a cell and quote it: {measured}`name:.1f`, or say"
                " a bound in words and assert it",
            )


def running_text(text: str) -> Iterator[tuple[int, str]]:
    """The numbered lines (from 1) of a text that are running text, not code."""
    lines = text.splitlines()
    start = 0
    if lines[:1] == ["---"]:
        start = next((i for i, s in enumerate(lines[1:], 2) if s == "---"), 0)
    open_fences: list[str] = []
    code = ""
    for number, content in enumerate(lines[start:], start + 1):
        fence = _FENCE.match(content)
        if code:
            if fence and fence["mark"] == code and not fence["rest"].strip():
                code = ""
        elif fence and open_fences and not fence["name"] and not fence["rest"].strip():
            open_fences.pop()
        elif fence and (fence["name"] or "") in _PROSE_DIRECTIVES:
            open_fences.append(fence["mark"])
            yield number, fence["rest"]
        elif fence:
            code = fence["mark"]
        else:
            yield number, content
