"""The second copy button: press it, paste what it copied, and it runs."""

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
        button.click()
        expect(button.locator("+ .copy-status")).to_have_text("copied")
        page.keyboard.press("Escape")
        copied = paste(page)
        shown = cell.locator("pre.program").text_content()
        assert copied.strip() == (shown or "").strip()
        assert copied.startswith("# everything.html\n")  # a book without JAX
        expected = outputs.first.text_content() or ""
        assert same_output(expected, run(copied, tmp_path)) is None
        compared += 1
    assert compared >= 1


def test_by_keyboard_the_program_is_shown_and_copied(page):
    assert page.locator(".program-box summary:visible").count() == 0
    cell = page.locator(CELL).first
    program = cell.locator("pre.program")
    assert not program.is_visible()
    cell.locator("button.plain-copy").focus()
    page.keyboard.press("Tab")
    assert program.is_visible()
    page.keyboard.press("Enter")
    expect(cell.locator(".program-copy + .copy-status")).to_have_text("copied")
    page.keyboard.press("Escape")
    assert not program.is_visible()


def test_pointing_at_the_button_shows_the_program(page):
    cell = page.locator(CELL).first
    cell.locator(".cell_input").hover()
    cell.locator("button.program-copy").hover()
    cell.locator("pre.program").wait_for()
    page.mouse.move(5, 5)
    cell.locator("pre.program").wait_for(state="hidden")
