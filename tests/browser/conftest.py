"""A real browser, and a small site that holds every kind of thing a page can."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, Page, sync_playwright

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
QUIET = (
    *("--disable-background-networking", "--disable-component-update"),
    *("--disable-gpu", "--disable-sync", "--no-first-run", "--no-sandbox"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("browser")


@dataclass
class Visit:
    """A page that was opened, with what it asked for and what went wrong."""

    page: Page
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, page: Page) -> Visit:
        visit = cls(page)
        page.on("request", lambda request: visit.requests.append(request.url))
        page.on("requestfailed", lambda request: visit.errors.append(request.url))
        page.on("pageerror", lambda error: visit.errors.append(str(error)))
        page.on("console", visit._console)
        return visit

    def _console(self, message) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)


# Whether a text stands out depends on its own style and on what is painted behind it.
# A page has thousands of texts, and axe takes long for each: it looks at one of those
# that are equal in both.
ONE_OF_EACH_LOOK = """() => {
  const marked = document.querySelectorAll("[data-look]");
  marked.forEach((element) => element.removeAttribute("data-look"));
  const grounds = new Map([[null, ""]]), looks = new Set();
  const ground = (element) => {
    if (!grounds.has(element)) {
      const style = getComputedStyle(element);
      const placed = style.position === "static" ? "" : element.className;
      const own = [style.backgroundColor, style.backgroundImage, style.opacity, placed];
      const plain = own.join() === "rgba(0, 0, 0, 0),none,1,";
      grounds.set(element, ground(element.parentElement) + (plain ? "" : own.join()));
    }
    return grounds.get(element);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode, element = text.parentElement;
    if (!text.data.trim() || !element.checkVisibility()) continue;
    const { color, fontSize, fontWeight, textShadow } = getComputedStyle(element);
    const look = [color, fontSize, fontWeight, textShadow, ground(element)].join("|");
    if (!looks.has(look)) element.setAttribute("data-look", "");
    looks.add(look);
  }
}"""
OF_LOOKS = (
    "axe.configure({ rules: [{ id: 'color-contrast', selector: '[data-look]' }] })"
)


def axe(page: Page, **options: object) -> list[dict[str, Any]]:
    """What axe finds wrong with a page as it looks now."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
        page.evaluate(OF_LOOKS)
    page.evaluate(ONE_OF_EACH_LOOK)
    run = "(options) => axe.run({ resultTypes: ['violations'], ...options })"
    return page.evaluate(run, options)["violations"]


def faint(page: Page) -> list[str]:
    """The texts whose contrast with what is behind them axe finds too low."""
    found = axe(page, runOnly=["color-contrast"])
    return [node["html"] for each in found for node in each["nodes"]]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium; without one the test is skipped, but never in CI."""
    installed = next(filter(None, map(shutil.which, NAMES)), None)
    with sync_playwright() as playwright:
        program = installed or playwright.chromium.executable_path
        if not Path(program).exists():
            if os.environ.get("CI"):
                pytest.fail(f"no browser here: none of {', '.join(NAMES)}")
            pytest.skip("no Chromium is installed")
        browser = playwright.chromium.launch(executable_path=program, args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished site, built from `book` as the book itself is.

    It is built once for all processes that run tests.
    """
    shared = tmp_path_factory.getbasetemp()
    work = (shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared) / "site"
    work.mkdir(exist_ok=True)
    with (work / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (work / "html").exists():
            build(work)
    return work / "html"


def build(work: Path) -> None:
    command = [sys.executable, "-m", "executed_book", "build"]
    command += ["--source", str(HERE / "book"), "--config", str(ROOT / "conf")]
    command += ["--cache", str(work / "cache"), "--output", str(work / "html")]
    command += ["-D", "executed_book_outputs=", "-D", "executed_book_programs="]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr


@pytest.fixture(scope="module")
def everything(browser: Browser, site: Path) -> Iterator[Page]:
    """A page of everything, opened once for the tests that only look at it."""
    page = browser.new_page(
        viewport={"width": 1280, "height": 844}, reduced_motion="reduce"
    )
    page.goto((site / "everything.html").as_uri())
    yield page
    page.close()


@pytest.fixture
def visit(
    browser: Browser, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Visit]]:
    """Open a page of the site from its folder, as a reader without a network would.

    Or another page, by its whole address.
    """
    contexts = []

    def _visit(
        name: str,
        *,
        width: int = 1280,
        height: int = 844,
        theme: str = "light",
        scripts: bool = True,
        **context_options: Any,
    ) -> Visit:
        options = {"offline": True, "reduced_motion": "reduce", **context_options}
        context = browser.new_context(
            color_scheme=theme,
            has_touch=width < 600,
            java_script_enabled=scripts,
            viewport={"width": width, "height": height},
            **options,
        )
        contexts.append(context)
        context.set_default_timeout(10_000)
        visit = Visit.of(context.new_page())
        site = "" if "://" in name else f"{request.getfixturevalue('site').as_uri()}/"
        visit.page.goto(site + name)
        return visit

    yield _visit
    for context in contexts:
        context.close()
