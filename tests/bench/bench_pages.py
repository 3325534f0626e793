"""What twelve pages cost on a slow phone: bytes, requests, when they show, what blocks.

The phone is Lighthouse's: a processor four times slower than this one, and a network of
1.6 megabits with 150 milliseconds to an answer. Sites are compared in alternation:
`python -m tests.bench.bench_pages _build/html OTHER`.
"""

import argparse
import gzip
import shutil
import statistics
from pathlib import Path

from playwright.sync_api import Browser, CDPSession, sync_playwright

from tests.browser.conftest import NAMES, QUIET
from tests.serving import Quiet, serving
from tests.site.conftest import SITE

PAGES = (
    "index",
    "cheat-sheet",
    "learn/ten-minutes",
    "numbers/arrays",
    "numbers/random",
    "tracing/retracing",
    "tracing/xla",
    "derivatives/derivatives",
    "composing/vectorization",
    "devices/sharding",
    "errors/tracing",
    "instruments/lens",
)
NETWORK = {
    "offline": False,
    "latency": 150 * 3.75,
    "downloadThroughput": 1.6e6 * 0.9 / 8,
    "uploadThroughput": 750e3 * 0.9 / 8,
}
PHONE = {"width": 412, "height": 823}

WATCH = """
window.seen = { lcp: 0, tasks: [] };
new PerformanceObserver((list) => { seen.lcp = list.getEntries().at(-1).startTime; })
  .observe({ type: "largest-contentful-paint", buffered: true });
new PerformanceObserver((list) => { seen.tasks.push(...list.getEntries()); })
  .observe({ type: "longtask", buffered: true });
"""
#: The largest paint, and what tasks take beyond 50 ms after the first paint, in ms.
COST = """() => {
  const first = performance.getEntriesByName("first-contentful-paint")[0].startTime;
  const after = seen.tasks.filter((task) => task.startTime + task.duration > first);
  const blocked = after.map((task) => task.duration - 50);
  return [seen.lcp, blocked.reduce((all, one) => all + one, 0)];
}"""


class Packing(Quiet):
    """A server that keeps connections and compresses texts, as a site's host does."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        body = path.read_bytes()
        self.send_response(200)
        if path.suffix in {".html", ".css", ".js", ".svg"}:
            body = gzip.compress(body)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def cost_of(browser: Browser, address: str) -> list[float]:
    """Kilobytes and requests of a page; its largest paint and blocked time in ms."""
    context = browser.new_context(viewport=PHONE, is_mobile=True, has_touch=True)
    page = context.new_page()
    page.set_default_timeout(120_000)
    devtools: CDPSession = context.new_cdp_session(page)
    sizes: list[float] = []
    devtools.on(
        "Network.loadingFinished", lambda e: sizes.append(e["encodedDataLength"])
    )
    devtools.send("Network.enable")
    devtools.send("Network.emulateNetworkConditions", NETWORK)
    devtools.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    page.add_init_script(WATCH)
    page.goto(address, wait_until="networkidle")
    page.wait_for_function("seen.lcp > 0")
    page.wait_for_timeout(1000)
    cost = [sum(sizes) / 1e3, len(sizes), *page.evaluate(COST)]
    context.close()
    return cost


def main() -> None:
    """Print the medians of each page for each site."""
    options = argparse.ArgumentParser()
    options.add_argument("sites", type=Path, nargs="*", default=[SITE])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--only", nargs="+", default=PAGES)
    asked = options.parse_args()
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None or not all((s / "index.html").exists() for s in asked.sites):
        print("pages: no browser or no built site here, nothing measured")
        return
    print(f"{'page':26}   KB  requests  largest paint s  blocked ms")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(QUIET))
        for name in asked.only:
            costs: dict[Path, list[list[float]]] = {site: [] for site in asked.sites}
            for _ in range(asked.rounds):
                for site in asked.sites:
                    with serving(site, Packing) as address:
                        costs[site].append(cost_of(browser, f"{address}{name}.html"))
            for several in costs.values():
                size, requests, paint, blocked = map(
                    statistics.median, zip(*several, strict=True)
                )
                print(
                    f"{name:26} {size:4.0f} {requests:9.0f} {paint / 1e3:16.2f}"
                    f" {blocked:11.0f}",
                    flush=True,
                )
        browser.close()


if __name__ == "__main__":
    main()
