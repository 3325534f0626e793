"""Ticks after sentences: by mouse, by keyboard, on a phone, and without scripts."""

from playwright.sync_api import Page, expect

PANEL = ".receipt-panel"


def test_a_tick_shows_its_check_on_hovering_and_lets_it_go(visit):
    opened = visit("receipts.html", width=700)
    page = opened.page
    page.hover("#claim-odd-numbers")
    panel = page.locator(PANEL)
    expect(panel).to_contain_text("squares[1:] == odd.cumsum()")
    expect(panel).to_contain_text("Passed 20")
    expect(panel).to_contain_text("Python 3.")
    expect(panel).not_to_contain_text("It holds:")
    panel.hover()
    page.wait_for_timeout(400)
    expect(panel).to_be_in_viewport(ratio=1)
    page.mouse.move(5, 700)
    expect(panel).to_have_count(0)
    assert opened.errors == []


def test_by_keyboard_a_tick_shows_its_check_and_enter_goes_into_it(visit):
    page = visit("receipts.html").page
    # As in a theme that does not let Tab come to code.
    bare = "all => all.map(pre => pre.removeAttribute('tabindex'))"
    page.eval_on_selector_all("pre", bare)
    focus_with_tab(page, "claim-odd-numbers")
    panel = page.locator(PANEL)
    expect(panel).to_be_visible()
    # Passing by costs one press of Tab.
    page.keyboard.press("Tab")
    expect(page.locator("#claim-one-number")).to_be_focused()
    expect(panel).to_have_count(1)
    expect(panel).to_contain_text("squares.sum().shape")
    page.keyboard.press("Enter")
    expect(panel.locator("pre")).to_be_focused()
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(page.locator("#claim-one-number")).to_be_focused()


def test_from_the_panel_to_the_check_and_back_to_the_sentence(visit):
    page = visit("receipts.html").page
    focus_with_tab(page, "claim-odd-numbers")
    page.keyboard.press("Enter")
    expect(page.locator(PANEL).locator("pre")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_text("The check on this page")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(PANEL)).to_have_count(0)
    check = page.locator("#check-odd-numbers")
    expect(check).to_be_visible()
    expect(check).to_be_in_viewport()
    back = page.locator(".receipt-note a[href='#claim-odd-numbers-2']")
    expect(back).to_contain_text("Squares never shrink")
    back.click()
    assert page.url.endswith("#claim-odd-numbers-2")


def test_a_tick_that_names_several_checks_shows_them_all(visit):
    opened = visit("receipts.html")
    page = opened.page
    tick = page.locator("#claim-odd-numbers-2")
    name = "Checked: Squares never shrink; each grows by an odd number. Their sum is"
    expect(tick).to_have_attribute("aria-label", f"{name} one number. (3 checks)")
    tick.click()
    page.mouse.move(5, 700)
    page.wait_for_timeout(400)
    panel = page.locator(PANEL)
    expect(panel.locator("pre")).to_have_count(2)
    page.mouse.click(5, 700)
    expect(panel).to_have_count(0)
    tick.click()
    expect(panel).to_contain_text("squares[1:] == odd.cumsum()")
    expect(panel).to_contain_text("squares.sum().shape")
    panel.get_by_role("link", name="one number").click()
    expect(panel).to_have_count(0)
    assert page.url.endswith("#check-one-number")
    assert opened.errors == []


def test_on_a_phone_a_press_opens_a_sheet_within_the_screen(visit):
    opened = visit("receipts.html", width=390)
    page = opened.page
    page.tap("#claim-odd-numbers-2")
    panel = page.locator(PANEL)
    expect(panel).to_be_visible()
    box = panel.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert box["y"] + box["height"] <= 844
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    tick = page.locator("#claim-odd-numbers-2").bounding_box()
    assert min(tick["width"], tick["height"]) >= 24
    page.get_by_role("button", name="Close").tap()
    expect(panel).to_have_count(0)
    assert opened.errors == []


def test_a_check_that_is_not_folded_tells_what_it_holds_to_who_comes_by_a_tick(visit):
    page = visit("receipts.html", scripts=False).page
    note = page.locator(".receipt-note", has_text="A sum over one axis")
    expect(note).to_be_hidden()
    page.click("#claim-one-number")
    expect(note).to_be_visible()
    note.locator("a").first.click()
    assert page.url.endswith("#claim-one-number")


def test_without_scripts_a_tick_is_a_link_that_unfolds_the_check(visit):
    page = visit("receipts.html", scripts=False).page
    check = page.locator("#check-odd-numbers")
    assert not check.is_visible()
    page.click("#claim-odd-numbers")
    assert page.url.endswith("#check-odd-numbers")
    expect(check).to_be_visible()


def focus_with_tab(page: Page, place: str) -> None:
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == place:
            return
    raise AssertionError(f"Tab never comes to {place}")
