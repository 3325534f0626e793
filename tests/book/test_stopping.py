"""Whatever stops a build, the site stands, and nothing hangs or is left behind."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import TinyBook, copy_of, ended, new_book, started_with, wait_for

ON_LINUX = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux finds processes by their environment"
)


def gone(place: dict[str, str], patience: float = 60.0) -> bool:
    give_up = time.monotonic() + patience
    while started_with("TMPDIR", place["TMPDIR"]) and time.monotonic() < give_up:
        time.sleep(0.05)
    return not started_with("TMPDIR", place["TMPDIR"])


@pytest.fixture
def place(tmp_path: Path) -> dict[str, str]:
    """A variable by which a build's processes and temporary files can be found."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    return {"TMPDIR": str(temporary)}


def left(place: dict[str, str]) -> list[str]:
    return [path.name for path in Path(place["TMPDIR"]).iterdir()]


STRAYS = {
    "daemon": "subprocess.Popen(['sleep', '1000'])",
    "session": "subprocess.Popen(['sleep', '1000'], start_new_session=True)",
    "detached": (
        "if not os.fork():\n"
        "    os.setsid()\n"
        "    if not os.fork():\n"
        "        time.sleep(1000)\n"
        "    os._exit(0)"
    ),
    "deaf": (
        "if not os.fork():\n"
        "    os.setsid()\n"
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
        "    time.sleep(1000)"
    ),
    "thread": "threading.Thread(target=time.sleep, args=(1000,)).start()",
    "exit": "atexit.register(time.sleep, 1000)",
}
IMPORTS = "import atexit, os, signal, subprocess, threading, time\n"


def limited(seconds: int) -> str:
    limit = f"executed_book: {{limit: {seconds}}}"
    return f"---\nfile_format: mystnb\n{limit}\n---\n\n"


@ON_LINUX
def test_what_outlives_its_cell_keeps_nobody_waiting_and_ends(book, place):
    """Also where a cell is stopped."""
    for name, code in STRAYS.items():
        book.chapter(name, IMPORTS + code, "print('went on')")
    for name in ("session", "detached", "deaf"):
        endless = f"{IMPORTS}{STRAYS[name]}\nwhile True: pass"
        book.chapter(f"stopped-{name}", endless, front=limited(2))
    at_end = "import jax\njax.devices = lambda *_: __import__('time').sleep(1000)"
    book.chapter("end", at_end, front=limited(6))
    began = time.monotonic()
    output = book.refused("execute", **place)
    assert time.monotonic() - began < 900, output
    assert sorted(re.findall(r"docs/([\w-]+)\.md:9: (.*)", output)) == [
        ("end", "the end of the chapter was still running after 6 seconds"),
        *(
            (f"stopped-{name}", "cell 1 was still running after 2 seconds")
            for name in ("deaf", "detached", "session")
        ),
    ]
    assert output.count("docs/") == 4
    assert gone(place)
    assert left(place) == []


@pytest.fixture(scope="module")
def built_once(tmp_path_factory) -> TinyBook:
    book = new_book(tmp_path_factory.mktemp("built"))
    book.index("first", "second")
    book.chapter("first", "print('one')")
    book.chapter("second", "print('two')")
    book.built()
    return book


@pytest.fixture
def long_book(built_once, tmp_path):
    """A book whose site stands, with two changed chapters, one that takes for ever."""
    book = copy_of(built_once, tmp_path / "book")
    book.chapter("first", "print('changed')")
    book.chapter(
        "second",
        "import time\nfrom pathlib import Path\n"
        f"Path({str(book.root / 'started')!r}).touch()\ntime.sleep(1000)",
    )
    return book


def stopped(process: subprocess.Popen[str], number: int) -> tuple[float, str]:
    """How long it took to end after a signal (seconds), and what it said."""
    began = time.monotonic()
    process.send_signal(number)
    output, _ = process.communicate(timeout=600)
    return time.monotonic() - began, output


