"""How many of the committed questions find their section within the first three."""

from __future__ import annotations

from playwright.sync_api import sync_playwright

from tests.browser.conftest import NAMES, QUIET
from tests.site.conftest import SITE
from tests.site.questions import misses, questions


def main() -> None:
    """Ask all questions of the finished site, read from disk."""
    import shutil

    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None or not (SITE / "search.html").exists():
        print("search: no browser or no built site here, nothing measured")
        return
    asked = questions()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(QUIET))
        page = browser.new_page()
        page.goto((SITE / "search.html").as_uri() + "?q=jit")
        page.locator(".search-page .search-found li").first.wait_for(timeout=120_000)
        page.evaluate("() => { window.engine = new Finder(); }")
        missed = misses(page, asked)
        browser.close()
    found = len(asked) - len(missed)
    print(f"search: {found} of {len(asked)} questions, {found / len(asked):.1%}")
    for line in missed:
        print(f"  missed {line}")


if __name__ == "__main__":
    main()
