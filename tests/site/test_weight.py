"""What a page weighs: at most 250 KB compressed in at most fifteen requests."""

from __future__ import annotations

import gzip
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Browser

from .conftest import PAGES, SITE

BYTES, REQUESTS = 250_000, 15


def weight(browser: Browser, url: str) -> tuple[int, list[str]]:
    """The compressed bytes of a page that is read to its end, and its requests."""
    page = browser.new_page(viewport={"width": 1280, "height": 844})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(url, wait_until="networkidle")
    page.close()
    files = [SITE / unquote(urlsplit(one).path).lstrip("/") for one in asked]
    return sum(len(gzip.compress(file.read_bytes())) for file in files), asked


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_light(browser: Browser, address: str, name):
    size, asked = weight(browser, address + name)
    assert len(asked) <= REQUESTS, asked
    assert size <= BYTES


@pytest.mark.parametrize("name", PAGES)
def test_no_script_blocks(browser: Browser, address: str, name):
    page = browser.new_page(java_script_enabled=False)
    page.goto(address + name)
    blocking = page.locator("script[src]:not([defer], [async], [type=module])")
    assert blocking.count() == 0
    assert page.locator("article img:not([loading=lazy])").count() == 0
    page.close()
