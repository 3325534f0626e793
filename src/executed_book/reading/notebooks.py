"""Taking a Jupyter notebook apart in the same way as a MyST page.

What a notebook stores of earlier runs is left aside: only its sources are read.
"""

from __future__ import annotations

import json
from typing import Any

from .markdown import Stretch, running_text, tokens_of


class NotANotebook(ValueError):
    """The file is not a notebook of a format that can be read; the message says why."""


def notebook_stretches(text: str) -> tuple[dict[str, Any], list[Stretch]]:
    """The notebook's metadata, and its cells in order, with lines of their own.

    Raises:
        NotANotebook: the text is not a notebook of format 4.

    >>> cell = {"cell_type": "code", "source": ["x = 1\\n", "x"], "metadata": {}}
    >>> text = json.dumps({"nbformat": 4, "cells": [cell]})
    >>> notebook_stretches(text)[1][0].text
    'x = 1\\nx'
    """
    try:
        plain = json.loads(text)
        if plain["nbformat"] != 4:
            raise NotANotebook(f"notebook format {plain['nbformat']}, not 4")
        cells = [_stretch(cell) for cell in plain["cells"]]
        metadata = dict(plain.get("metadata", {}))
    except NotANotebook:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotANotebook(f"{type(error).__name__}: {error}") from None
    for stretch in cells:
        if stretch.kind == "markdown":
            stretch.running = running_text(stretch.text)
            stretch.tokens = tokens_of(stretch.text)
    return metadata, [stretch for stretch in cells if stretch.text.strip()]


def _stretch(cell: dict[str, Any]) -> Stretch:
    source = cell["source"]
    text = source if isinstance(source, str) else "".join(source)
    if cell["cell_type"] not in ("code", "markdown", "raw"):
        raise NotANotebook(f"a cell of type {cell['cell_type']!r}")
    options = dict(cell.get("metadata", {}))
    return Stretch(cell["cell_type"], text, 1, 1, options)
