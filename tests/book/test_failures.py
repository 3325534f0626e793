"""Each thing that can be wrong with a page is told: where, what, and the way out.

All faulty pages are built together, once, beside a page that is right and a site that
stands: none of them keeps the others from being told, nor the build from its promises.
"""

import re
from dataclasses import dataclass

import pytest
import sphinx

from .conftest import FRONT, TinyBook
from .test_six_promises import Fault as Faults
from .test_six_promises import Tried, assert_kept, attempt, good_book

DISPLAY = "from IPython.display import display\n"

#: A front matter that lets cells run for two seconds.
TWO_SECONDS = "---\nfile_format: mystnb\nexecuted_book: {limit: 2}\n---\n\n"


@dataclass(frozen=True)
class Fault:
    """A faulty chapter: its cells, the line of the error, and words that it has."""

    cells: tuple[str, ...]
    line: int
    words: tuple[str, ...]
    front: str = FRONT


def fault(*cells: str, line: int = 9, words: str, front: str = FRONT) -> Fault:
    return Fault(cells, line, tuple(words.split(" & ")), front)


FAULTS = {
    # cells that fail
    "raises": fault(
        "x = 1",
        "y = 2\n1 / 0",
        line=14,
        words="cell 2 raised ZeroDivisionError & Cell 2, line 2 & 1 / 0",
    ),
    "syntax": fault("x = 1", "x = 2\ny = = 1", line=14, words="raised SyntaxError"),
    "silent": fault(
        ':raises: "ValueError: bad"\nx = 1',
        line=10,
        words="announces ValueError and raises nothing",
    ),
    "other": fault(
        ':raises: "ValueError: bad"\nint("a")',
        line=10,
        words="raises another & invalid literal",
    ),
    "wordless": fault(
        ':raises: "ValueError"\nint("a")', line=10, words="raises another & invalid"
    ),
    # cells that fail while their value is shown
    "deleted": fault(
        "import jax.numpy as jnp\nx = jnp.ones(3)\nx.delete()\nx",
        line=12,
        words="cell 1 raised RuntimeError & Array has been deleted",
    ),
    "unparsed": fault(
        "import matplotlib.pyplot as plt\n"
        "plt.title(r'$\\frac{$')\nplt.plot([1])\nplt.show()",
        line=12,
        words="cell 1 raised ValueError & ParseSyntaxException",
    ),
    "surrogate": fault(
        "print('\\ud800')",
        words="cell 1 raised UnicodeEncodeError & surrogates not allowed",
    ),
    # cells that ask for what is not here
    "held": fault(
        DISPLAY,
        "display({'text/plain': 'x', 'application/json': {1j}}, raw=True)",
        line=14,
        words="cell 2 raised TypeError",
    ),
    "updated": fault(
        f"{DISPLAY}one = display(1, display_id=True)",
        "one.update(2)",
        line=14,
        words="cell 2 raised RuntimeError & updated in the cell that shows it",
    ),
    "fetches": fault(
        "import urllib.request\nurllib.request.urlopen('http://localhost:9')",
        line=10,
        words="cell 1 raised URLError & name its page in nb_execution_excludepatterns",
    ),
    "background": fault("!sleep 0.1 &", words="start it with subprocess.Popen"),
    "quits": fault("quit()", words="cell 1 raised SystemExit"),
    # cells whose process does not live to tell
    "dies": fault(
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        words="cell 1 killed its process (SIGKILL)",
    ),
    "says": fault(
        "import os\nos.write(2, b'boiler on fire')\nos._exit(3)",
        words="its process (exit code 3) & boiler on fire & its last words are above",
    ),
    "group": fault(
        "import os, signal\nos.killpg(0, signal.SIGKILL)", words="(SIGKILL)"
    ),
    "watcher": fault(
        "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n"
        "import time\ntime.sleep(60)",
        words="cell 1 killed its process (and its supervisor)",
    ),
    "forks": fault(
        "import os\nif not os.fork():\n    x = 1\nelse:\n    _ = os.wait()",
        words="cell 1 writes to stderr & a forked process went on past the end",
    ),
    "endless": fault(
        "while True: pass",
        words="still running after 2 seconds & executed_book: {limit",
        front=TWO_SECONDS,
    ),
    # what a cell writes
    "flood": fault(
        "print('x' * 50_000_000)", words="printed over 1,000,000 characters"
    ),
    "greedy": fault(
        "try:\n    print('x' * 2_000_000)\nexcept Exception:\n    print('caught')",
        words="printed over 1,000,000 characters",
    ),
    "flood-shown": fault(
        "from IPython.display import display\n"
        "while True: display({'image/png': 'x' * 10**7}, raw=True)",
        words="showed over 50,000,000 bytes of images & output_limit in conf.py",
    ),
    "flood-child": fault(
        "import subprocess\nsubprocess.run(['yes'])",
        words="printed over 1,000,000 characters",
    ),
    "address": fault("print(object())", words="a memory address"),
    "noisy": fault(
        "import warnings\nwarnings.warn('careful')",
        words="writes to stderr & UserWarning: careful",
    ),
    "quiet": fault(
        ':warns: "UserWarning: careful"\nx = 1',
        line=10,
        words="announces the warning & gives none",
    ),
    "figure": fault(
        "import matplotlib.pyplot as plt\nplt.plot([1]); plt.show()",
        words="without alternative text",
    ),
    "described": fault(
        ":alt: A line\nx = 1", line=10, words="describes a figure and shows none"
    ),
    "varies": fault(
        ":tags: [measured]\nimport time; print(time.time())",
        line=10,
        words="has output that varies, and no assertion checks it",
    ),
    # what a page says of itself
    "option": fault(
        ":tag: [measured]\n1",
        line=8,
        words="unknown cell option 'tag' & did you mean 'tags'?",
    ),
    "tag": fault(
        ":tags: [mesured]\n1",
        line=8,
        words="unknown cell tag 'mesured' & did you mean 'measured'?",
    ),
    "tags": fault(":tags: 3\n1", line=8, words="'tags' is 3 & ':tags: ["),
    "yaml": fault(":alt: a: b\n1", line=8, words="options could not be read & YAML"),
    "settings": fault(
        "1",
        line=3,
        words="'executed_book: 5' is not understood & {limit: 60}",
        front="---\nfile_format: mystnb\nexecuted_book: 5\n---\n\n",
    ),
    "plain": fault("1", line=3, words="does not execute & file_format", front=""),
    # what cannot be copied
    "shell": fault("!echo hello", words="cell 1 cannot be copied as a program"),
    "variables": fault(
        "x = 1\n%whos",
        line=10,
        words="cannot be copied as a program: not plain Python & rewrite the line",
    ),
}

