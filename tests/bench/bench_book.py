"""What building the book costs, as ratios to plain MyST-NB in the same run.

    python -m tests.bench.bench_book [--rounds N] [--under numbers/]

The contenders build the same chapters: this book's builder, and MyST-NB alone with
`sphinx-build -j auto`.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from executed_book.model import Chapter
from executed_book.reading.pages import read_pages
from executed_book.settings import Settings

ROOT = Path(__file__).parents[2]
#: Where this variable names a backend of Matplotlib's, a kernel shows no figure.
ENVIRONMENT = {**os.environ, "JAX_PLATFORMS": "cpu"}
ENVIRONMENT.pop("MPLBACKEND", None)

PLAIN_CONF = """\
project = "Plain"
extensions = ["myst_nb", "sphinx_design"]
html_theme = "sphinx_book_theme"
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
nb_execution_mode = {mode!r}
nb_execution_timeout = 300
nb_execution_allow_errors = True
suppress_warnings = ["myst", "ref", "toc", "mystnb", "docutils", "misc"]
"""


def run(*command: str, cwd: Path) -> float:
    """Seconds that a command takes; it has to succeed."""
    began = time.perf_counter()
    done = subprocess.run(
        command, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return time.perf_counter() - began


def plain_page(chapter: Chapter) -> str:
    """The chapter for MyST-NB alone: without our roles and options."""
    text = re.sub(r"\{(?:value|measured)\}(`[^`]+`)", r"\1", chapter.text)
    text = re.sub(r"^:(?:raises|warns|alt):.*\n", "", text, flags=re.M)
    return re.sub(r"^:tags:.*\n", "", text, flags=re.M)


def prepare(folder: Path, chapters: list[Chapter], conf: str, plain: bool) -> None:
    """A project folder with the chapters and a page that lists them."""
    for chapter in chapters:
        path = folder / "docs" / f"{chapter.docname}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(plain_page(chapter) if plain else chapter.text)
    names = "\n".join(chapter.docname for chapter in chapters)
    (folder / "docs" / "contents.md").write_text(
        f"# Contents\n\n```{{toctree}}\n{names}\n```\n"
    )
    shutil.copytree(ROOT / "examples", folder / "examples")  # chapters show them
    (folder / "conf").mkdir()
    (folder / "conf" / "conf.py").write_text(conf + "root_doc = 'contents'\n")


OUR_CONF = """\
project = "Ours"
extensions = ["myst_nb", "sphinx_design", "executed_book"]
html_theme = "sphinx_book_theme"
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
suppress_warnings = ["myst", "ref", "toc", "docutils", "misc.highlighting_failure"]
"""


def ours(folder: Path) -> float:
    return run(sys.executable, "-m", "executed_book", "build", cwd=folder)


def theirs(folder: Path, jobs: str = "auto") -> float:
    command = f"-m sphinx -q -j {jobs} -c conf -d _build/doctrees docs _build/html"
    return run(sys.executable, *command.split(), cwd=folder)


def change_one(folder: Path, docname: str) -> None:
    path = folder / "docs" / f"{docname}.md"
    text = path.read_text()
    at = text.index("```\n", text.index("```{code-cell}"))
    path.write_text(f"{text[:at]}changed = {time.time_ns()}\n{text[at:]}")


FORCE, CACHED = (PLAIN_CONF.format(mode=mode) for mode in ("force", "cache"))


def report(name: str, times: dict[str, list[float]], base: str) -> None:
    """One line a contender: seconds, and the ratio to the base, median of rounds."""
    print(f"\n{name}")
    for who, seconds in times.items():
        ratios = [s / b for s, b in zip(seconds, times[base], strict=True)]
        spread = f"{min(ratios):.2f}-{max(ratios):.2f}"
        print(
            f"  {who:<32} {statistics.median(seconds):7.1f} s"
            f"   {statistics.median(ratios):5.2f} x {base}   ({spread})"
        )


def rounds_of(contenders: dict[str, Callable[[], float]], rounds: int) -> dict:
    times: dict[str, list[float]] = {who: [] for who in contenders}
    for _ in range(rounds):
        for who, contender in contenders.items():
            times[who].append(contender())
    return times


def in_fresh_folder(chapters, conf, plain, build) -> float:
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name), chapters, conf, plain)
        return build(Path(name))


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
    compare_cold(chapters, options.rounds)
    compare_again(chapters, options.rounds)


def compare_cold(chapters: list[Chapter], rounds: int) -> None:
    """All chapters, nothing kept."""
    cold = {
        "MyST-NB": lambda: in_fresh_folder(chapters, FORCE, True, theirs),
        "this builder": lambda: in_fresh_folder(chapters, OUR_CONF, False, ours),
    }
    report("Cold build", rounds_of(cold, rounds), "MyST-NB")


def compare_again(chapters: list[Chapter], rounds: int) -> None:
    """The same chapters once more, first unchanged, then with one of them changed."""
    mine, other = Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp())
    try:
        prepare(mine, chapters, OUR_CONF, False)
        prepare(other, chapters, CACHED, True)
        # In parallel, its cache can fail while it is made (jupyter-cache's SQLite).
        ours(mine), theirs(other, jobs="1")
        again = {"MyST-NB": lambda: theirs(other), "this builder": lambda: ours(mine)}
        report("Nothing changed", rounds_of(again, rounds), "MyST-NB")
        name = chapters[-1].docname

        def changed(folder: Path, build: Callable[[Path], float]) -> float:
            change_one(folder, name)
            return build(folder)

        one = {
            "MyST-NB": lambda: changed(other, theirs),
            "this builder": lambda: changed(mine, ours),
        }
        report(f"One chapter changed ({name})", rounds_of(one, rounds), "MyST-NB")
    finally:
        shutil.rmtree(mine)
        shutil.rmtree(other)


if __name__ == "__main__":
    main()
