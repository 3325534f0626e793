"""What building the book costs, as ratios to plain MyST-NB in the same run.

    python -m tests.bench.bench_book [--rounds N] [--under numbers/]

The contenders build the same chapters: this book's builder, and MyST-NB alone with
`sphinx-build -j auto`.
"""

import argparse
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from executed_book.model import Chapter
from executed_book.reading.pages import read_pages
from executed_book.settings import Settings

from .other_book import ROOT, Place, must

CONF = """\
extensions = ["myst_nb", "sphinx_design"]
html_theme = "sphinx_book_theme"
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
suppress_warnings = ["myst", "ref", "toc", "mystnb", "docutils", "misc"]
root_doc = "contents"
"""
OURS = f"{CONF}extensions.append('executed_book')\n"
THEIRS = f"{CONF}nb_execution_timeout = 300\nnb_execution_allow_errors = True\n"
FORCE, CACHE = (
    f"{THEIRS}nb_execution_mode = {mode!r}\n" for mode in ("force", "cache")
)


def ours(book: Place) -> float:
    return must(book.ours("build")).seconds


def theirs(book: Place, jobs: str = "auto") -> float:
    return must(book.theirs(jobs)).seconds


def plain_page(text: str) -> str:
    """A chapter for MyST-NB alone: without our roles and options."""
    text = re.sub(r"\{(?:value|measured)\}(`[^`]+`)", r"\1", text)
    return re.sub(r"^:(?:raises|warns|alt|tags):.*\n", "", text, flags=re.M)


def prepared(folder: Path, chapters: list[Chapter], conf: str) -> Place:
    for chapter in chapters:
        path = folder / "docs" / f"{chapter.docname}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(chapter.text if conf == OURS else plain_page(chapter.text))
    names = "\n".join(chapter.docname for chapter in chapters)
    contents = f"# Contents\n\n```{{toctree}}\n{names}\n```\n"
    (folder / "docs" / "contents.md").write_text(contents)
    shutil.copytree(ROOT / "examples", folder / "examples")  # chapters show them
    book = Place(folder, "docs", "conf", sys.executable)
    book.conf.parent.mkdir()
    book.conf.write_text(conf)
    return book


def change(path: Path) -> None:
    """Give the first cell of a page a line that it never had."""
    text = path.read_text()
    at = text.index("```\n", text.index("```{code-cell}"))
    path.write_text(f"{text[:at]}changed = {time.time_ns()}\n{text[at:]}")


def compare(name: str, rounds: int, **contenders: Callable[[], float]) -> None:
    """Print medians for each contender: seconds, and the ratio to MyST-NB."""
    print(f"\n{name}")
    times: dict[str, list[float]] = {who: [] for who in contenders}
    for _ in range(rounds):
        for who, build in contenders.items():
            times[who].append(build())
    for who, seconds in times.items():
        ratios = [s / b for s, b in zip(seconds, times["theirs"], strict=True)]
        print(
            f"  {'MyST-NB' if who == 'theirs' else 'this builder':<14}"
            f" {statistics.median(seconds):7.1f} s   {statistics.median(ratios):5.2f}"
            f" x MyST-NB   ({min(ratios):.2f}-{max(ratios):.2f})"
        )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--under", default="", help="only chapters of this folder")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="of a book")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as cache:
        found = [r.chapter for r in read_pages(Settings(options.docs, Path(cache)))]
    chapters = [c for c in found if c and c.docname.startswith(options.under)]
    print(f"{len(chapters)} chapters, {sum(len(c.cells) for c in chapters)} cells")

    def cold(conf: str, build: Callable[[Place], float]) -> float:
        with tempfile.TemporaryDirectory() as name:
            return build(prepared(Path(name), chapters, conf))

    compare(
        *("Cold build", options.rounds),
        theirs=lambda: cold(FORCE, theirs),
        ours=lambda: cold(OURS, ours),
    )
    with tempfile.TemporaryDirectory() as name:
        mine = prepared(Path(name, "ours"), chapters, OURS)
        other = prepared(Path(name, "theirs"), chapters, CACHE)
        # In parallel, its cache can fail while it is made (jupyter-cache's SQLite).
        ours(mine), theirs(other, jobs="1")
        again = {"theirs": lambda: theirs(other), "ours": lambda: ours(mine)}
        compare("Nothing changed", options.rounds, **again)
        page = f"docs/{chapters[-1].docname}.md"
        compare(
            *(f"One chapter changed ({page})", options.rounds),
            theirs=lambda: change(other.folder / page) or theirs(other),
            ours=lambda: change(mine.folder / page) or ours(mine),
        )


if __name__ == "__main__":
    main()
