"""axe finds nothing on any page: light and dark, on a desktop and on a phone."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from .conftest import PAGES

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(browser: Browser, address: str, name, width, theme):
    context = browser.new_context(
        color_scheme=theme,
        has_touch=width < 600,
        reduced_motion="reduce",
        viewport={"width": width, "height": 844},
    )
    page = context.new_page()
    page.goto(address + name, wait_until="networkidle")
    found = Axe().run(page, options=RULES).response["violations"]
    context.close()
    said = [
        f"{each['id']}: {node['html'][:160]}"
        for each in found
        for node in each["nodes"]
    ]
    assert said == []