VALUE = "---\nfile_format: mystnb\nexecuted_book: {limit: 2}\n---\n# V\n\n"
CELL = "```{code-cell}\nimport time\nx = 1\n```\n\n"

#: Faulty pages in full: the text, the line of the error, and words that it has.
PAGES: dict[str, tuple[str, int, str]] = {
    "value": (f"{VALUE}{CELL}Is {{value}}`y`.\n", 12, "NameError"),
    "value-late": (
        f"{VALUE}{CELL}Is {{value}}`time.sleep(60)`.\n",
        12,
        "a value in the text was still running after 2 seconds",
    ),
    "number": (f"{VALUE}{CELL}It is 3.2 times faster.\n", 12, "typed by hand"),
}


#: A notebook that fails on its fourth line.
NOTEBOOK = """\
{"nbformat": 4, "metadata": {}, "cells": [{"cell_type": "code", "metadata": {},
  "source": [
    "x = 1\\n",
    "1 / 0"]}]}
"""


def every_faulty_page(book: TinyBook) -> None:
    book.configure('executed_book_rules = "all"')
    for name, each in FAULTS.items():
        book.chapter(name, *each.cells, front=each.front)
    for name, (text, _, _) in PAGES.items():
        book.page(name, text)
    docs = book.root / "docs"
    (docs / "latin.md").write_bytes(b"# T\n\ncaf\xe9\n")
    (docs / "broken.ipynb").write_text('{"nbformat": 4,')
    (docs / "note.ipynb").write_text(NOTEBOOK)
    # What the process that runs a page needs itself is no fault.
    patched = "import json, time\njson.dumps = json.loads = time.perf_counter = None"
    book.chapter("patched", patched, "assert json.loads is time.perf_counter is None")
    book.chapter("broke", "get_ipython().compile = None", "1")
    book.chapter("twice", "1")
    (docs / "twice.ipynb").write_text('{"nbformat": 4, "cells": [], "metadata": {}}')
    book.chapter(
        "several",
        ":tag: 1\nprint(object())",
        "y = 1 / 0",
        "print(y)",
        "print('\\x1b[1m')",
        "import os; os._exit(1)",
    )


