"""Cells run in a shell that shows what a bare interpreter shows."""

import json
import subprocess
import sys
from typing import Any

import pytest

from executed_book.running import shell

#: Cells that run one after the other in one shell, by what they are about; what each
#: shows, or the class and the line of its failure.
CELLS: dict[str, tuple[str, Any]] = {
    "value": ("x = {'a': 1, 'b': [1, 2]}\nx", ["{'a': 1, 'b': [1, 2]}"]),
    "long value": ("list(range(60))", [str([*range(60)])]),
    "quiet value": ("x;", []),
    "nothing": ("None", []),
    "prints": (
        "import sys\nprint('a')\nprint('b', file=sys.stderr)\nprint('c')",
        [*"abc"],
    ),
    "warns": ("import warnings\nwarnings.warn('no')", ["UserWarning: no"]),
    "html": ("class A:\n    def _repr_html_(self): return '<b>A</b>'\nA()", None),
    "display": ("from IPython.display import display\ndisplay(A())", None),
    "raises": ("y = 1\nraise KeyError('a')", ("KeyError", 2)),
    "syntax": ("y = = 1", ("SyntaxError", 1)),
    "text": (
        "class B:\n    def __repr__(self): 1 / 0\n\nB()",
        ("ZeroDivisionError", 2),
    ),
    "its html": (
        "class C:\n    def _repr_html_(self): raise ValueError('c')\nC()",
        ("ValueError", 2),
    ),
    "too much": ("print('x' * 2000)", ("OutputLimit", 1)),
    "after too much": ("print('fine')", ["fine"]),
    "await": ("import asyncio\nawait asyncio.sleep(0)\nprint('awaited')", ["awaited"]),
    "figure": ("import matplotlib.pyplot as plt\n_ = plt.plot([1])", None),
    "figure once": ("1", ["1"]),
    "inline": ("%matplotlib inline", []),
    "late print": ("import jax\njax.jit(lambda x: jax.debug.print('{}', x))(3)", ["3"]),
    "exits": ("raise SystemExit(3)", ("SystemExit", 1)),
    "runs others": (
        "run = get_ipython().run_cell\n_ = run('1 / 0'), run('y = = 1')\nprint('on')",
        ["ZeroDivisionError", "SyntaxError", "on"],
    ),
    "its file": (
        "import inspect\ndef f(): pass\nprint(inspect.getsource(f))",
        ["def f(): pass\n"],
    ),
}
VALUES = {
    "x['a'] + 1": "2",
    "3.14159:.2f": "3.14",
    "x['a']!r:>3": "  1",
    "x['a']=": "x['a']=1",
    """x["a"] + x['a']""": "2",
    "{k: v for k, v in x.items() if k == 'a'}": "{'a': 1}",
    "{3}": "{3}",
    "{'b' if x else 'c'}": "{'b'}",
    "[{1: 2}]": "[{1: 2}]",
    "chr(10).join('ab')": "a\nb",
}
ESCAPED = r"'\n'.join('ab')"
WRONG = {
    "nowhere": "NameError: name 'nowhere' is not defined",
    "chr(0xd800)": "UnicodeEncodeError: 'utf-8' codec can't encode",
    "x +": "SyntaxError: f-string: ",
    "print('y' * 2000)": "it prints without end",
}

PROGRAM = """
import json, os, sys
from executed_book.model import to_plain
from executed_book.running.outputs import Outputs
from executed_book.running.shell import Shell
stdout = os.dup(1)
cells, values = json.loads(sys.stdin.read())
shell = Shell("one", Outputs(1000), "svg", {"figure.figsize": [2.0, 1.0]})
results = {}
for number, (name, (source, _)) in enumerate(cells.items(), 1):
    seconds, failure = shell.run(number, source)
    results[name] = to_plain(shell.result(seconds, failure, ()))
results["values"] = {value: to_plain(shell.evaluate(value)) for value in values}
os.write(stdout, json.dumps(results).encode())
os._exit(0)
"""


@pytest.fixture(scope="module")
def ran() -> dict[str, Any]:
    given = json.dumps([CELLS, [*VALUES, ESCAPED, *WRONG]])
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def data(result: dict[str, Any]) -> list[dict[str, str]]:
    return [output["data"] for output in result["outputs"]]


