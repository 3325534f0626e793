"""Where things are on the book's own pages: on paper, in the sidebar, in the lens."""

from __future__ import annotations

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


LENS = """lens => {
  const { left, right } = lens.getBoundingClientRect();
  const sizes = (each) => [each.clientWidth, each.scrollWidth, each.scrollHeight];
  const panes = [...lens.querySelectorAll(".ja-pane")];
  return {
    left, right,
    hint: [lens.querySelector(".ja-status").clientHeight,
           lens.querySelector(".ja-status").scrollHeight],
    panes: panes.map((pane) => pane.clientWidth),
  };
}"""
