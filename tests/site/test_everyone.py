"""axe finds nothing on any page: light and dark, on a desktop and on a phone."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from .conftest import PAGES

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}


#: How a page is looked at, one after the other in one tab: each theme and each width.
LOOKS = (("light", 1280), ("dark", 390))


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(browser: Browser, address: str, name: str):
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(address + name)
    said = set()
    for theme, width in LOOKS:
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 844})
        page.wait_for_timeout(600)  # the theme waits before it looks at what scrolls
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        found = Axe().run(page, options=RULES).response["violations"]
        said |= {
            f"{theme}, {width}: {each['id']}: {node['html'][:160]}"
            for each in found
            for node in each["nodes"]
        }
    context.close()
    assert said == set()
