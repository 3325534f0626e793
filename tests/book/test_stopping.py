"""Whatever stops a build, the site stands, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def test_a_page_that_sphinx_warns_about_is_not_published(book):
    book.index("fine")
    book.chapter("fine", "1")
    book.built()
    before = book.html("fine")
    book.page("fine", "# Fine\n\n{ref}`nowhere` and `` x ``.\n")
    status, output = book.build()
    assert status == 1
    assert "fine.md" in output
    assert "nowhere" in output
    assert book.html("fine") == before
    # The unfinished rendering is not built upon.
    book.page("fine", "# Fine again\n")
    book.built()
    assert "Fine again" in book.html("fine")


def test_output_limit_is_not_an_exception_that_a_cell_can_catch(book):
    book.chapter(
        "greedy",
        "try:\n    print('x' * 2_000_000)\nexcept Exception:\n    print('caught')",
    )
    status, output = book.run("execute")
    assert status == 1
    assert "printed over 1,000,000 characters" in output


def test_interrupt_leaves_the_site_and_what_ran(book):
    book.index("first", "second")
    book.chapter("first", "print('one')")
    book.chapter("second", "print('two')")
    book.built()
    before = book.html("first")
    book.chapter("first", "print('changed')")
    book.chapter("second", "import time\ntime.sleep(100)")
    process = book.start("build", "--jobs", "2")
    deadline = time.monotonic() + 60
    while (
        not any(book.cache.glob("first-*.json"))
        or len(list(book.cache.glob("first-*.json"))) < 2
    ):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 130, output
    assert "the site is as it was" in output
    assert "Traceback" not in output
    assert book.html("first") == before
    assert time.monotonic() - began < 20
    assert not _children_of_the_book(book.root)
    # Nothing is locked, and what had run is kept.
    book.chapter("second", "print('two')")
    assert "2 unchanged" in book.built()


def _children_of_the_book(root: Path) -> list[str]:
    """Processes still at work in the book's folder or for it."""
    listing = subprocess.run(
        ["ps", "-eo", "args"], capture_output=True, text=True, check=True
    ).stdout
    return [line for line in listing.splitlines() if str(root) in line]


def test_two_builds_at_once_both_succeed(book):
    book.index("one")
    book.chapter("one", "import time\ntime.sleep(1)\nprint('whole')")
    first, second = book.start("build"), book.start("build")
    for process in (first, second):
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 0, output
    assert "whole" in book.html("one")


BUILD_WITH_SMALL_FILES = """
import resource, signal, sys
from executed_book.commands.line import main

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
sys.exit(main(["build"]))
"""


def test_a_full_disk_is_said_and_the_site_stands(book):
    """A limit on file sizes makes the kernel refuse writes as a full disk does."""
    book.index("one")
    book.chapter("one", "print('small')")
    book.built()
    before = book.html("one")
    book.chapter("one", "print('x' * 400_000)")

    result = subprocess.run(
        [sys.executable, "-c", BUILD_WITH_SMALL_FILES],
        cwd=book.root,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 1, result.stdout + result.stderr
    assert "the disk says: File too large" in result.stderr
    assert book.html("one") == before


def test_no_chapters_folder(book):
    (book.root / "docs").rmdir()
    status, output = book.build()
    assert status == 1
    assert "no such folder of chapters" in output
