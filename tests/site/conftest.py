"""The book's finished site, in a real browser: the session `site` runs these tests."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from ..browser.conftest import browser
from ..serving import serving

__all__ = ["browser"]

HERE = Path(__file__).parent
SITE = Path(os.environ.get("BOOK_SITE", HERE.parents[1] / "_build" / "html")).resolve()
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
PAGES = [page for page in PAGES if not page.startswith("_")]
MOVED = [page for page in PAGES if 'http-equiv="refresh"' in (SITE / page).read_text()]
PAGES = [page for page in PAGES if page not in MOVED]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("site")


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Where the site is served, as a web server would."""
    assert (SITE / "index.html").exists(), "no site: `python3 noxfile.py -s docs` first"
    with serving(SITE) as address:
        yield address


@pytest.fixture(scope="session")
def finder(browser: Browser, address: str) -> Iterator[Page]:
    """A page on which the search is ready, as `window.engine`."""
    page = browser.new_page()
    page.goto(address + "search.html?q=jit")
    page.locator(".search-page .search-found li").first.wait_for()
    page.evaluate("() => { window.engine = new Finder(); }")
    yield page
    page.close()
