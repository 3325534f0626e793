"""A book that nobody here wrote, as it is: what is built, what is refused, how long.

    python -m tests.bench.other_book REPOSITORY CONF --source FOLDER --keep FILE.json

The book is what its repository holds at HEAD. Everything is run by the Python that
`--python` names, in which `executed_book` and what the book imports are installed. The
file `CONF` is its `conf.py` for both builders. Each of them builds all pages from
nothing, then once more with nothing changed, then from the kept runs alone, in turns,
so that a busy machine slows both. Our builder publishes nothing while a page fails, so
its first build ends with a second command that leaves out the pages it refused. The CPU
seconds are those of all processes that a command starts; load changes them less.

Then the programs of the pages are run one by one. Those of the quickest pages come
first, until `--verify-seconds` have passed.
"""

import argparse
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.examples.figures import text_of

ROOT = Path(__file__).parents[2]
BUILDERS = ("executed_book", "MyST-NB")

OURS = """
extensions = [*extensions, "executed_book"]
executed_book_programs = "../verdicts"
"""
THEIRS = """
nb_execution_mode = "cache"
nb_execution_cache_path = {cache!r}
"""

#: Where this variable names a backend of Matplotlib's, a kernel shows no figure.
ENVIRONMENT = {**os.environ, "JAX_PLATFORMS": "cpu"}
ENVIRONMENT.pop("MPLBACKEND", None)

#: Makes the data base of jupyter-cache, which a parallel build fails to do.
MAKE_CACHE = """\
import sys
from jupyter_cache import get_cache
get_cache(sys.argv[1]).list_cache_records()
"""

VERSIONS = """\
import json, platform
from importlib.metadata import PackageNotFoundError, version
found = {"python": platform.python_version()}
for name in ("executed-book", "myst-nb", "sphinx", "numpy", "jax"):
    try:
        found[name] = version(name)
    except PackageNotFoundError:
        pass
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Said:
    """What a command said, how it ended, and how long it took (seconds)."""

    text: str
    status: int
    seconds: float
    cpu: float = 0.0


@dataclass(frozen=True)
class Place:
    """A copy of the book for one builder, with its `conf.py`."""

    folder: Path
    source: str
    config: str
    python: str

    @property
    def conf(self) -> Path:
        return self.folder / self.config / "conf.py"

    def run(self, *arguments: str, limit: float = 7200) -> Said:
        """Run Python here; interrupted once it has taken `limit` seconds."""
        began, used = time.perf_counter(), cpu_of_children()
        running = subprocess.Popen(
            [self.python, *arguments],
            cwd=self.folder,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            text, _ = running.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGINT)
            text, _ = running.communicate(timeout=60)
        seconds, cpu = time.perf_counter() - began, cpu_of_children() - used
        return Said(text, running.returncode, seconds, cpu)

    def ours(self, command: str, *options: str, **limits: float) -> Said:
        tool = ("-m", "executed_book", command, "--source", self.source)
        return self.run(*tool, "--config", self.config, *options, **limits)

    def theirs(self, jobs: str = "auto") -> Said:
        options = ("-j", jobs, "-c", self.config, "-d", "_build/doctrees")
        return self.run("-m", "sphinx", *options, self.source, "_build/html")

    def forget_pages(self) -> None:
        """Delete all that was built but the kept runs."""
        for path in (self.folder / "_build").iterdir():
            if path.name not in ("cache", "jupyter-cache"):
                shutil.rmtree(path)


def cpu_of_children() -> float:
    """The CPU seconds of all commands that have ended, with those that they started."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def git(repository: Path, *arguments: str) -> str:
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.check_output(command, text=True).strip()


def place(options: argparse.Namespace, folder: Path, more: str) -> Place:
    """The book as its repository holds it, with what `conf.py` says besides."""
    folder.mkdir(parents=True)
    archive = folder / "book.tar"
    git(options.repository, "archive", "-o", str(archive), options.commit)
    shutil.unpack_archive(archive, folder, filter="data")
    archive.unlink()
    made = Place(folder, options.source, options.config, options.python)
    made.conf.parent.mkdir(exist_ok=True)
    text = options.conf.read_text("utf-8") + more
    made.conf.write_text(text + not_executed(options.leave_out))
    return made


def not_executed(docnames: Iterable[str]) -> str:
    """What `conf.py` says of pages that are shown and not run."""
    return f"nb_execution_excludepatterns = {[f'{name}.*' for name in docnames]!r}\n"


def refused(said: Said, source: str) -> dict[str, str]:
    """The pages that our builder refused, each with why.

    >>> said = "book/a.md:9: cell 3 raised E; not checked: cell 4\\n    Traceback"
    >>> refused(Said(said, 1, 0.0), "book")
    {'a': 'cell 3 raised E'}
    """
    line = re.compile(rf"^{re.escape(source)}/(\S+)\.(?:md|ipynb):\d+: (.*)$", re.M)
    found: dict[str, str] = {}
    for docname, why in line.findall(said.text):
        found.setdefault(docname, why.partition(";")[0])
    return found