@pytest.mark.parametrize(
    "name", [n for n, (_, shown) in CELLS.items() if shown is not None]
)
def test_what_a_cell_shows_or_how_it_fails(ran, name):
    failure, expected = ran[name]["failure"], CELLS[name][1]
    if isinstance(expected, tuple):
        assert (failure["name"], failure["line"]) == expected
        return
    assert failure is None
    shown = [
        output.get("data", {}).get("text/plain")
        or output.get("ename")
        or output["text"]
        for output in ran[name]["outputs"]
    ]
    assert [text.removesuffix("\n") for text in shown] == expected


def test_html_is_shown_beside_its_text(ran):
    [value] = data(ran["html"])
    assert value["text/html"] == "<b>A</b>"
    assert ran["html"]["outputs"][0]["output_type"] == "execute_result"
    assert ran["display"]["outputs"][0]["output_type"] == "display_data"


def test_a_figure_is_shown_once_in_its_style_without_a_date(ran):
    [figure] = data(ran["figure"])
    assert figure["image/svg+xml"].count("<svg") == 1
    assert "dc:date" not in figure["image/svg+xml"]


@pytest.mark.parametrize("expression", VALUES)
def test_a_value_is_as_in_an_f_string(ran, expression):
    assert ran["values"][expression] == {"text": VALUES[expression], "error": None}


@pytest.mark.skipif(sys.version_info < (3, 12), reason="f-strings refuse it before")
def test_a_value_may_hold_any_text(ran):
    assert ran["values"][ESCAPED] == {"text": "a\nb", "error": None}


@pytest.mark.parametrize("expression", WRONG)
def test_a_value_that_cannot_be_had(ran, expression):
    assert ran["values"][expression]["error"].startswith(WRONG[expression])


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("x = 1\n\nf(\n  x\n)\n", 3),
        ("", 1),
        ("# only words\n", 1),
        ("!ls\n%time f()\n", 2),
        ("\n", 1),
    ],
)
def test_where_the_last_statement_begins(source, line):
    assert shell._last_line(source) == line


REACHED = """
import builtins, json, os, sys
from executed_book.running.outputs import Outputs
from executed_book.running.shell import Shell
stdout = os.dup(1)
shell = Shell("one", Outputs(1000), "svg", {})
results = []
for number, source in enumerate(json.loads(sys.stdin.read()), 1):
    seconds, failure = shell.run(number, source, True)
    result = shell.result(seconds, failure, ())
    results.append([result.reached, result.missed, failure and failure.line])
shell.run(0, "assert 1")
plain = shell.result(0, None, ())
results.append([plain.reached, plain.missed, None])
os.write(stdout, json.dumps(results).encode())
os._exit(0)
"""
ASSERTIONS = {
    "assert 1\nassert 2": ([1, 2], [], None),
    "def f():\n    assert 1\n    def g():\n        assert 2\nf()": ([2], [4], None),
    "if False: assert 1": ([], [1], None),
    "f()\nassert 1": ([2], [], None),
    "for n in ():\n    assert n": ([], [2], None),
    "try:\n    1 / 0\nexcept ZeroDivisionError:\n    pass\nelse:\n    assert False": (
        *([], [], None),
    ),
    "import numpy as np\nnp.testing.assert_equal(1, 1)\n1": ([2], [], None),
    "assert 1; assert 0, 'no'": ([1], [], 1),
    "assert 1\n\nassert []": ([1, 3], [], 3),
    "%matplotlib inline\nassert 1": ([2], [], None),
    "assert await __import__('asyncio').sleep(0, 1)": ([1], [], None),
}


def test_which_assertions_of_a_check_run():
    command, given = [sys.executable, "-c", REACHED], json.dumps([*ASSERTIONS])
    done = subprocess.run(command, input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *said, plain = map(tuple, json.loads(done.stdout))
    assert dict(zip(ASSERTIONS, said, strict=True)) == ASSERTIONS
    assert plain == ([], [], None), "of a cell that is no check nothing is noted"
