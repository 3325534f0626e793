"""axe finds nothing on any page: light and dark, on a desktop and on a phone."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from .conftest import PAGES, SITE

RULES = {
    "resultTypes": ["violations"],
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
}

#: How a page is looked at, one after the other in one tab: each theme and each width.
LOOKS = (("light", 1280), ("dark", 390))

# A page has thousands of tokens of code, which differ in their color alone. Of those
# that the style sheet cannot tell apart, the first is looked at; the others are text.
ONE_OF_EACH = """() => {
  const seen = new Set();
  for (const token of document.querySelectorAll("article pre span:not(:has(*))")) {
    const chain = [];
    for (let each = token; each.tagName !== "ARTICLE"; each = each.parentElement) {
      chain.push(each.tagName, each.className, each.getAttribute("style"));
    }
    const look = chain.join("|");
    if (seen.has(look)) token.replaceWith(...token.childNodes);
    seen.add(look);
  }
  document.body.normalize();
}"""


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(browser: Browser, address: str, name: str):
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(address + name)
    page.evaluate(ONE_OF_EACH)
    said = set()
    for theme, width in LOOKS:
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 844})
        page.wait_for_timeout(600)  # the theme waits before it looks at what scrolls
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        found = Axe().run(page, options=RULES).response
        said |= {
            f"{theme}, {width}: {each['id']}: {node['html'][:160]}"
            for each in found["violations"]
            for node in each["nodes"]
        }
    context.close()
    assert said == set()


def test_each_page_has_a_title_of_its_own():
    title = re.compile(r"<title>(\w[^<]*) — Just After Execution, JAX [\d.]+</title>")
    pages = {name: (SITE / name).read_text() for name in PAGES}
    # The first page has the book's alone, and an old address that of where it leads.
    others = [name for name in pages if name != "index.html"]
    asked = [name for name in others if "noindex" not in pages[name]]
    assert [name for name in asked if not title.search(pages[name])] == []


def test_folded_things_are_named_by_what_they_show():
    folded = re.compile(r'<details class="admonition hide[^>]*>\s*<summary([^>]*)>')
    found = [
        (name, attributes)
        for name in PAGES
        for attributes in folded.findall((SITE / name).read_text())
    ]
    assert len(found) > 100
    assert [one for one in found if "aria-label" in one[1]] == []


def test_a_card_shows_that_it_has_the_focus(browser: Browser, address: str):
    page = browser.new_page()
    page.goto(address + "index.html")
    page.keyboard.press("Tab")  # the link that skips to the content
    page.keyboard.press("Enter")
    card = page.locator(".sd-card:has(:focus)")
    for _ in range(10):  # past the parts of the picture
        page.keyboard.press("Tab")
        if card.count():
            break
    assert card.evaluate("card => getComputedStyle(card).outlineStyle") == "solid"
    page.close()
