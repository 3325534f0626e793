"""The second copy button: press it, paste what it copied, and it runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from executed_book.checking.comparison import same_output

CELL = "div.cell:has(button.program-copy)"


@pytest.fixture
def page(visit):
    opened = visit("everything.html")
    yield opened.page
    assert opened.errors == []


def paste(page: Page) -> str:
    """What the clipboard holds, by pasting it as a reader does."""
    page.evaluate(
        """() => {
            const area = document.createElement("textarea");
            area.id = "paste-here";
            document.body.append(area);
            area.focus();
        }"""
    )
    page.keyboard.press("Control+V")
    text = page.input_value("#paste-here")
    page.evaluate("() => document.getElementById('paste-here').remove()")
    return text


def run(text: str, folder: Path) -> str:
    program = folder / "pasted.py"
    program.write_text(text)
    command = [sys.executable, str(program)]
    return subprocess.check_output(command, text=True, cwd=folder)


def test_what_the_button_copies_runs_and_gives_the_output(page, tmp_path):
    cells = page.locator(
        f"{CELL}:not(.tag_measured):not(.tag_raises-exception):not(.tag_device)"
    )
    compared = 0
    for i in range(cells.count()):
        cell = cells.nth(i)
        outputs = cell.locator("div.output:not(.traceback) pre")
        button = cell.locator("button.program-copy")
        if outputs.count() != 1 or not button.is_visible():
            continue
        if compared:  # as where the page was not sent over TLS
            page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: 0})")
        button.click()
        expect(button.locator("+ .copy-status")).to_have_text("copied")
        page.keyboard.press("Escape")
        copied = paste(page)
        shown = cell.locator("pre.program").text_content()
        assert copied.strip() == (shown or "").strip()
        assert f": {len(copied.splitlines())} lines" in button.get_attribute("title")
        assert copied.startswith("# everything.html\n")  # a book without JAX
        expected = outputs.first.text_content() or ""
        assert same_output(expected, run(copied, tmp_path)) is None
        compared += 1
    assert compared >= 2
    assert page.locator("body > textarea").count() == 0
    page.evaluate("document.execCommand = () => false")
    button = cells.first.locator("button.program-copy")
    button.click()
    expect(button.locator("+ .copy-status")).to_have_text(re.compile("^not copied: "))


def test_by_keyboard_the_program_is_shown_and_copied(page):
    assert page.locator(".program-box summary:visible").count() == 0
    cell = page.locator(CELL).nth(1)  # without links in its code
    program = cell.locator("pre.program")
    assert not program.is_visible()
    cell.locator("button.plain-copy").focus()
    page.keyboard.press("ArrowRight")
    assert program.is_visible()
    page.keyboard.press("Tab")
    page.wait_for_timeout(400)
    assert program.is_visible(), "the focus is in it"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(cell.locator(".success + [role=status]")).to_have_text("copied")
    page.keyboard.press("Shift+Tab")
    page.wait_for_timeout(400)
    assert program.is_visible(), "pressing the button keeps it"
    page.locator(CELL).first.locator("button.program-copy").focus()
    assert not program.is_visible(), "another is shown"
    cell.locator("button.program-copy").focus()
    page.keyboard.press("Escape")
    assert not program.is_visible()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    assert program.is_visible()
    page.keyboard.press("Shift+Tab")
    expect(program).to_be_hidden()
    expect(cell.locator(".program-copy:not(.success) + span")).to_have_text("")


def test_pointing_at_the_button_shows_the_program(page):
    cell = page.locator(CELL).first
    cell.locator(".cell_input").hover()
    cell.locator("button.program-copy").hover()
    cell.locator("pre.program").hover()
    page.wait_for_timeout(400)
    assert cell.locator("pre.program").is_visible(), "the pointer is on it"
    cell.locator("button.program-copy").click()
    page.mouse.move(5, 5)
    cell.locator("pre.program").wait_for(state="hidden")


def test_a_tap_shows_the_program_until_another_is_elsewhere(visit):
    page = visit("everything.html", width=390).page
    cell = page.locator(CELL).first
    cell.locator("button.program-copy").tap()
    cell.locator("pre.program").tap()
    page.wait_for_timeout(400)
    assert cell.locator("pre.program").is_visible()
    page.locator("h1").last.tap()
    expect(cell.locator("pre.program")).to_be_hidden()
