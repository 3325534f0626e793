"""The outputs of two platforms: chosen once, by mouse or keyboard, for all pages."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from ..book.conftest import TinyBook, new_book, on_a_device

ROOT = Path(__file__).parents[2]
CELL = ":tags: [device]\nimport jax\nprint({}, jax.devices()[0].platform)\nassert jax"


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> TinyBook:
    """Two chapters with two recorded cells each, built as the book is."""
    book = new_book(tmp_path_factory.mktemp("tabs"))
    for name in ("one", "two"):
        book.chapter(name, CELL.format(1), CELL.format(2))
    book.index("one", "two")
    (book.root / "outputs" / "cells").mkdir(parents=True)
    book.done("pin")
    book.done("record", **on_a_device())
    options = {"outputs": book.root / "outputs" / "cells", "cache": "", "verified": ""}
    given = [f"-Dexecuted_book_{name}={value}" for name, value in options.items()]
    book.done("build", "--config", str(ROOT / "conf"), *given)
    return book


@pytest.fixture(params=[True, False], ids=["scripts", "no scripts"])
def scripts(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.fixture
def page(visit, book: TinyBook, scripts: bool) -> Page:
    return visit((book.site / "one.html").as_uri(), width=390, scripts=scripts).page


def stamps(page: Page) -> list[bool]:
    """For each recorded cell whether the other platform's output is in sight."""
    return [stamp.is_visible() for stamp in page.locator(".record-stamp").all()]


def test_the_page_opens_with_its_own_output(page):
    assert stamps(page) == [False, False]
    expect(page.get_by_text("1 cpu").first).to_be_visible()


def test_tabs_share_a_line_and_the_pages_own_says_that_it_ran_here(page):
    page.set_viewport_size({"width": 320, "height": 844})
    records = page.locator(".records").first
    name = "e => { e.textContent = 'NVIDIA H100 80GB HBM3, JAX 0.11.2' }"
    records.locator("label").last.evaluate(name)
    tops = [label.bounding_box()["y"] for label in records.locator("label").all()]
    assert max(tops) - min(tops) < 5
    label = "e => getComputedStyle(e, '::before').content"
    inside = [e.evaluate(label) for e in records.locator(".sd-tab-content").all()]
    assert inside == ['"on this device"', "none"]
    assert page.locator(".cell_output").first.evaluate(label) == "none"


def test_a_choice_by_mouse_holds_for_the_cell_or_with_scripts_for_all(page, scripts):
    page.locator("label", has_text="Pretend").first.click()
    assert stamps(page) == [True, scripts]


def test_a_choice_by_keyboard_is_kept_on_the_next_page(page, scripts):
    page.locator(".records input").first.focus()
    page.keyboard.press("ArrowRight")
    assert stamps(page) == [True, scripts]
    page.goto(page.url.replace("one", "two"))
    assert stamps(page) == [scripts, scripts]
