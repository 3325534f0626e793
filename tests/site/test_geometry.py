"""Where things are on the book's own pages: on paper, in the sidebar, in the lens."""

import re

import pytest
from playwright.sync_api import Browser


@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_the_cheat_sheet_prints_on_two_pages(browser: Browser, address: str, paper):
    page = browser.new_page()
    page.goto(address + "cheat-sheet.html")
    printed = page.pdf(format=paper)
    page.close()
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 2


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