def test_an_interrupt_keeps_what_ran(long_book):
    """What else is promised of one is in `test_six_promises`."""
    process = long_book.fork("build", "--jobs", "2")
    wait_for(long_book.root / "started")
    while len(list(long_book.cache.glob("first-*.json"))) < 2:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert ended(process)[0] == 128 + signal.SIGTERM
    long_book.chapter("second", "print('two')")
    assert "2 unchanged" in long_book.built()


#: Moments at which each push interrupts a build, and those of each week (seconds).
SOME = [0.1, 0.9, 2.5]
MORE = [0.2, 0.3, 0.4, 0.5, 0.7, 1.2, 1.6, 2.0, 3.0, 4.0, 6.0]


@ON_LINUX
@pytest.mark.parametrize(
    "after", [*SOME, *(pytest.param(one, marks=pytest.mark.weekly) for one in MORE)]
)
def test_an_interrupt_at_any_moment_is_one_line(long_book, place, after):
    book = long_book
    before = book.html("first")
    process = book.start("build", **place)
    time.sleep(after)
    seconds, output = stopped(process, signal.SIGINT)
    assert seconds < 300, "it hangs; a busy machine may take some of these"
    if process.returncode == -signal.SIGINT or "init_import_site" in output:
        assert "commands" not in output, "only Python's own modules were imported yet"
        return
    assert process.returncode == 130, output
    lines = [line for line in output.splitlines() if line.strip()]
    assert lines[-1] == "stopped: the site is unchanged, and finished chapters are kept"
    assert "Traceback" not in output
    assert book.html("first") == before
    assert gone(place)
    assert left(place) == []


@ON_LINUX
@pytest.mark.parametrize(
    "parts", [(1, 6), pytest.param(range(12), marks=pytest.mark.weekly)]
)
def test_an_interrupt_while_rendering_or_publishing_is_one_line(book, place, parts):
    """At moments spread over a build that has nothing to execute."""
    book.index(*(f"page{i}" for i in range(40)))
    for i in range(40):
        book.page(f"page{i}", f"# Page {i}\n\n" + "A line of text.\n\n" * 200)
    book.built()
    before = {path.name: path.read_bytes() for path in book.site.glob("*.html")}
    seen = set()
    for part in parts:
        for i in range(40):
            book.page(f"page{i}", f"# Page {i}\n\n" + f"Another {part}.\n\n" * 200)
        process = book.start("build", **place)
        time.sleep(0.4 + 0.25 * part)
        seconds, output = stopped(process, signal.SIGINT)
        seen.add(process.returncode)
        assert process.returncode in (0, 130), output
        assert seconds < 300 or process.returncode == 0
        assert "Traceback" not in output
        names = {path.name for path in book.site.glob("*.html")}
        assert names == before.keys()
    assert 130 in seen
    book.built()


def test_two_builds_at_once_both_succeed(book):
    book.index("one")
    book.chapter("one", "import time\ntime.sleep(1)\nprint('whole')")
    for process in [book.fork("build"), book.fork("build")]:
        status, output = ended(process)
        assert status == 0, output
    assert "whole" in book.html("one")


def test_a_warning_names_the_line_of_the_page(book):
    """In each of the stretches that cells divide a page into."""
    lines = [
        *("---", "file_format: mystnb", "---", "# Fine", "", "{ref}`one`", ""),
        *("```{code-cell}", ":tags: [hide-input]", "x = 1", "```", "", "Text", ""),
        *("{ref}`two`", "", "```{code-cell}", "x", "```", "", "> {ref}`three`"),
    ]
    book.index("fine")
    book.page("fine", "\n".join(lines) + "\n")
    output = book.refused("build")
    for name, line in {"one": 6, "two": 15, "three": 21}.items():
        assert re.search(rf"fine\.md:{line}: .*'{name}'", output), output