def failed_there(said: Said, folder: Path, source: str) -> list[str]:
    start = re.escape(f"{(folder / source).resolve()}/")
    # A path may be broken by the color of the warning.
    line = re.compile(
        rf"^(?:\x1b\S*m)?{start}(\S+?)\.(?:md|ipynb):.*xecut.* failed", re.M
    )
    return sorted(set(line.findall(said.text)))


def timed(options: argparse.Namespace, folder: Path) -> tuple[dict[str, Any], Place]:
    """Both builders, in turns; what they refused, and how long they took."""
    mine = place(options, folder / "ours", OURS)
    other_cache = str(folder / "theirs" / "_build" / "jupyter-cache")
    other = place(options, folder / "theirs", THEIRS.format(cache=other_cache))
    must(other.run("-c", MAKE_CACHE, other_cache))
    seconds: dict[str, dict[str, float]] = {}
    cpu: dict[str, dict[str, float]] = {}
    loads: list[float] = []

    def note(what: str, ours: list[Said], theirs: Said) -> None:
        for who, said in zip(BUILDERS, (ours, [theirs]), strict=True):
            wall, used = sum(s.seconds for s in said), sum(s.cpu for s in said)
            seconds.setdefault(what, {})[who] = round(wall, 1)
            cpu.setdefault(what, {})[who] = round(used, 1)
        loads.append(round(os.getloadavg()[0], 1))
        print(what, seconds[what], "CPU", cpu[what], "load", loads[-1], flush=True)

    first = mine.ours("build")
    print(first.text, flush=True)
    pages = refused(first, options.source)
    commands = [first if pages else must(first)]
    if pages:
        with mine.conf.open("a") as conf:
            conf.write(not_executed([*options.leave_out, *pages]))
        commands.append(must(mine.ours("build")))
    theirs = must(other.theirs())
    print(theirs.text, flush=True)
    note("first build", commands, theirs)
    note("nothing changed", [must(mine.ours("build"))], must(other.theirs()))
    mine.forget_pages()
    other.forget_pages()
    note("from kept runs", [must(mine.ours("build"))], must(other.theirs()))
    count = re.search(r"(\d+) chapters?: .* \((\d+) cells?\)", first.text)
    assert count is not None, first.text
    sites = dict(zip(BUILDERS, (mine.folder, other.folder), strict=True))
    return {
        "executed pages": int(count[1]),
        "cells": int(count[2]),
        "left out": options.leave_out,
        "refused": pages,
        "failed in MyST-NB": failed_there(theirs, other.folder, options.source),
        "seconds": seconds,
        "CPU seconds": cpu,
        "seconds of our first commands": [round(one.seconds, 1) for one in commands],
        "load": loads,
        "pages": {
            name: len(built(folder, options.source)) for name, folder in sites.items()
        },
        "figures": {
            name: figures(folder, without=pages) for name, folder in sites.items()
        },
        "seconds of pages": seconds_of_pages(first, pages),
    }, mine


def seconds_of_pages(said: Said, without: Iterable[str] = ()) -> dict[str, float]:
    """How long each page ran that was not refused."""
    line = re.compile(r"^  (\S+) +\d+/\d+ cells +([\d.]+) s$", re.M)
    return {n: float(s) for n, s in line.findall(said.text) if n not in without}


def must(said: Said) -> Said:
    if said.status:
        raise SystemExit(said.text)
    return said


def built(folder: Path, source: str) -> list[str]:
    """The pages of the book that the site has."""
    suffixes = {".md", ".ipynb", ".rst"}
    names = [
        path.relative_to(folder / source).with_suffix("")
        for path in (folder / source).rglob("*")
        if path.suffix in suffixes
    ]
    return [str(n) for n in names if (folder / "_build/html" / f"{n}.html").exists()]


def figures(folder: Path, without: Iterable[str] = ()) -> int:
    """How many images the pages of the site show, but those on some pages."""
    site = folder / "_build/html"
    pages = {*site.rglob("*.html")} - {site / f"{name}.html" for name in without}
    return sum(path.read_text("utf-8").count("<img ") for path in pages)


def offered(mine: Place, docnames: Iterable[str]) -> dict[str, int]:
    """How many programs each page offers once the site was built with the verdicts."""
    must(mine.ours("build"))
    pages = {name: mine.folder / f"_build/html/{name}.html" for name in docnames}
    box = 'class="program-box"'
    return {name: path.read_text("utf-8").count(box) for name, path in pages.items()}


#: What `verify` says at its end, with the words that this tool keeps.
SUMMARY = re.compile(
    r"\d+ programs?: (\d+) held, (\d+) ran and vary, \d+ of these lengthened,"
    r" (\d+) need files \((\d+) hold beside them\), (\d+) failed$",
    re.MULTILINE,
)
WORDS = ("held", "varies", "needs files", "hold beside their files", "differs")


