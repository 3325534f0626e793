"""What a reader sees: on a phone, in the dark, offline, and without scripts."""

from importlib.metadata import version
from pathlib import Path

import pytest
from playwright.sync_api import Page

from .conftest import faint

PAGES = (
    *("404.html", "below/long.html", "everything.html", "genindex.html"),
    *("index.html", "plain.html", "receipts.html", "search.html"),
)

PHONE, DESKTOP = 390, 1280

JAX = version("jax")

MASK = "e => getComputedStyle(e).maskImage"

UNFOLD = "document.querySelectorAll('details').forEach(fold => { fold.open = true })"


def test_these_are_all_the_pages(site: Path):
    found = [path.relative_to(site).as_posix() for path in site.rglob("*.html")]
    assert sorted(name for name in found if name[0] != "_") == sorted(PAGES)


def assert_it_fits(page: Page, width: int) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".bd-header .logo__title:visible").count() == 1
    button = page.locator(".bd-header .search-button__button:visible")
    assert button.count() == 1
    box = button.bounding_box()
    header = page.locator(".bd-header").bounding_box()
    assert box["y"] >= header["y"] + 4
    assert box["y"] + box["height"] <= header["y"] + header["height"] - 4
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    assert page.locator(".bd-header .jax-version").inner_text() == f"JAX {JAX}"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole_offline_on_each_screen_and_in_both_themes(visit, name):
    visited = visit(name)
    page = visited.page
    page.wait_for_load_state("networkidle")
    assert len(visited.requests) > 2
    assert [url for url in visited.requests if not url.startswith("file:")] == []
    assert page.title().endswith(f"JAX {JAX}")
    assert page.locator("meta[name=viewport]").count() == 1
    assert not any("fontawesome" in url for url in visited.requests)
    on_phone = visit(name, width=PHONE)
    for one in (page, on_phone.page):
        one.evaluate(UNFOLD)
        for theme in ("light", "dark"):
            one.emulate_media(color_scheme=theme)
            one.wait_for_function(
                f"document.documentElement.dataset.theme === '{theme}'"
            )
            assert faint(one) == [], theme
    for width in (DESKTOP, 1024):
        page.set_viewport_size({"width": width, "height": 844})
        assert_it_fits(page, width)
    assert_it_fits(on_phone.page, PHONE)
    bar = on_phone.page.locator(".bd-header-article")
    assert bar.count() == 0 or not bar.is_visible(), "an empty bar lies over the page"
    assert visited.errors + on_phone.errors == []


def test_long_code_scrolls_inside_its_block_and_fades_until_its_end(visit):
    page = visit("everything.html", width=PHONE).page
    block = page.locator(".cell_input pre", has_text="far too").first
    inner, outer = block.evaluate("e => [e.scrollWidth, e.clientWidth]")
    assert inner > outer
    assert block.evaluate("e => getComputedStyle(e).overflowX") == "auto"
    assert "gradient" in block.evaluate(MASK)
    block.evaluate("e => { e.scrollLeft = e.scrollWidth }")
    page.wait_for_function(f"e => ({MASK})(e) === 'none'", arg=block.element_handle())
    fits = page.locator(".cell_input pre", has_text="2.5").first
    assert fits.evaluate(MASK) == "none"
    output = page.locator(".cell_output pre", has_text="far too").first
    inner, outer = output.evaluate("e => [e.scrollWidth, e.clientWidth]")
    assert inner <= outer, "a long line of output is wrapped"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_one_of_a_figures_twins_is_shown_and_the_other_not_loaded(visit, theme):
    visited = visit("everything.html", theme=theme)
    shown = visited.page.locator(".cell_output img:visible")
    assert shown.count() == 1
    assert shown.get_attribute("class") == f"only-{theme}"
    assert shown.evaluate("e => getComputedStyle(e).backgroundColor").endswith(", 0)")
    shown.scroll_into_view_if_needed()
    loaded = f"document.querySelector('img.only-{theme}').naturalWidth > 0"
    visited.page.wait_for_function(loaded)
    [figure] = [url for url in visited.requests if "/_images/" in url]
    assert figure.endswith("-dark.svg") == (theme == "dark")


def test_a_page_reads_without_scripts(visit):
    page = visit("everything.html", scripts=False).page
    assert page.locator(".cell_output img:visible").count() == 1
    assert page.locator("math").first.is_visible()
    folded = page.locator("div.cell:has(> details.above-input)").first
    assert not folded.locator(".program-box").is_visible()
    folded.locator("summary").first.click()
    assert folded.locator(".cell_input pre").first.is_visible()
    assert page.locator("button.program-copy").count() == 0
    folded.locator(".program-box summary").click()
    assert folded.locator("pre.program").is_visible()


