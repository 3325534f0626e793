"""What goes wrong gives one clear error each, and the previous site stands."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path


def problems(output: str) -> dict[str, str]:
    """Each page's error block, by the page's place `name:line`."""
    blocks = re.split(r"\n\n", output)
    found = {}
    for block in blocks:
        if place := re.match(r"docs/(\S+?)\.md:(\d+): ", block.strip()):
            found[f"{place[1]}:{place[2]}"] = block
    return found


def test_each_problem_names_its_page_line_and_way_out(book):
    book.index("fine")
    book.chapter("fine", "print('first site')")
    book.built()
    before = book.html("fine")

    book.chapter("raises", "x = 1", "y = 2\n1 / 0")
    book.chapter("syntax", "x = 1", "y = = 1")
    book.chapter("silent", ':raises: "ValueError: bad"\nx = 1')
    book.chapter("other", ':raises: "ValueError: bad"\nint("a")\n')
    book.chapter("words", ':raises: "ValueError: entirely different"\nint("a")\n')
    book.chapter("wordless", ':raises: "ValueError"\nint("a")\n')
    book.chapter("dies", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    book.chapter(
        "endless",
        "while True: pass",
        front="---\nfile_format: mystnb\njustafter: {limit: 2}\n---\n\n",
    )
    book.chapter("flood", "print('x' * 50_000_000)")
    book.chapter(
        "flood_below", "import os\nfor _ in range(50): os.write(1, b'x'*10**6)"
    )
    book.chapter("address", "print(object())")
    book.chapter("ansi", r"print('\x1b[31mred')")
    book.chapter("path", "import os\nprint(os.__file__)")
    book.chapter("noisy", "import warnings\nwarnings.warn('careful')")
    book.chapter("quiet", ':warns: "UserWarning: careful"\nx = 1')
    book.chapter("figure", "import matplotlib.pyplot as plt\nplt.plot([1]); plt.show()")
    book.chapter("varies", ":tags: [measured]\nimport time; print(time.time())")
    book.chapter("option", ":tag: [measured]\n1")
    book.chapter("tag", ":tags: [mesured]\n1")
    book.chapter(
        "kernel",
        "1",
        front="---\nfile_format: mystnb\nkernelspec: {name: julia}\n---\n\n",
    )
    book.chapter("front", "1", front="---\nfile_format: [mystnb\n---\n\n")
    book.chapter("plain", "1", front="")
    book.page(
        "value",
        "---\nfile_format: mystnb\n---\n# V\n\n"
        "```{code-cell}\nx = 1\n```\n\nIs {value}`y`.\n",
    )
    (book.root / "docs" / "latin.md").write_bytes(b"# T\n\ncaf\xe9\n")

    status, output = book.build()
    assert status == 1
    found = problems(output)
    expected = {
        "raises:14": ["raised ZeroDivisionError", "Cell 2, line 2", "1 / 0"],
        "syntax:13": ["raised SyntaxError"],
        "silent:10": ["announces ValueError and raises nothing"],
        "other:10": ["raises another", "invalid literal"],
        "words:10": ["raises another", "invalid literal"],
        "wordless:10": ["raises another", "invalid literal"],
        "dies:9": ["killed its process (SIGKILL)"],
        "endless:9": ["still running after 2 seconds", "limit"],
        "flood:9": ["printed over 1,000,000 characters"],
        "flood_below:9": ["printed over 1,000,000 characters"],
        "address:9": ["a memory address"],
        "ansi:9": ["an ANSI code"],
        "path:9": ["a machine path"],
        "noisy:9": ["writes to stderr", "UserWarning: careful"],
        "quiet:10": ["announces the warning", "gives none"],
        "figure:9": ["without alternative text"],
        "varies:10": ["varies and nothing checks it"],
        "option:8": ["unknown cell option 'tag'"],
        "tag:8": ["unknown cell tag 'mesured'"],
        "kernel:3": ["unknown kernel 'julia'"],
        "front:2": ["broken front matter"],
        "plain:3": ["does not execute", "file_format: mystnb"],
        "value:10": ["NameError"],
        "latin:3": ["not UTF-8"],
    }
    assert set(found) == set(expected), output
    for place, words in expected.items():
        for word in words:
            assert word in found[place], (place, found[place])
    assert f"{len(expected)} problems: nothing was published" in output
    assert "site-packages" not in output
    assert book.html("fine") == before


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
from justafter.book.commands.line import main

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
