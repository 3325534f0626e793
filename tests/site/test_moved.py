"""Old addresses lead on, from a server below a path and from disk."""

import pytest
from playwright.sync_api import Browser

from .conftest import MOVED, SITE


def test_old_addresses_are_there_and_nobody_finds_them():
    assert len(MOVED) > 20
    index = (SITE / "_static" / "search-index.js").read_text("utf-8")
    assert [page for page in MOVED if f'["{page[:-5]}"' in index] == []


@pytest.mark.parametrize("from_disk", [True, False])
def test_an_old_address_keeps_its_anchor(browser: Browser, address: str, from_disk):
    page = browser.new_page()
    root = SITE.as_uri() + "/" if from_disk else address
    page.goto(root + "numpy/random.html#splitting")
    page.wait_for_url(root + "numbers/random.html#splitting")
    assert page.locator("#splitting").count() == 1
    page.close()
