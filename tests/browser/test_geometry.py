"""Where things are: inside what they belong to, whole, and in sight."""

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from ..serving import Quiet, serving
from .test_look import DESKTOP, PHONE, UNFOLD

NARROW = 320

#: What of the elements of one kind lies outside the nearest that holds them.
OUTSIDE = """
([inner, outer]) => [...document.querySelectorAll(inner)]
  .filter((element) => element.checkVisibility() && element.textContent)
  .filter((element) => {
    const inside = element.getBoundingClientRect();
    const around = element.closest(outer).getBoundingClientRect();
    const { left, right, top, bottom } = around;
    return inside.left < left - 1 || inside.right > right + 1
      || inside.top < top - 1 || inside.bottom > bottom + 1;
  })
  .map((element) => element.textContent.trim().slice(0, 60))
"""

#: The texts of one kind that are wider than the room they have.
CUT_OFF = """
(kind) => [...document.querySelectorAll(kind)]
  .filter((element) => element.checkVisibility() && element.textContent.trim())
  .filter((element) => element.scrollWidth > element.clientWidth + 1)
  .map((element) => element.textContent.trim())
"""


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
@pytest.mark.parametrize("name", ["everything.html", "receipts.html"])
def test_buttons_lie_inside_their_block(visit, name, width):
    page = visit(f"{name}#shown-checks", width=width).page
    page.evaluate(UNFOLD)
    assert page.locator("details .code-tools, .tag_check .code-tools").count() > 0
    assert page.evaluate(OUTSIDE, [".code-tools", "div.highlight"]) == []


def test_tab_goes_from_an_opened_solution_to_its_buttons_without_a_jump(visit):
    page = visit("everything.html").page
    solution = page.locator(".tag_solution")
    solution.locator("summary").first.click()
    before = page.evaluate("scrollY")
    page.keyboard.press("Tab")
    expect(solution.locator("button.plain-copy").first).to_be_focused()
    assert abs(page.evaluate("scrollY") - before) < 100


def test_side_bars_stay_below_the_top_bar(visit):
    page = visit("everything.html", width=DESKTOP).page
    page.evaluate("scrollTo(0, 900)")
    bottom = "(name) => document.querySelector(name).getBoundingClientRect().bottom"
    top = "(name) => document.querySelector(name).getBoundingClientRect().top"
    assert page.evaluate("scrollY") > 800
    for side in (".bd-sidebar-primary", ".bd-sidebar-secondary"):
        assert page.evaluate(top, side) >= page.evaluate(bottom, ".bd-header") - 1, side


def test_paper_has_the_solutions_and_not_the_checks(visit):
    page = visit("everything.html", reduced_motion="no-preference").page
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    printed = {"solution", "asked .cell_output", "hide-output"}
    for kind in (*printed, "hide-input", "check"):
        shown = page.locator(f".tag_{kind} pre").first.is_visible()
        assert shown == (kind in printed), kind
    # What is open and cannot be closed does not offer to be hidden.
    assert "Hide the" not in page.inner_text("article")
    title = page.locator(".tag_solution summary").first
    said = title.evaluate("(it) => getComputedStyle(it, '::after').content")
    assert said == '"Solution"'
    # A marker may still turn; what fades in prints nearly invisible.
    fading = "(each) => each.animationName || each.transitionProperty == 'opacity'"
    moving = f"document.getAnimations().filter({fading}).length"
    assert page.evaluate(moving) == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(".tag_solution details[open]").count() == 0


@pytest.mark.parametrize("scripts", [True, False])
def test_a_link_into_an_answer_opens_its_fold(visit, scripts):
    page = visit("everything.html#claim-unit", scripts=scripts).page
    expect(page.locator(".answer")).to_be_visible()
    expect(page.locator(".answer")).to_be_in_viewport()


