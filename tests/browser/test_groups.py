"""Parts of cells have names, cells have addresses, and Tab comes past code quickly."""

from playwright.sync_api import Page, expect

FOCUSED = """() => {
  const focused = document.activeElement;
  return focused.closest("pre") ? "link" : focused.tagName;
}"""


def test_code_output_and_error_are_groups_with_names(everything: Page):
    group = "div.cell [role=group]"
    names = everything.eval_on_selector_all(
        group, "all => all.map(each => each.getAttribute('aria-label'))"
    )
    assert len(names) == len({*names}) > 20
    assert names[:2] == ["Cell 1, code", "Cell 1, output"]
    failed = everything.locator("div.cell:has(.traceback)").first
    number = failed.get_attribute("id").removeprefix("cell-")
    assert {f"Cell {number}, code", f"Cell {number}, error"} <= {*names}
    buttons = everything.eval_on_selector_all(
        "article button:not(.receipt-panel *)",
        "all => all.map(each => each.ariaLabel || each.textContent)",
    )
    assert "Copy code of cell 1" in buttons
    assert "Copy as program: code of cell 1" in buttons
    assert "Copy" not in buttons
    assert "Copy as program" not in buttons


def test_a_traceback_leads_to_its_cell(visit):
    page = visit("everything.html").page
    failed = page.locator("div.cell:has(.traceback)").first
    link = failed.locator(".traceback a")
    number = failed.get_attribute("id").removeprefix("cell-")
    expect(link).to_have_text(f"Cell {number}")
    link.click()
    assert page.url.endswith(f"#cell-{number}")
    expect(failed).to_be_in_viewport()


def test_tab_passes_a_cell_in_one_press_and_arrows_lead_through_it(visit):
    page = visit("everything.html").page
    linked = page.locator("div.cell:has(.cell_input pre a[href])").first
    linked.get_by_role("button").first.focus()
    seen = [page.evaluate(FOCUSED)]
    for _ in range(3):
        page.keyboard.press("ArrowRight")
        seen.append(page.evaluate(FOCUSED))
    assert seen == ["BUTTON", "BUTTON", "link", "link"]
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(FOCUSED) == "BUTTON"
    stops = "all => all.filter(each => each.tabIndex > -1).length"
    within = linked.locator(".cell_input :is(a, button)")
    assert within.evaluate_all(stops) == 1
    page.keyboard.press("Tab")
    assert within.evaluate_all("all => !all.includes(document.activeElement)")


def test_forced_colors_keep_a_line_between_code_and_output(visit):
    page = visit("everything.html", forced_colors="active").page
    width = "part => getComputedStyle(part).borderTopWidth"
    output = page.locator("div.cell > .cell_output").first
    assert output.evaluate(width) == "1px"
    assert page.locator("details.below-input").first.evaluate(width) == "1px"
