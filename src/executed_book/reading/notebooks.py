"""Taking a Jupyter notebook apart in the same way as a MyST page.

What a notebook stores of earlier runs is left aside: only its sources are read.
"""

import json
import re
from typing import Any

from .markdown import Stretch, tokens_of

#: What reading raises where a file is not a notebook.
NOT_A_NOTEBOOK = (ValueError, KeyError, TypeError, AttributeError, RecursionError)

#: How a notebook's JSON begins a cell's source, when it is written a line a string.
_SOURCE = re.compile(r'^(?P<indent>[ \t]*)"source": *\[?', re.MULTILINE)


def notebook_stretches(text: str) -> tuple[dict[str, Any], list[Stretch]]:
    """The notebook's metadata, and its cells in order.

    Raises:
        NOT_A_NOTEBOOK: the text is not a notebook of format 4.

    >>> cell = {"cell_type": "code", "source": ["x = 1\\n", "x"], "metadata": {}}
    >>> text = json.dumps({"nbformat": 4, "cells": [cell]})
    >>> notebook_stretches(text)[1][0].text
    'x = 1\\nx'
    """
    plain = json.loads(text)
    if plain["nbformat"] != 4:
        raise ValueError(f"notebook format {plain['nbformat']}, not 4")
    cells = [_stretch(cell) for cell in plain["cells"]]
    metadata = dict(plain.get("metadata", {}))
    if _depth([metadata, *(cell.options for cell in cells)]) > 100:
        raise ValueError("its metadata is nested deeper than 100 levels")
    for stretch, line in zip(cells, _lines(text, len(cells)), strict=True):
        stretch.line = stretch.fence = line
        if stretch.kind == "markdown":
            stretch.tokens, stretch.first = tokens_of(stretch.text), line
    return metadata, [stretch for stretch in cells if stretch.text.strip()]


def _depth(value: Any) -> int:
    """How many arrays and objects of JSON lie inside each other."""
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


def _stretch(cell: dict[str, Any]) -> Stretch:
    source = cell["source"]
    text = source if isinstance(source, str) else "".join(source)
    text.encode("utf-8")  # raises where JSON has half of a character
    if cell["cell_type"] not in ("code", "markdown", "raw"):
        raise ValueError(f"a cell of type {cell['cell_type']!r}")
    return Stretch(cell["cell_type"], text, 1, options=dict(cell.get("metadata", {})))


def _lines(text: str, count: int) -> list[int]:
    """The file's line of each cell's first source line; 1 where that cannot be told."""
    sources = list(_SOURCE.finditer(text))
    least = min((len(match["indent"]) for match in sources), default=0)
    starts = [match for match in sources if len(match["indent"]) == least]
    if len(starts) != count:
        return [1] * count
    return [text.count("\n", 0, match.end()) + 2 for match in starts]
