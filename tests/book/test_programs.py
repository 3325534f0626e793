"""Programs give what the page gives: run as files and pasted at the prompt."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from executed_book.programs.cells import SourceCell
from executed_book.programs.slicing import Page
from executed_book.programs.text import Programs, sets_environment

from .programs import harness
from .programs.running import run_programs

pytestmark = pytest.mark.usefixtures("ready_workers")

# Small pages of every kind that the book has. A line `# %%` begins a cell, and may
# announce its failure or give its tags; of a cell with the tag `figure` the prompt of
# older Pythons shows what the drawing calls return.
FOLDER = Path(__file__).parent / "pages"

PAGES = {
    p.stem: harness.read_cells(p.read_text()) for p in sorted(FOLDER.glob("*.txt"))
}
HEADER = "# https://example.org/page.html, run with JAX 0.12.0"

# Types a program at the classic prompt, line by line.
PROMPT = """
import code, sys, traceback

class Console(code.InteractiveConsole):
    def showtraceback(self):
        error = sys.exc_info()[1]
        print(f"{type(error).__name__}: {error}")

    showsyntaxerror = lambda self, *_, **__: print("SyntaxError at the prompt")

console = Console({"__name__": "__main__"})
waiting = False
for line in PROGRAM.split("\\n")[:-1]:
    waiting = console.push(line)
print("the prompt is still waiting" if waiting else "", end="")
"""


@pytest.fixture(scope="module")
def offers(tmp_path_factory):
    return harness.verified(PAGES, tmp_path_factory.mktemp("pages"))


@pytest.mark.parametrize("name", PAGES)
def test_programs_as_files_show_what_the_page_shows(name, offers):
    wrong = [
        f"cell {k}: {offer.verdict.note}\n{offer.promise.text}"
        for k, offer in enumerate(offers[name])
        if harness.kind(offer) != "right"
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", PAGES)
def test_programs_at_the_prompt_show_what_the_page_shows(name, offers):
    if name == "prompt" and sys.version_info[:2] == (3, 12):
        pytest.skip("its prompt refuses an f-string over several lines")
    texts = [offer.promise.text for offer in offers[name]]
    fresh = [k for k, text in enumerate(texts) if sets_environment(text)]
    runs = run_programs([f"PROGRAM = {t!r}\n{PROMPT}" for t in texts], fresh=fresh)
    for cell, offer, run in zip(PAGES[name], offers[name], runs, strict=True):
        assert "prompt" not in run.stdout, offer.promise.text
        # What drawing calls return is shown at the prompt, and is no output of ours.
        if "figure" not in cell.tags:
            # The prompt goes on after a failure, and has printed it.
            problem = replace(offer.promise, raises=None).problem(run)
            assert problem is None, f"{problem}\n{offer.promise.text}"


#: The cells of a page, and the program of the last one.
CELLS = (
    "import math",
    "def f(x):\n    # half\n\n    return g(x) / 2\n\n\nprint(f)",
    "def g(x):\n    '''One.\n\n    Two.'''\n    return math.floor(x)",
    "from math import pi\nvalue = pi",
    "# Aloud.\nf(value)\nif value:\n    f(1)\n\n# Then this.\nf(value)  # here",
)
PROGRAM = """\
# https://example.org/page.html, run with JAX 0.12.0
import math
from math import pi

def f(x):
    # half
    return g(x) / 2

def g(x):
    '''One.

    Two.'''
    return math.floor(x)

value = pi

# Aloud.
_ = f(value)

if value:
    _ = f(1)

# Then this.
print(repr(f(value)))  # here
"""


def test_the_whole_text_of_a_program():
    page = Page([SourceCell(cell, displays="value" in cell) for cell in CELLS])
    assert Programs(page, HEADER).of(4) == PROGRAM


@pytest.mark.parametrize(
    ("code", "displays", "last"),
    [
        ("1 + 1;", False, "_ = 1 + 1;"),
        ("1 + 1 # ; #", True, "print(repr(1 + 1)) # ; #"),
        ("abs(1)", False, "abs(1)"),
        ("1, 2", True, "print(repr((1, 2)))"),
        ("(1), 2", True, "print(repr(((1), 2)))"),
        ("(i for i in 'a')", True, "print(repr((i for i in 'a')))"),
    ],
)
def test_what_the_last_line_becomes(code, displays, last):
    made = Programs(Page([SourceCell(code, displays=displays)]), HEADER).of(0)
    assert made.splitlines()[-1] == last


def test_a_program_with_code_that_does_not_parse():
    cell = SourceCell("x = = 1", raises="SyntaxError: invalid")
    [run] = run_programs([Programs(Page([cell]), HEADER).of(0)], fresh=[0])
    assert run.raised.startswith("SyntaxError: invalid syntax")


def test_what_reads_the_environment_starts_without_jax(offers):
    text = offers["environment"][2].promise.text
    assert sets_environment(text)
    assert text.index("os.environ") < text.index("import jax")
    assert [r.shown for r in run_programs([text], fresh=[0])] == ["3"]