@pytest.fixture(scope="module")
def tried(tmp_path_factory) -> Tried:
    count = len(FAULTS) + len(PAGES) + 5 + 5
    faults = Faults(every_faulty_page, "nothing", problems=count, soon=600.0)
    good = good_book(tmp_path_factory.mktemp("good"))
    return attempt(good, faults, tmp_path_factory.mktemp("scratch"))


@pytest.fixture(scope="module")
def told(tried) -> dict[str, str]:
    return problems(tried.said)


def problems(output: str) -> dict[str, str]:
    """Each page's error block, by the page's place `name:line`."""
    found = {}
    for block in output.split("\n\n"):
        place = re.match(r"docs/(\S+?)\.(?:md|ipynb):(\d+): ", block.strip())
        if place:
            found[f"{place[1]}:{place[2]}"] = block
    return found


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_at_its_line_with_a_way_out(told, name):
    each = FAULTS[name]
    said = told.get(f"{name}:{each.line}")
    assert said, [block for place, block in told.items() if place.startswith(name)]
    for word in each.words:
        assert word in said
    assert "\n    → " in said, "there is a way out"


@pytest.mark.parametrize("name", PAGES)
def test_a_faulty_page_is_told_at_its_line(told, name):
    _, line, words = PAGES[name]
    said = told.get(f"{name}:{line}")
    assert said, list(told)
    assert words in said


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("latin:3", "not UTF-8"),
        ("broken:1", "not a notebook: JSONDecodeError"),
        ("note:4", "cell 1 raised ZeroDivisionError"),
        ("broke:13", "cell 2 broke the process that runs it\n    Traceback (most"),
        ("twice:1", "twice.ipynb beside it gives the same page"),
    ],
)
def test_a_file_of_another_kind_is_told(told, place, words):
    assert words in told[place]


def test_all_that_is_wrong_with_one_page_is_told(told):
    several = {place for place in told if place.startswith("several:")}
    # An unknown option; an address; a failure, of which the next cell is a consequence;
    # a color; a cell that kills its process.
    assert several == {f"several:{line}" for line in (8, 10, 14, 22, 26)}
    assert "not checked, because they need it: cells 3" in told["several:14"]


def test_a_build_with_every_fault_keeps_its_promises(tried):
    """Also that nothing else is told."""
    assert_kept(tried)
    assert "site-packages" not in tried.said


def test_a_page_that_is_right_in_odd_ways_is_built(book):
    """Marks, empty pages, editors' files, notes of other programs: no problem."""
    docs = book.root / "docs"
    book.index("one", "sub/two", "three", "four", "five")
    front = "\ufeff---\r\nfile_format: mystnb\r\n---\r\n\r\n"
    (docs / "one.md").write_bytes(
        f"{front}# One\r\n\r\n```{{code-cell}}\r\nx = 2\r\nx\r\n```\r\n".encode()
    )
    book.chapter("sub/two", "1", front=FRONT)
    (docs / "four.md").write_text("---\nfile_format: mystnb\n---\n\n# No cell\n")
    book.chapter("three", "print('above')", front=FRONT)
    book.chapter(
        "five",
        ':raises: "RuntimeError: Array has been deleted"\n'
        "import jax.numpy as jnp\nx = jnp.ones(3)\nx.delete()\nx",
    )
    (docs / ".#one.md").symlink_to("user@host.1234:5678")
    (docs / ".ipynb_checkpoints").mkdir()
    (docs / ".ipynb_checkpoints" / "one-checkpoint.md").write_text("1 / 0")
    if sphinx.version_info >= (8, 2):  # before, nothing silences its warning
        (docs / "empty.md").write_text("")
    book.configure('suppress_warnings = ["toc.not_included"]')
    book.built()
    assert ">2\n<" in book.html("one")
    assert "Array has been deleted" in re.sub("<[^>]*>", "", book.html("five"))
    assert (book.site / "empty.html").exists() == (docs / "empty.md").exists()