@pytest.mark.parametrize("scripts", [True, False])
def test_what_a_reader_shall_predict_is_shown_when_asked_for(visit, scripts):
    page = visit("everything.html", scripts=scripts).page
    cell = page.locator("div.cell.tag_asked")
    expect(cell).to_have_count(1)
    expect(cell.locator(".cell_input")).to_be_visible()
    expect(cell.locator(".cell_output")).to_be_hidden()
    said = cell.locator("details.hide summary p:visible")
    expect(said).to_have_text("Show the answer")
    expect(cell.locator(".answer")).to_be_hidden()
    said.click()
    expect(said).to_have_text("Hide the answer")
    expect(cell.locator(".answer")).to_contain_text("The answer is a power of two.")
    expect(cell.locator(".cell_output")).to_have_text("1024\n")


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_results_lie_inside_the_dialog(visit, width):
    page = visit("plain.html", width=width).page
    page.locator(".bd-header .search-button__button:visible").click()
    field = page.locator("#pst-search-dialog input")
    field.fill("normalize")
    page.locator("#pst-search-dialog li a").first.wait_for()
    dialog = page.locator("#pst-search-dialog").bounding_box()
    assert dialog["x"] >= 0
    assert dialog["x"] + dialog["width"] <= width
    for part in ("input", ".search-status", "li a", "li p"):
        box = page.locator(f"#pst-search-dialog {part}").first.bounding_box()
        assert box["x"] >= dialog["x"] + 12, part
        assert box["x"] + box["width"] <= dialog["x"] + dialog["width"] - 12, part
    assert field.bounding_box()["height"] >= 40
    icon = page.locator("#pst-search-dialog .fa-magnifying-glass").bounding_box()
    middle = field.bounding_box()["y"] + field.bounding_box()["height"] / 2
    assert icon["y"] + icon["height"] / 2 == pytest.approx(middle, abs=2)


@pytest.mark.parametrize("name", ["search.html", "404.html"])
def test_the_field_shows_that_it_has_the_focus(visit, name):
    page = visit(name).page
    field = page.locator(".search-page input")
    expect(field).to_be_focused()
    style = "e => { const s = getComputedStyle(e); return [s.borderTopWidth, s.%s] }"
    assert field.evaluate(style % "borderTopStyle") == ["1px", "solid"]
    with_focus = pixels(field, around=4)
    field.evaluate("field => field.blur()")
    assert np.abs(with_focus - pixels(field, around=4)).max() > 60


@pytest.mark.parametrize("width", [NARROW, PHONE])
def test_what_stands_in_the_header_does_not_overlap(visit, width):
    page = visit("everything.html", width=width).page
    shown = ".bd-header :is(.logo__title, .mark, button, .jax-version)"
    boxes = [one.bounding_box() for one in page.locator(shown).all()]
    boxes = [box for box in boxes if box]
    assert len(boxes) >= 5
    for k, one in enumerate(boxes):
        for other in boxes[:k]:
            assert not overlap(one, other), (one, other)
        assert one["x"] + one["width"] <= width
    assert page.evaluate(CUT_OFF, ".bd-header .logo__title") == []


def overlap(one: dict, other: dict) -> bool:
    return all(
        one[start] + 1 < other[start] + other[size]
        and other[start] + 1 < one[start] + one[size]
        for start, size in (("x", "width"), ("y", "height"))
    )


@pytest.mark.parametrize("width", [1280, 1440])
def test_the_list_of_sections_is_whole(visit, width):
    page = visit("below/long.html", width=width).page
    assert page.locator("#sections-of-page a").count() == 2
    assert page.evaluate(CUT_OFF, "#sections-of-page") == []
    parts = ["#sections-of-page a *", "#pst-secondary-sidebar"]
    assert page.evaluate(OUTSIDE, parts) == []


def test_the_sidebar_shows_where_one_is_after_a_link_and_after_next(visit):
    page = visit("index.html", height=260).page
    page.locator("article a", has_text="Names longer").or_(
        page.locator("nav.bd-links a", has_text="Names longer")
    ).first.click()
    page.wait_for_url("**/below/long.html")
    assert is_in_sight(page)
    page.goto(page.url.replace("below/long", "index"))
    titles = []
    while page.locator("a.right-next").count():
        page.locator("a.right-next").click()
        page.wait_for_load_state()
        assert is_in_sight(page), page.url
        titles.append(page.locator("h1").first.inner_text().rstrip("#"))
    assert titles[:2] == ["Every kind of thing", "A page of prose"]
    assert titles[2:] == ["Sentences with receipts", "Names longer than their column"]


