"""Old addresses of pages: each leads to where its page is today, with the anchor."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

#: Where the pages of a folder went; an `index` leads to the part.
MOVED = {
    "start": {"ten-minutes": "learn/ten-minutes"},
    "learn": {"faster-and-larger": "learn/time-and-memory"},
    "numpy": {
        "arrays": "numbers/arrays",
        "immutability": "numbers/immutability",
        "index": "numbers/index",
        "layers": "tracing/layers",
        "random": "numbers/random",
        "silent-errors": "numbers/silent-errors",
        "timing": "finding-out/timing",
    },
    "transformations": {
        "composing": "composing/composing",
        "custom-derivatives": "derivatives/custom-derivatives",
        "derivatives": "derivatives/derivatives",
        "index": "learn/index",
        "interpreter": "composing/interpreter",
        "jacobians": "derivatives/jacobians",
        "vectorization": "composing/vectorization",
    },
    "systems": {
        "beyond": "science/index",
        "devices": "devices/sharding",
        "language-model": "systems/folder-to-server",
    },
    "training": {
        "beyond": "science/index",
        "digits": "systems/digits",
        "index": "learn/index",
        "pytrees": "composing/pytrees",
        "stages": "systems/stages",
    },
    "underneath": {"index": "tracing/index"},
    "finding-out": {"precision": "numbers/precision"},
}

# A path of its own folder, since a site may lie below another or be read from disk. The
# script keeps the anchor, which the refresh would lose.
_PAGE = """<!DOCTYPE html><html lang="en">
<meta charset="utf-8"><title>{new}</title><meta name="robots" content="noindex">
<script>location.replace("{to}" + location.search + location.hash)</script>
<noscript><meta http-equiv="refresh" content="0; url={to}"></noscript>
<p>This page is now <a href="{to}">{new}</a>.</p>
"""


def write_old_addresses(app: Sphinx, exception: Exception | None) -> None:
    """Write a page at each old address that leads on."""
    if exception is not None or app.builder.name != "html":
        return
    for folder, pages in MOVED.items():
        place = Path(app.outdir, folder)
        for name, new in pages.items():
            if new not in app.env.found_docs:
                continue  # another book has this configuration
            place.mkdir(exist_ok=True)
            to = posixpath.relpath(f"{new}.html", folder)
            text = _PAGE.format(to=to, new=new)
            (place / f"{name}.html").write_text(text, "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the old addresses once the site stands."""
    app.connect("build-finished", write_old_addresses)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
