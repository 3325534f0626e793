"""Where things are on the book's own pages: on paper, on a phone, in the side bars."""

import re

import pytest
from playwright.sync_api import Browser

PHONES = [(360, 740), (390, 844)]

#: The margins of Chrome and of Firefox, and some more.
MARGINS = ("0.4in", "0.5in", "15mm")


@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_the_cheat_sheet_prints_on_two_pages(
    browser: Browser, address: str, paper, margin
):
    page = browser.new_page()
    page.goto(address + "cheat-sheet.html")
    around = dict.fromkeys(("top", "right", "bottom", "left"), margin)
    printed = page.pdf(format=paper, margin=around)
    page.close()
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 2


#: How high above the lower edge of a sheet a heading begins, in points, by the outline.
PLACE = re.compile(rb"/XYZ [\d.]+ ([\d.]+) ")


@pytest.mark.parametrize("name", ["coming-from-pytorch", "errors/transformations"])
def test_no_heading_is_the_last_on_its_sheet(browser: Browser, address: str, name):
    page = browser.new_page()
    page.goto(f"{address}{name}.html")
    heights = set()
    for paper in ("A4", "Letter"):
        around = dict.fromkeys(("top", "right", "bottom", "left"), "0.5in")
        printed = page.pdf(format=paper, margin=around, outline=True, tagged=True)
        heights |= set(map(float, PLACE.findall(printed)))
    page.close()
    assert len(heights) > 10
    assert min(heights) > 36 + 50  # the margin, a heading of a line, and two lines


def test_the_name_of_the_book_ends_before_the_search(browser: Browser, address: str):
    for width in (320, *(width for width, _ in PHONES)):
        page = browser.new_page(viewport={"width": width, "height": 700})
        page.goto(address + "learn/jit.html")
        name, search = (
            page.locator(".logo__title"),
            page.locator(".bd-header .search-button__button"),
        )
        [button] = [b for b in search.all() if b.is_visible()]
        ends = name.evaluate("name => name.getBoundingClientRect().right")
        whole = name.evaluate("name => name.scrollWidth <= name.clientWidth")
        assert whole, width
        assert ends <= button.bounding_box()["x"], width
        page.close()


@pytest.mark.parametrize(("width", "height"), PHONES)
def test_a_phone_has_the_doors_on_its_first_screen(
    browser: Browser, address, width, height
):
    page = browser.new_page(viewport={"width": width, "height": height})
    page.goto(address + "index.html")
    doors = page.locator(".sd-card")
    ends = [doors.nth(nth).bounding_box() for nth in range(4)]
    page.close()
    assert max(box["y"] + box["height"] for box in ends) < height


@pytest.mark.parametrize(("width", "height"), PHONES)
def test_a_phone_has_the_finder_in_the_upper_half(
    browser: Browser, address, width, height
):
    page = browser.new_page(viewport={"width": width, "height": height})
    page.goto(address + "errors/index.html")
    field = page.locator(".message-filter").bounding_box()
    page.close()
    assert field["y"] + field["height"] < height / 2


def test_the_first_example_and_its_picture_take_a_screen_and_a_half(
    browser: Browser, address
):
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(address + "index.html")
    first, second = (
        page.locator("article .cell_input").nth(n).bounding_box() for n in (0, 1)
    )
    picture = page.locator("article .cell_output img:visible").first.bounding_box()
    page.close()
    assert first["y"] == second["y"]
    assert first["x"] + first["width"] < second["x"]
    assert picture["y"] + picture["height"] < 1.5 * 900


@pytest.mark.parametrize("name", ["index.html", "learn/vmap.html"])
def test_a_newcomer_sees_the_chapters_of_learn(browser: Browser, address: str, name):
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(address + name)
    chapters = page.locator("nav.bd-links li.toctree-l2 a:visible")
    titles = [title.strip() for title in chapters.all_inner_texts()]
    page.close()
    assert titles[0] == "JAX in ten minutes"
    assert 10 < len(titles) < 20


#: Which entry of the list of sections is marked, and which section is at the top: the
#: last that has begun above the top bar's lower edge, or a little below it.
FOLLOWED = """() => {
  const links = [...document.querySelectorAll("nav.page-toc a")];
  const sections = links.map((a) => document.getElementById(a.hash.slice(1)));
  const tops = sections.map((section) => section.getBoundingClientRect().top);
  const line = document.querySelector(".bd-header").getBoundingClientRect().bottom;
  const began = (by) => links[tops.filter((top) => top < by).length - 1]?.hash;
  const marked = document.querySelectorAll("nav.page-toc a.active");
  return [[...marked].map((a) => a.hash), [began(line), began(line + 160)]];
}"""


