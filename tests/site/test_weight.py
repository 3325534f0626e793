"""What a page weighs: at most 250 KB compressed in at most fifteen requests."""

import gzip
import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote

from .conftest import PAGES, SITE

BYTES, REQUESTS = 250_000, 15

_LOADED = re.compile(
    r'<(?:script|img)\b[^>]*?\bsrc="([^"]+)"'
    r'|<link\b[^>]*?\brel="(?:stylesheet|icon|preload)"[^>]*?\bhref="([^"]+)"'
)


def loaded(page: Path) -> set[Path]:
    """The files that a page asks for when it is read to its end in one theme."""
    names = [a or b for a, b in _LOADED.findall(page.read_text("utf-8"))]
    names = [unquote(name.partition("?")[0]) for name in names]
    files = {page, SITE / "_static" / "mark-light.svg"}  # the style sheet names it
    shown = [name for name in names if not name.endswith("-dark.svg")]
    return files | {(page.parent / name).resolve() for name in shown}


@cache
def compressed(file: Path) -> int:
    return len(gzip.compress(file.read_bytes()))


def test_there_are_pages_and_nothing_else_is_published_as_one():
    assert len(PAGES) > 50
    assert [str(f) for f in (SITE / "_static").rglob("*.html")] == []


def test_pages_are_light():
    files = {name: loaded(SITE / name) for name in PAGES}
    assert [name for name in PAGES if len(files[name]) > REQUESTS] == []
    weights = {name: sum(map(compressed, files[name])) for name in PAGES}
    assert {name: weight for name, weight in weights.items() if weight > BYTES} == {}


def test_nothing_blocks_and_figures_load_late():
    kept = re.compile(r'(?=.*width="\d+")(?=.*height="\d+")(?=.*loading="lazy")')
    wrong = []
    for name in PAGES:
        text = (SITE / name).read_text("utf-8")
        scripts = re.findall(r"<script\b[^>]*\bsrc=[^>]*>", text)
        assert scripts, name
        wrong += [(name, script) for script in scripts if " defer" not in script]
        figures = re.findall(r"<img\b[^>]*_images/[^>]*>", text)
        wrong += [(name, figure) for figure in figures if not kept.search(figure)]
    assert wrong == []