def verified(mine: Place, pages: dict[str, float], limit: float) -> dict[str, Any]:
    """Run the programs of the quickest pages within the limit; what they gave."""
    give_up = time.monotonic() + limit
    found: dict[str, dict[str, int]] = {}
    for docname in sorted(pages, key=pages.__getitem__):
        left = give_up - time.monotonic()
        if left <= 0:
            break
        said = mine.ours("verify", "--only", docname, limit=left)
        if said.text.startswith("0 chapters"):  # a page that is not executed
            continue
        if (summary := SUMMARY.search(said.text)) and said.status in (0, 1):
            print(docname, summary[0], flush=True)
            found[docname] = dict(zip(WORDS, map(int, summary.groups()), strict=True))
        else:
            print(docname, said.text, flush=True)
    boxes = offered(mine, found)
    for docname, words in found.items():
        good = words["held"] + words["varies"] + words["hold beside their files"]
        if boxes[docname] != good:
            raise SystemExit(f"{docname}: {boxes[docname]} are offered, {good} good")
    return {
        "pages": len(found),
        "of": len(pages),
        "seconds": round(limit - (give_up - time.monotonic())),
        **{word: sum(words[word] for words in found.values()) for word in WORDS},
        "offered": sum(boxes.values()),
    }


def table(books: dict[str, dict[str, Any]]) -> str:
    """All books that are kept, as comma-separated values, one column for each."""
    columns = [column(found) for found in books.values()]
    rows = [[name, *(each[name] for each in columns)] for name in columns[0]]
    return text_of([["", *books], *rows])


def column(found: dict[str, Any]) -> dict[str, Any]:
    """What the table says of one book."""
    programs, (ours, theirs) = found["programs"], BUILDERS
    said = {
        "commit": found["commit"][:8],
        "pages in the site": found["pages"][ours],
        "pages in MyST-NB's site": found["pages"][theirs],
        **{f"figures, {who}": found["figures"][who] for who in BUILDERS},
        "pages that are executed": found["executed pages"],
        "left out, since they take long": len(found["left out"]),
        "refused": len(found["refused"]),
        "failed in MyST-NB": len(found["failed in MyST-NB"]),
        "cells": found["cells"],
    }
    for what, wall in found["seconds"].items():
        for who, cpu in found["CPU seconds"][what].items():
            said[f"{what}, CPU seconds (wall seconds), {who}"] = f"{cpu} ({wall[who]})"
    return {
        **said,
        "load meanwhile": f"{min(found['load'])} to {max(found['load'])}",
        "pages whose programs were run": f"{programs['pages']} of {programs['of']}",
        "programs that held": programs["held"],
        "programs that vary": programs["varies"],
        "programs that need files": programs["needs files"],
        "programs that differ": programs["differs"],
        "programs that name the files they need": programs["hold beside their files"],
        "cells that offer their program": programs["offered"],
        "run on": found["date"],
        "with MyST-NB": found["versions"]["myst-nb"],
        "with Sphinx": found["versions"]["sphinx"],
    }


def why_refused(books: dict[str, dict[str, Any]]) -> str:
    """Each page that was refused: its book, its name, why, and what MyST-NB did."""
    rows = [["book", "page", "why", "in MyST-NB"]]
    for book, found in books.items():
        for docname, why in found["refused"].items():
            there = "failed" if docname in found["failed in MyST-NB"] else "built"
            rows.append([book, docname, why, there])
    return text_of(rows)


def keep(path: Path, found: dict[str, Any]) -> None:
    """Keep what was found of one book, and write the tables of all anew."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n")
    for name, text in tables(path.parent).items():
        (path.parent / name).write_text(text)


def tables(folder: Path) -> dict[str, str]:
    """The tables of all books that are kept in a folder, by their files' names."""
    kept = [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]
    books = {found["title"]: found for found in kept}
    return {"books.csv": table(books), "refused.csv": why_refused(books)}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("repository", type=Path, help="of git, may be bare")
    parser.add_argument("conf", type=Path, help="the conf.py for both builders")
    parser.add_argument("--title", required=True)
    parser.add_argument("--source", default="docs", help="the folder with the pages")
    parser.add_argument("--config", default="conf", help="where conf.py goes")
    parser.add_argument("--python", default="python", help="of the environment")
    parser.add_argument(
        "--leave-out", nargs="*", default=[], help="pages that neither executes"
    )
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--verify-seconds", type=float, default=1500)
    parser.add_argument("--keep", type=Path, required=True)
    options = parser.parse_args(arguments)
    options.commit = git(options.repository, "rev-parse", options.commit)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        found, mine = timed(options, Path(name))
        versions = json.loads(must(mine.run("-c", VERSIONS)).text)
        pages = found.pop("seconds of pages")
        about = {
            "title": options.title,
            "commit": options.commit,
            "date": time.strftime("%Y-%m-%d"),
            "cores": os.cpu_count(),
            "versions": versions,
            "executed_book at": git(ROOT, "rev-parse", "HEAD"),
        }
        programs = verified(mine, pages, options.verify_seconds)
        keep(options.keep, {**about, **found, "programs": programs})
    print(options.keep.with_name("books.csv").read_text())


if __name__ == "__main__":
    main()
