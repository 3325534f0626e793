"""Programs give what the page gives: run as files and pasted at the prompt."""

from pathlib import Path

import pytest

from executed_book.checking.comparison import same_output
from executed_book.checking.text import printed_text
from executed_book.programs import Page, Programs, SourceCell, header, sets_environment
from executed_book.programs.snippets import source_cells

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
#: Cells whose programs are wrong as they are sliced: `verify` lengthens them.
LENGTHENED = {
    ("drawing", 4),
    *(("tracing", k) for k in (3, 4, 17, 22)),
    ("training", 17),
}
HEADER = header("https://example.org/page.html", "0.12.0")

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
def executed():
    """For each page what its cells give."""
    return harness.execute(PAGES)


def programs(name, executed):
    cells = source_cells(executed[name])
    made = Programs(Page(cells), HEADER)
    return [
        made.of(k, made.above(k) if (name, k) in LENGTHENED else ())
        for k in range(len(cells))
    ]


def shown(name, executed):
    """What each cell of a page prints, as its program has to."""
    return [printed_text(result.outputs) for _, result in executed[name]]


def fresh(made):
    return [i for i, p in enumerate(made) if sets_environment(p.text)]


def report(name, made, expected, got):
    """Every cell whose program shows something else, as one text."""
    wrong = []
    for k, (text, run) in enumerate(zip(expected, got, strict=True)):
        timed = "%time" in PAGES[name][k].source
        found = None if timed else same_output(text, run.shown)
        if found:
            wrong.append(f"cell {k}: {found}\n{made[k].text}\n{run.stderr[-600:]}")
    return "\n".join(wrong)


@pytest.mark.parametrize("name", PAGES)
def test_programs_as_files_show_what_the_page_shows(name, executed):
    made = programs(name, executed)
    runs = run_programs([p.text for p in made], fresh=fresh(made))
    assert report(name, made, shown(name, executed), runs) == ""


@pytest.mark.parametrize("name", PAGES)
def test_programs_at_the_prompt_show_what_the_page_shows(name, executed):
    made = programs(name, executed)
    texts = [f"PROGRAM = {p.text!r}\n{PROMPT}" for p in made]
    runs = run_programs(texts, fresh=fresh(made))
    cells = zip(PAGES[name], shown(name, executed), runs, strict=True)
    # What drawing calls return is shown at the prompt, and is no output of ours.
    expected = [
        run.shown if "figure" in cell.tags else text for cell, text, run in cells
    ]
    assert report(name, made, expected, runs) == ""
    assert not [r.stdout for r in runs if "prompt" in r.stdout]


# -- the text of a program


def test_the_whole_text_of_a_program():
    cells = [
        "import math",
        "def f(x):\n    # half\n\n    return g(x) / 2\n\n\nprint(f)",
        "def g(x):\n    return math.floor(x)",
        "# Aloud.\nfrom math import pi\nvalue = pi\n\n# Then this.\nf(value)  # here",
    ]
    page = Page([SourceCell(c, displays="value" in c) for c in cells])
    made = Programs(page, HEADER).of(3)
    assert made.text == (
        "# https://example.org/page.html, run with JAX 0.12.0\n"
        "import math\n"
        "# Aloud.\n"
        "from math import pi\n"
        "\n"
        "def f(x):\n"
        "    # half\n"
        "    return g(x) / 2\n"
        "\n"
        "def g(x):\n"
        "    return math.floor(x)\n"
        "\n"
        "value = pi\n"
        "# Then this.\n"
        "print(repr(f(value)))  # here\n"
    )
    assert made.earlier == ((0, 1), (1, 1), (2, 1))


@pytest.mark.parametrize(
    ("code", "displays", "last"),
    [
        ("1 + 1", True, "print(repr(1 + 1))"),
        ("1 + 1;", False, "_ = 1 + 1;"),
        ("1 + 1 # ; #", True, "print(repr(1 + 1)) # ; #"),
        ("abs(1)", False, "abs(1)"),
        ("1, 2", True, "print(repr((1, 2)))"),
        ("(1, 2)", True, "print(repr((1, 2)))"),
        ("(1), 2", True, "print(repr(((1), 2)))"),
        ("(i for i in 'a')", True, "print(repr((i for i in 'a')))"),
        ("print(1)", False, "print(1)"),
        ("print(1)", True, "print(repr(print(1)))"),
        ("[].append(1)", False, "[].append(1)"),
        ("_ = 1\n2\n_", True, "print(repr(_))"),
    ],
)
def test_what_the_last_line_becomes(code, displays, last):
    made = Programs(Page([SourceCell(code, displays=displays)]), HEADER).of(0)
    assert made.text.splitlines()[-1] == last


# -- its shape

PASTED = """\
# header
def f(x):
    for i in range(2):
        x += i
    return x

class A:
    def m(self):
        return '''one

two'''

if f(1) == 2:
    print(A().m())
else:
    print("no")

_ = f(3)
print(repr(f(4)))

for word in ["and"]:
    print("end")

"""


def test_pasted_text_has_the_shape_that_programs_have():
    cell = SourceCell(
        PASTED.partition("\n")[2].replace("_ = f(3)", "f(3)").replace("\n\n", "\n\n\n")
    )
    made = Programs(Page([cell]), "# header").of(0)
    assert made.text == PASTED.replace("one\n\ntwo", "one\n\n\ntwo")


def test_a_program_with_code_that_does_not_parse():
    cell = SourceCell("x = = 1", raises="SyntaxError: invalid")
    [run] = run_programs([Programs(Page([cell]), HEADER).of(0).text], fresh=[0])
    assert run.raised.startswith("SyntaxError: invalid syntax")


# -- running


def test_what_reads_the_environment_starts_without_jax(executed):
    made = programs("environment", executed)[2]
    assert sets_environment(made.text)
    assert made.text.index("os.environ") < made.text.index("import jax")
    assert [r.shown for r in run_programs([made.text], fresh=[0])] == ["3"]
