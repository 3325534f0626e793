"""What a page weighs: at most 250 KB compressed in at most fifteen requests."""

import gzip
import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

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


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_light(name):
    files = loaded(SITE / name)
    assert len(files) <= REQUESTS, sorted(map(str, files))
    assert sum(map(compressed, files)) <= BYTES


@pytest.mark.parametrize("name", PAGES)
def test_nothing_blocks_and_figures_load_late(name):
    text = (SITE / name).read_text("utf-8")
    scripts = re.findall(r"<script\b[^>]*\bsrc=[^>]*>", text)
    assert scripts
    assert [script for script in scripts if " defer" not in script] == []
    figures = re.findall(r"<img\b[^>]*_images/[^>]*>", text)
    kept = re.compile(r'(?=.*width="\d+")(?=.*height="\d+")(?=.*loading="lazy")')
    assert [figure for figure in figures if not kept.search(figure)] == []
