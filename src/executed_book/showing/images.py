"""Images that load when they come near, in a place that is kept for them.

A figure of the theme that is not shown never comes near, and so is never loaded.
"""

import posixpath
import re
from functools import cache
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.images import get_image_size

_IMAGE = re.compile(r"<img\b(?P<rest>[^>]*?)\s*/?>")
_SOURCE = re.compile(r'\bsrc="(?P<address>[^"]+)"')
_SVG = re.compile(r"<svg\b[^>]*>", re.DOTALL)
_LENGTH = re.compile(r'\b(width|height)="([\d.]+)(pt|px|)"')

_PIXELS = {"pt": 96 / 72, "px": 1.0, "": 1.0}


def settle_images(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Give each image of a page its size, and have it load late."""
    if not context.get("body"):
        return
    originals = {name: source for source, name in app.builder.images.items()}

    def settled(image: re.Match[str]) -> str:
        rest = image["rest"]
        source = _SOURCE.search(rest)
        if source is None or "loading=" in rest:
            return image[0]
        name = posixpath.basename(source["address"])
        size = _size(Path(app.srcdir, originals[name])) if name in originals else None
        if size is not None and "width=" not in rest:
            rest += f' width="{size[0]}" height="{size[1]}"'
        return f'<img{rest} loading="lazy" decoding="async">'

    context["body"] = _IMAGE.sub(settled, context["body"])


@cache
def _size(path: Path) -> tuple[int, int] | None:
    """An image's width and height in CSS pixels; None if it does not say."""
    if path.suffix != ".svg":
        return get_image_size(path)
    root = _SVG.search(path.read_text("utf-8", errors="replace"))
    matches = _LENGTH.findall(root[0]) if root else []
    lengths = {
        name: round(float(value) * _PIXELS[unit]) for name, value, unit in matches
    }
    if lengths.keys() != {"width", "height"}:
        return None
    return lengths["width"], lengths["height"]


def setup_images(app: Sphinx) -> None:
    """Say of each image how large it is."""
    app.connect("html-page-context", settle_images)