def test_the_list_of_sections_is_right_also_while_one_scrolls_up(
    browser: Browser, address
):
    page = browser.new_page(
        viewport={"width": 1440, "height": 900}, reduced_motion="reduce"
    )
    page.goto(address + "learn/jit.html")
    page.wait_for_timeout(300)
    end = page.evaluate("document.documentElement.scrollHeight - innerHeight")
    down = [*range(300, int(end) - 900, 450)]
    wrong = []
    for place in (*down, *reversed(down)):
        page.evaluate(f"scrollTo(0, {place})")
        page.wait_for_timeout(60)
        marked, right = page.evaluate(FOLLOWED)
        if marked != [right[0]] and marked != [right[1]]:
            wrong.append((place, marked, right))
    page.close()
    assert len(down) > 10
    assert wrong == []


OUTPUTS = ".cell_output :is(.text_html, .ja-lens)"
PLACES = """(kind) => [...document.querySelectorAll(kind)]
  .filter((box) => box.checkVisibility())
  .map((box) => box.getBoundingClientRect())
  .map(({ left, width, height }) => [left, width, height].map(Math.round))"""


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("name", ["index.html", "finding-out/timing.html"])
def test_in_the_dark_outputs_are_where_they_are_in_the_light(
    browser: Browser, address, name, width
):
    seen = []
    for theme in ("light", "dark"):
        page = browser.new_page(
            viewport={"width": width, "height": 900}, color_scheme=theme
        )
        page.goto(address + name)
        page.locator(".ja-lens.is-live, .ja-table").first.wait_for()
        seen.append(page.evaluate(PLACES, OUTPUTS))
        page.close()
    assert seen[0] == seen[1] != []


#: Words, and parts of the names of classes, that take more than one line.
BROKEN = """(kinds) => [...document.querySelectorAll(kinds)].flatMap((element) => {
  const found = [], texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    for (const word of texts.currentNode.data.matchAll(/[A-Z]?[a-z]+/g)) {
      const range = document.createRange();
      range.setStart(texts.currentNode, word.index);
      range.setEnd(texts.currentNode, word.index + word[0].length);
      const lines = [...range.getClientRects()].filter(({ width }) => width > 1);
      const tops = lines.map(({ top }) => Math.round(top));
      if (new Set(tops).size > 1) found.push(word[0]);
    }
  }
  return found;
})"""


@pytest.mark.parametrize("width", [width for width, _ in PHONES])
@pytest.mark.parametrize("kind", ["errors/index #all-messages td", "errors/tracing h2"])
def test_a_class_breaks_between_the_parts_of_its_name(
    browser: Browser, address, width, kind
):
    name, _, kind = kind.partition(" ")
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(f"{address}{name}.html")
    broken = page.evaluate(BROKEN, f"{kind}:not(:has(table))")
    page.close()
    assert [word for word in broken if word[0].isupper()] == []


#: Where a lens ends, how wide its columns are, and how much of its hint is cut off.
LENS = """lens => {
  const { left, right } = lens.getBoundingClientRect();
  const panes = [...lens.querySelectorAll(".ja-pane")].map((pane) => pane.clientWidth);
  const hint = lens.querySelector(".ja-status");
  return { left, right, panes, cut: hint.scrollHeight - hint.clientHeight };
}"""


@pytest.mark.parametrize(("width", "column"), [(390, 330), (820, 230), (1440, 300)])
def test_a_lens_takes_the_width_of_the_page(browser: Browser, address, width, column):
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(address + "index.html")
    page.locator(".ja-lens.is-live").first.wait_for()
    seen = page.locator(".ja-lens").first.evaluate(LENS)
    page.close()
    assert seen["left"] >= 0
    assert width - 60 <= seen["right"] <= width
    assert min(seen["panes"]) >= column
    assert seen["cut"] <= 0


def test_all_messages_and_their_classes_fit_a_phone(browser: Browser, address: str):
    page = browser.new_page(viewport={"width": 390, "height": 900})
    page.goto(address + "errors/index.html")
    ends = "cells => Math.max(...cells.map(cell => cell.getBoundingClientRect().right))"
    assert page.locator("#all-messages td *").evaluate_all(ends) <= 390 - 10
    page.close()