def is_in_sight(page: Page) -> bool:
    entry = page.locator("nav.bd-links [aria-current=page]").bounding_box()
    around = page.locator("#pst-primary-sidebar").bounding_box()
    below = entry["y"] - around["y"]
    return 0 <= below <= around["height"] - entry["height"]


def pixels(part: Locator, around: int = 0) -> np.ndarray:
    clip = part.bounding_box()
    for start, size in (("x", "width"), ("y", "height")):
        clip |= {start: clip[start] - around, size: clip[size] + 2 * around}
    shot = part.page.screenshot(clip=clip)
    return np.asarray(Image.open(io.BytesIO(shot)).convert("L"), dtype=int)


def invisible(page: Page, kind: str) -> list[str]:
    """The icons of one kind that cannot be told from what is behind them."""
    icons = [icon for icon in page.locator(kind).all() if icon.is_visible()]
    assert icons
    return [icon.get_attribute("class") for icon in icons if np.ptp(pixels(icon)) < 60]


ICONS = ":is(.fa-solid, .fas, .fa-brands, .fab)"


@pytest.mark.parametrize("forced", ["active", "none"])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, 1440])
def test_icons_are_visible(visit, width, theme, forced):
    page = visit("everything.html", width=width, theme=theme, forced_colors=forced).page
    assert invisible(page, f".bd-header {ICONS}") == []
    if width == PHONE:
        page.locator(".bd-header .primary-toggle").click()
        page.evaluate("document.activeElement.blur()")
        assert invisible(page, f".bd-sidebar-primary {ICONS}") == []
        opened = page.locator(".bd-sidebar-primary .dropdown-download-buttons button")
        opened.first.click()
        assert invisible(page, f".bd-sidebar-primary .dropdown-menu {ICONS}") == []


def test_the_menu_of_downloads_says_what_each_is(everything: Page):
    menu = ".bd-header .dropdown-download-buttons .btn__text-container"
    entries = everything.locator(menu).all_text_contents()
    texts = ["Notebook (.ipynb)", "Markdown (.md)", "Source of this page"]
    assert [text.strip() for text in entries] == [*texts, "Print, or save as PDF"]
    text = everything.locator("link[rel=alternate][type='text/markdown']")
    assert text.get_attribute("href") == "_downloads/everything.md"


@pytest.fixture
def served(site: Path) -> Iterator[str]:
    """The site in a folder of a server that has its 404 page for what is not there."""

    class Server(Quiet):
        def translate_path(self, path: str) -> str:
            return super().translate_path(path.removeprefix("/a-book"))

        def send_error(self, code: int, *args: object) -> None:
            body = (site / "404.html").read_bytes()
            self.send_response(code)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with serving(site, Server) as address:
        yield f"{address}a-book/"


@pytest.mark.parametrize("lost", ["gone.html", "below/deeper/gone"])
def test_a_page_that_is_not_there_looks_like_the_book(visit, served, lost):
    page = visit(served + lost, offline=False).page
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(253, 252, 249)"
    page.locator(".search-page input").fill("normalize")
    page.locator(".search-page .search-found li a[href*=everything]").first.click()
    page.wait_for_url(f"{served}everything.html*")


def test_without_scripts_the_phone_menu_leads_to_the_list_of_pages(visit):
    page = visit("everything.html", width=PHONE, scripts=False).page
    menu = page.locator(".bd-header a:visible", has_text="Pages")
    menu.click()
    entry = page.locator("nav.bd-links a", has_text="A page of prose")
    expect(entry).to_be_in_viewport()
    entry.click()
    assert page.url.endswith("/plain.html")


COLORS = "e => { const s = getComputedStyle(e); return [s.color, s.backgroundColor]; }"


def test_without_scripts_the_dark_preference_holds(visit):
    looks = []
    for scripts in (True, False):
        page = visit("everything.html", theme="dark", scripts=scripts).page
        kinds = ("body", "article p", "article pre", "article a", ".stamp")
        looks.append([page.locator(kind).first.evaluate(COLORS) for kind in kinds])
        shown = page.locator(".cell_output img:visible")
        assert shown.get_attribute("class") == "only-dark"
    assert looks[0] == looks[1]
