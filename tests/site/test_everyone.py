"""axe finds nothing on any page: light and dark, on a desktop and on a phone."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from ..browser.conftest import axe
from .conftest import PAGES, SITE

#: What axe looks for. It cannot tell how far a link stands out that holds an element,
#: as those of Sphinx do, and takes half of its time for it: see `BARE`.
RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
    "rules": {"link-in-text-block": {"enabled": False}},
}
#: What of that another width or another theme may change.
OF_LAYOUT = {"runOnly": ["color-contrast", "scrollable-region-focusable"]}

# The links in a paragraph that have no line, other than the ticks.
BARE = """() => [...document.querySelectorAll("article p a:not(.receipt)")]
  .filter((link) => {
    const text = link.closest("p").innerText.trim();
    return link.checkVisibility()
      && text.length > link.innerText.trim().length
      && !getComputedStyle(link).textDecorationLine.includes("underline");
  })
  .map((link) => link.outerHTML)"""

#: How a page is looked at, one after the other in one tab: each theme and each width.
LOOKS = (("light", 1280), ("dark", 390))

#: Pages on which all is looked for in each look. What surrounds a page is the same on
#: all pages of a folder, and what it says is looked at in the first look.
WHOLLY = {name.rpartition("/")[0] or name: name for name in reversed(PAGES)}.values()

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


def look(page: Page, theme: str, width: int) -> None:
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 844})


def wrong(page: Page, wholly: bool) -> set[str]:
    """What axe finds wrong with a page in each of its looks."""
    page.evaluate(ONE_OF_EACH)
    said = set()
    for theme, width in LOOKS:
        look(page, theme, width)
        page.wait_for_timeout(600)  # the theme waits before it looks at what scrolls
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        rules = RULES if wholly or theme == "light" else OF_LAYOUT
        bare = page.evaluate(BARE)
        said |= {f"{theme}, {width}: bare link: {link[:160]}" for link in bare}
        said |= {
            f"{theme}, {width}: {each['id']}: {node['html'][:160]}"
            for each in axe(page, **rules)
            for node in each["nodes"]
        }
    return said


@pytest.fixture(scope="module")
def tab(browser: Browser, address: str) -> Iterator[Page]:
    """One tab for page after page, as a reader has it."""
    page = browser.new_page(base_url=address, reduced_motion="reduce")
    yield page
    page.close()


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(tab: Page, name: str):
    look(tab, *LOOKS[0])
    tab.goto(name)
    assert wrong(tab, name in WHOLLY) == set()


def test_axe_finds_what_is_wrong(tab: Page):
    look(tab, *LOOKS[0])
    tab.goto("index.html")
    last = "article section:last-of-type p:last-of-type"  # after many of its look
    tab.add_style_tag(content=f"html[data-theme=dark] {last} {{ color: #444 }}")
    tab.add_style_tag(content="article p a { text-decoration: none !important }")
    tab.evaluate("document.querySelector('article').append(new Image(9, 9))")
    found = [
        {": ".join(line.split(": ")[:2]) for line in wrong(tab, wholly)}
        for wholly in (True, False)
    ]
    assert found[0] - found[1] == {"dark, 390: image-alt"}
    bare = {f"{look}: bare link" for look in ("light, 1280", "dark, 390")}
    assert found[1] == {"light, 1280: image-alt", "dark, 390: color-contrast"} | bare


def test_each_page_has_a_title_of_its_own():
    title = re.compile(r"<title>(\w[^<]*) — Just After Execution, JAX [\d.]+</title>")
    pages = {name: (SITE / name).read_text() for name in PAGES}
    # An old address has the title of where it leads.
    asked = [name for name in pages if "noindex" not in pages[name]]
    assert [name for name in asked if not title.search(pages[name])] == []


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
