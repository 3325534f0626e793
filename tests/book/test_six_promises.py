"""The six promises of a build, for each fault.

A fault is done to a book that was built. Whatever it is, the build touches nothing that
is not its own, the old site stands, one error says what is wrong, it ends soon and
leaves nothing behind, and the next build, without the fault, shows nothing stale. They
are kept for faulty pages as well, all at once: see `test_failures`.
"""

import hashlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from .conftest import TinyBook, copy_of, new_book, started_with

#: How long a build with a fault may take (seconds), also on a machine with much to do.
SOON = 600.0

#: Where a build may write: what it keeps, its work, its site.
ITS_OWN = ("cache", ".html-work", "html")


@dataclass(frozen=True)
class Fault:
    """What is done to the book, and what the build says and ends with.

    `number` is a signal that is sent once a cell runs, `soon` a limit in seconds.
    """

    do: Callable[[TinyBook], object]
    words: str
    status: int = 1
    problems: int = 1
    variables: dict[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    number: int = 0
    soon: float = SOON


def conf(text: str) -> Callable[[TinyBook], object]:
    return lambda book: book.configure(text)


def page(*cells: str) -> Callable[[TinyBook], object]:
    return lambda book: book.chapter("one", *cells)


def random_caches(book: TinyBook) -> None:
    book.chapter("right", "1")
    (book.cache / "programs").mkdir()
    (book.cache / "programs" / "right.txt").touch()
    for path in book.cache.rglob("*"):
        if path.is_file():
            path.write_bytes(NOISE)
    page("print(7 * 7)", "1 / 0")(book)


def random_record(book: TinyBook) -> None:
    """A file of outputs of the page that holds anything, for a device and a JAX."""
    path = book.root / "outputs" / "cells" / "nvidia-h100-0.1" / "one.txt"
    path.parent.mkdir(parents=True)
    path.write_bytes(NOISE)


def server_killed(book: TinyBook) -> None:
    book.chapter("w", KILL_SERVER)
    for name in "xyz":
        book.chapter(name, "import time\ntime.sleep(1)")


def write(name: str, content: bytes) -> Callable[[TinyBook], object]:
    return lambda book: (book.root / "docs" / name).write_bytes(content)


def deep_metadata(book: TinyBook) -> None:
    """A notebook whose metadata are nested as deep as no notebook needs."""
    cell = f'{{"cell_type": "code", "source": "1", "metadata": {{"x": {NESTED}}}}}'
    text = f'{{"nbformat": 4, "metadata": {{}}, "cells": [{cell}]}}'
    (book.root / "docs" / "deep.ipynb").write_text(text)


def links_into_itself(book: TinyBook) -> None:
    """Folders without end: each of two links doubles them at each of forty steps."""
    for name in ("again", "more"):
        (book.root / "docs" / name).symlink_to("../docs")


def without_docs(book: TinyBook) -> None:
    page(f"import shutil\nshutil.rmtree({str(book.root / 'docs')!r})")(book)


SLEEPS = page(
    "import subprocess, time\n"
    "subprocess.Popen(['sleep', '300'], start_new_session=True)\n"
    "open('begun', 'w').close()\ntime.sleep(1000)"
)
NOISE = random.Random(0).randbytes(300)
KILL_SERVER = """\
import os, signal
parent = open(f"/proc/{os.getppid()}/stat").read().rpartition(")")[2].split()[1]
os.kill(int(parent), signal.SIGKILL)"""
NESTED = "[" * 600 + "]" * 600
DEEP_OUTPUT = """\
from IPython.display import display
data = 1
for _ in range(600):
    data = [data]
display({"text/plain": "deep", "application/json": data}, raw=True)"""
REMOVES = """
import shutil
def remove(app):
    shutil.rmtree(app.outdir.parent)
    return []
def setup(app):
    app.connect("html-collect-pages", remove)"""
EXITS = "def setup(app):\n    app.connect('env-updated', lambda *_: exit(0))"
DEEP = "import sys\nsys.setrecursionlimit(10**9)\ndef f(n):\n    f(n + 1)\nf(0)"

FAULTS = {
    "a page that is a pipe": Fault(
        lambda book: os.mkfifo(book.root / "docs" / "pipe.md"),
        "docs/pipe.md:1: this has the name of a page but is not a file",
    ),
    "a path of bytes": Fault(
        write(os.fsdecode(b"\xe9.md"), b""), "its path is not UTF-8"
    ),
    "a link to no page": Fault(
        lambda book: book.index("one", "none"), "nonexisting document"
    ),
    "docs removed": Fault(without_docs, "this folder was removed during the build"),
    "no docs": Fault(
        lambda book: shutil.rmtree(book.root / "docs"), "docs: there is no such folder"
    ),
    "memory": Fault(
        page(DEEP),
        "docs/one.md:9: cell 1 held over 1 GB of memory",
        arguments=("-Dexecuted_book_memory=1",),
    ),
    "the work removed": Fault(conf(REMOVES), "could not be rendered: Extension error"),
    "no conf.py": Fault(
        lambda book: (book.root / "conf" / "conf.py").unlink(), "no conf.py in it"
    ),
    "an extension that exits": Fault(
        conf(EXITS), "could not be rendered: SystemExit: 0"
    ),
    "a date": Fault(
        lambda book: None,
        "SOURCE_DATE_EPOCH is 'soon'",
        variables={"SOURCE_DATE_EPOCH": "soon"},
    ),
    "a date too far": Fault(
        lambda book: None,
        "SOURCE_DATE_EPOCH is '99999999999999999999'",
        variables={"SOURCE_DATE_EPOCH": "9" * 20},
    ),
    "a platform": Fault(
        page("import jax"), "'cuda'", variables={"JAX_PLATFORMS": "cuda"}
    ),
    "random caches": Fault(random_caches, "raised ZeroDivisionError"),
    "a random record": Fault(
        random_record,
        "outputs/cells/nvidia-h100-0.1/one.txt:1: not a file of outputs",
    ),
    "deep front matter": Fault(
        write("deep.md", f"---\nx: {NESTED}\n---\n".encode()),
        "docs/deep.md:2: broken front matter",
    ),
    "links to the pages' own folder": Fault(
        links_into_itself, "docs/again:1: a link to a folder that it lies in", soon=150
    ),
    "the server killed": Fault(
        server_killed, "the process that chapters are forked from was ended by SIGKILL"
    ),
    # on Python 3.11 and 3.12 the cell ends its process, and the error shows how
    **(
        {}
        if sys.version_info < (3, 13)
        else {
            "deep outputs": Fault(
                page(DEEP_OUTPUT), "docs/one.md: its data, metadata or outputs are nest"
            )
        }
    ),
    **{
        signal.Signals(number).name: Fault(
            SLEEPS, "stopped", 128 + number, number=number
        )
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
    },
    "SIGKILL": Fault(SLEEPS, "", -signal.SIGKILL, number=signal.SIGKILL),
}


@dataclass(frozen=True)
class Tried:
    """What became of a book with a fault."""

    fault: Fault
    status: int
    said: str
    seconds: float
    foreign: bool
    site: bool
    left: list[str]
    next_page: str


def digests(folder: Path, leave: tuple[str, ...] = ()) -> dict[str, str]:
    """All files below a folder, by their places, without the folders in `leave`."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.relative_to(folder).parts[0] not in leave
    }


def outside(book: TinyBook) -> dict[str, str]:
    beside = digests(book.root / "_build", ITS_OWN)
    return {**digests(book.root, ("_build",)), **beside}


def left_by(scratch: Path) -> list[str]:
    processes = map(str, started_with("TMPDIR", str(scratch)))
    return [*(path.name for path in scratch.iterdir()), *processes]


def good_book(folder: Path) -> TinyBook:
    """A book that was built, with files beside it that are none of its business."""
    book = new_book(folder)
    path = book.root / "conf" / "conf.py"
    path.write_text(path.read_text().replace('rules = "all"', "rules = []"))
    book.chapter("one", "print(6 * 7)")
    book.index("one")
    book.built()
    for name in ("mine.txt", "_build/mine.txt", "docs/mine.txt"):
        (book.root / name).write_text("mine")
    return book


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> TinyBook:
    return good_book(tmp_path_factory.mktemp("good"))


def attempt(good: TinyBook, fault: Fault, scratch: Path) -> Tried:
    """Do a fault to a copy of a book, build it, undo the fault, and build again."""
    book = copy_of(good, scratch.with_name(f"{scratch.name}-book"))
    fault.do(book)
    before, site = outside(book), digests(book.site)
    began = time.monotonic()
    process = book.fork(
        "build", *fault.arguments, TMPDIR=str(scratch), **fault.variables
    )
    try:
        if fault.number:
            while not [*scratch.glob("*/1/work/begun")] and process.poll() is None:
                time.sleep(0.05)
            process.send_signal(fault.number)
        said, _ = process.communicate(timeout=fault.soon)
    except subprocess.TimeoutExpired:
        process.kill()
        said = "it went on and on"
    seconds = time.monotonic() - began
    after = outside(book)
    if fault.do is without_docs:  # which a cell did
        before = {n: d for n, d in before.items() if not n.startswith("docs/")}
    while fault.number == signal.SIGKILL and left_by(scratch):
        time.sleep(0.1)  # what outlives the builder notices that it is gone
        if time.monotonic() > began + SOON:
            break
    left = left_by(scratch)
    stands = digests(book.site) == site
    for name in ("docs", "conf", "outputs"):
        shutil.rmtree(book.root / name, ignore_errors=True)
    for name in ("docs", "conf"):
        shutil.copytree(good.root / name, book.root / name)
    book.chapter("one", "print(6 * 8)")
    book.built()
    work = [
        {path.name for path in b.root.glob("_build/.html-work/*")} for b in (book, good)
    ]
    left += work[0] - work[1]
    return Tried(
        *(fault, process.returncode, said, seconds, before == after, stands, left),
        book.html("one"),
    )


def assert_kept(tried: Tried) -> None:
    """The promises are kept, and one error tells of the fault, or one of each."""
    fault, said = tried.fault, tried.said
    assert tried.foreign, "something was touched that is not the build's"
    assert tried.site, "the old site does not stand"
    assert tried.status == fault.status, said
    assert fault.words in said
    assert "the builder itself failed" not in said
    if fault.problems > 1:
        assert f"{fault.problems} problems: nothing was published" in said
    else:
        assert 'File "' not in said, "a traceback of ours"
    assert tried.seconds < fault.soon
    assert tried.left == []
    words = re.sub("<[^>]*>", " ", tried.next_page).split()
    assert "48" in words
    assert "42" not in words, "the next build shows what is stale"


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_build_keeps_its_promises(good, fault, tmp_path_factory):
    assert_kept(attempt(good, fault, tmp_path_factory.mktemp("scratch")))