@pytest.mark.parametrize("scripts", [True, False])
def test_checks_are_in_the_text_for_whoever_asks(visit, scripts):
    page = visit("everything.html", scripts=scripts).page
    check = page.locator("div.cell.tag_check")
    ways = ("Show", "Hide")
    show, hide = (page.locator(".show-checks a", has_text=way) for way in ways)
    assert (check.is_visible(), hide.is_visible()) == (False, False)
    assert show.inner_text() == "Show the code of 1 check in the text"
    show.click()
    assert check.locator(".cell_input pre").is_visible()
    assert not show.is_visible()
    page.emulate_media(media="print")
    assert (check.is_visible(), hide.is_visible()) == (False, False)
    page.emulate_media(media="screen")
    hide.click()
    assert (check.is_visible(), show.is_visible()) == (False, True)
    place = check.get_attribute("id")
    page.goto(page.url.partition("#")[0] + f"#{place}")
    assert check.is_visible()


def test_code_and_output_hang_from_one_edge(everything: Page):
    cell = everything.locator("div.cell:has(.text_plain)").first
    code, output = (cell.locator(part) for part in (".cell_input", ".cell_output"))
    above, below = code.bounding_box(), output.bounding_box()
    assert above["x"] == below["x"]
    assert above["y"] + above["height"] == pytest.approx(below["y"], abs=0.5)


def test_each_kind_of_output_has_its_color(everything: Page):
    color = "e => getComputedStyle(e).borderLeftColor"
    kinds = (
        *("div.cell:not(.tag_measured) > .cell_output", ".output.traceback"),
        *("div.cell.tag_measured > .cell_output", ".tag_check .cell_input"),
        "div.cell > .cell_input",
    )
    edges = [everything.locator(kind).first.evaluate(color) for kind in kinds]
    assert len({*edges}) == len(kinds)


def test_code_can_be_copied_and_outputs_are_left_alone(everything: Page):
    assert everything.locator(".cell_output button").count() == 0
    inputs = everything.locator(".cell_input").count()
    assert inputs > 10
    assert everything.locator(".cell_input button.plain-copy").count() == inputs
    programs = everything.locator("pre.program").count()
    assert programs > 10
    assert everything.locator(".cell_input button.program-copy").count() == programs


def test_buttons_cover_no_code_on_a_phone(visit):
    page = visit("everything.html", width=PHONE).page
    block = page.locator(".cell_input div.highlight").first
    tools, code = block.locator(".code-tools"), block.locator("pre")
    assert tools.evaluate("e => getComputedStyle(e).opacity") == "1"
    above, below = tools.bounding_box(), code.bounding_box()
    assert above["y"] + above["height"] <= below["y"] + 0.5


def test_a_focused_button_is_seen(everything: Page):
    tools = everything.locator(".code-tools").first
    opacity = "e => getComputedStyle(e).opacity"
    assert tools.evaluate(opacity) == "0"
    tools.locator("button.plain-copy").focus()
    assert tools.evaluate(opacity) == "1"


def test_search_leads_to_a_section_with_the_words_marked(visit):
    visited = visit("plain.html")
    page = visited.page
    page.keyboard.press("Control+k")
    page.locator("#pst-search-dialog input").fill("normalise")
    page.locator("#pst-search-dialog li a", has_text="Code and what").click()
    page.wait_for_url("**/everything.html#code-and-what-comes-out")
    marks = page.locator("article mark")
    assert "normalize" in marks.all_inner_texts()
    assert page.evaluate("scrollY") > 0
    assert visited.errors == []


def test_results_are_reached_by_keyboard_and_have_a_page_of_their_own(visit):
    page = visit("plain.html").page
    page.keyboard.press("Control+k")
    field = page.locator("#pst-search-dialog input")
    field.fill("normalize")
    page.locator("#pst-search-dialog li a").first.wait_for()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.tagName") == "A"
    first = page.locator("#pst-search-dialog li a").first.get_attribute("href")
    field.press("Enter")
    page.wait_for_url(f"**/{first.partition('?')[0].rpartition('/')[2]}*")
    page.goto(
        page.url.partition("?")[0].rpartition("/")[0] + "/search.html?q=normalize"
    )
    page.locator(".search-page .search-found li").first.wait_for()


# What of each element depends on the theme, as it is printed.
COLORS = """
() => [...document.querySelectorAll("body, article, article *")]
  .filter((element) => element.checkVisibility())
  .map((element) => {
    const { color, backgroundColor, borderColor, fill } = getComputedStyle(element);
    const name = element.getAttribute("class");
    return [element.tagName, name, color, backgroundColor, borderColor, fill];
  })
"""


@pytest.mark.parametrize("name", ["everything.html", "receipts.html"])
def test_paper_is_the_same_whatever_the_screen_was(visit, name):
    printed = []
    for theme in ("light", "dark"):
        page = visit(name, theme=theme).page
        page.emulate_media(media="print", color_scheme=theme)
        page.wait_for_function("document.documentElement.dataset.theme === 'light'")
        printed.append([tuple(each) for each in page.evaluate(COLORS)])
    light, dark = printed
    assert [both for both in zip(light, dark, strict=True) if both[0] != both[1]] == []
    assert faint(page) == []
    page.emulate_media(media="screen", color_scheme="dark")
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
