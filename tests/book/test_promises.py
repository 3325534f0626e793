"""What MyST-NB and IPython have works here, or is refused in one line."""

import re
import sys
import zlib

import pytest

from .conftest import FRONT
from .test_settings import from_conf

DISPLAY = "from IPython.display import clear_output, display\n"
WORK = "async def work():\n    print('working')\n    return 41"

#: Cells, and the lines that they show in the end.
SHOWN = {
    "replaced": (
        [
            f"{DISPLAY}for k in 0, 1:\n    clear_output(wait=True)\n    print(k)",
            "print('gone')\nclear_output()\nprint('stays')",
            "one = display('old', display_id=True)\nprint('then')\none.update('new')",
        ],
        ["1", "stays", "'new'", "then"],
    ),
    "tasks": (
        [
            f"import asyncio\n{WORK}\ntask = asyncio.create_task(work())",
            *("await task + 1", "asyncio.run(work()) + 2"),
        ],
        ["working", "42", "working", "43"],
    ),
    "tracebacks": (
        ["%xmode Minimal", ':raises: "ZeroDivisionError: division by zero"\n1 / 0'],
        ["Exception reporting mode: Minimal", "ZeroDivisionError: division by zero"],
    ),
}


def test_what_cells_show_is_as_in_a_notebook(book):
    (book.root / "outputs" / "cells").mkdir(parents=True)
    book.configure("executed_book_rules = []")
    for name, (cells, _) in SHOWN.items():
        book.chapter(name, *cells)
    book.done("pin")
    for name, (_, shown) in SHOWN.items():
        said = book.stored(name).read_text("utf-8")
        assert re.findall(r"^\| (.*)", said, re.M) == shown, name


def test_figures_have_the_format_that_a_cell_asks_for(book):
    for kind in ("svg", "jpeg", "png", "retina"):
        book.chapter(
            kind,
            "%matplotlib inline\nimport matplotlib.pyplot as plt",
            f"%config InlineBackend.figure_format = '{kind}'",
            ':alt: "A line."\nplt.plot([1, 2]);',
        )
    book.chapter("fails", "1 / 0")
    options = ("-Dexecuted_book_figures=png", "-Dnb_execution_allow_errors=1")
    book.done("execute", *options)


def test_a_cell_that_starts_a_task_offers_no_program(book):
    book.chapter(
        "one",
        "import asyncio\nasync def work():\n    return 41",
        "task = asyncio.create_task(work())",
        "await task",
        "async def main():\n    return await asyncio.create_task(work())",
        "loop = asyncio.new_event_loop()\nloop.run_until_complete(main())",
    )
    book.configure("executed_book_rules = []")
    assert "3 programs: 3 held" in book.done("verify")


def test_a_page_may_be_left_out_or_fail_by_its_own_options(book):
    options = {"off": 'execution_mode: "off"', "fails": "execution_allow_errors: true"}
    for name, option in options.items():
        front = FRONT.replace("\n---", f"\nmystnb: {{{option}}}\n---")
        book.chapter(name, "1 / 0", front=front)
    book.done("execute")


def test_options_of_myst_nb_do_what_they_say(tmp_path):
    assert from_conf(tmp_path, nb_execution_in_temp=True).folder == "empty"
    assert from_conf(tmp_path, nb_execution_mode="off").not_executed == ("**",)
    made = from_conf(
        tmp_path,
        include_patterns=["a/**"],
        exclude_patterns=["b"],
        nb_execution_excludepatterns="a.md,b/*",
    )
    assert (made.include, made.exclude) == (("a/**",), ("b",))
    assert made.not_executed == ("a.md", "b/*")
    assert from_conf(tmp_path, nb_execution_timeout="2.5").cell_seconds == 2.5
    assert not from_conf(tmp_path, nb_execution_allow_errors="0").may_fail


def test_a_kernel_of_any_name_is_our_python_and_eval_names_its_way_out(book):
    front = FRONT.replace("\n---", "\nkernelspec: {name: conda-env-old}\n---")
    aliases = 'nb_kernel_rgx_aliases = {"conda-.*": "python3"}'
    book.configure(aliases, "nb_execution_timeout = -1")
    book.chapter("one", "a = 6 * 7", front=front)
    book.index("one")
    book.add_text("one", "It is {eval}`a`, or `` {eval}`a` ``.")
    said = book.refused("build")
    assert said.count("{eval} needs a kernel") == 1
    assert "→ write {value}`a`" in said
    page = book.root / "docs" / "one.md"
    page.write_text(page.read_text().replace("{eval}`a`,", "{value}`a`,"))
    book.built()
    assert 'It is <span class="value">42</span>, or' in book.html("one")


def test_references_are_told_of_as_sphinx_is_asked_to(book):
    """Also where another site's list of names cannot be had, until it can."""
    book.chapter("one", "1")
    book.add_text("one", "A {py:class}`thing`.")
    book.index("one")
    assert "py:class reference target not found: thing" in book.refused("build")
    mapping = 'intersphinx_mapping = {"there": ("http://localhost:9", "names.inv")}'
    others = "extensions.append('sphinx.ext.intersphinx')"
    book.configure("nitpicky = False", others, mapping)
    said = book.built()
    assert "no links into other sites: failed to reach" in said
    assert "names.inv" in said
    assert "localhost:9" not in book.html("one")
    head = "# Sphinx inventory version 2\n# Project: P\n# Version: 1\n# zlib\n"
    names = zlib.compress(b"thing py:class 1 t.html -\n")
    (book.root / "docs" / "names.inv").write_bytes(head.encode() + names)
    assert "links" not in book.built()
    assert 'href="http://localhost:9/t.html"' in book.html("one")


USES = {
    "copies": "import os\nlen({**os.environ}), os.environ.copy()['PATH']",
    "variable": "import os\nprint(os.environ.get('SOME_NAME'))",
    "file": "try:\n    open(b'data.txt')\nexcept OSError:\n    print('none')",
    "exists": "import os\nprint(os.path.exists('data.txt'))",
    "path": "from pathlib import Path\nPath('data.txt').exists()",
    "link": "import os\nprint(os.path.lexists('data.txt'))",
    "folder": "from pathlib import Path\nprint(sorted(Path().glob('*.txt')))",
    "child": "!cat data.txt notes.txt",
}


def test_what_a_page_used_has_changed_so_it_runs_again(book):
    book.configure("nb_execution_in_temp, executed_book_rules = False, []")

    def runs(**variables: str) -> set[str]:
        said = book.executed(**variables)
        return set(re.findall(r"^  (\w+) +1/1 cells?", said, re.M))

    docs = book.root / "docs"
    (docs / "notes.txt").write_text("noted")
    for name, cell in USES.items():
        book.chapter(name, cell)
    assert runs(SOME_OTHER="1") == USES.keys()
    assert runs(SOME_OTHER="2") == set()
    assert runs(SOME_NAME="1", HOME="/") == {"variable"}
    assert runs(SOME_NAME="2") == {"variable"}
    assert runs() == {"variable"}
    (docs / "notes.txt").write_text("changed")
    assert runs() == {"child"}
    (docs / "data.txt").write_text("appeared")
    assert runs() == {"file", "exists", "path", "link", "folder", "child"}
    assert runs() == set()


HELPER = "import subprocess\ndef ask():\n    subprocess.run(['sh', 'ask.sh'])"

#: Cells that start children, and whether what these read is seen.
CHILDREN = {
    "python": (
        "import subprocess, sys\nsubprocess.run([sys.executable, 'c.py'])",
        False,
    ),
    "shell": ("!sh ask.sh", False),
    "pattern": ("!cat *.txt", False),
    "assigned": ("said = !sh ask.sh\nsaid", False),
    "module": ("import helper\nhelper.ask()", False),
    "whole": ("%%bash\ncat data.txt", False),
    "forked": ("import os\nif not os.fork():\n    os._exit(0)\nos.wait()", False),
    "known": ("!cat data.txt 2>&1", True),
    "pip": ("import sys\n!{sys.executable} -m pip --version", True),
    "plain": ("x = 3\nx != 4", True),
}


CATALOG = """\
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"

msgid "It is {value}`x` now."
msgstr "Jetzt {value}`x`."
"""


def test_what_sphinx_can_do_with_a_page_it_can_do_here(book):
    """Another language and pages as JSON; also with a limit of time for sockets."""
    language = "language, locale_dirs = 'de', ['words']"
    limit = "import socket\nsocket.setdefaulttimeout(1)"
    book.configure("executed_book_rules = []", language, limit)
    book.index("one")
    book.chapter("one", "x = 41")
    book.add_text("one", "It was {value}`x`.\n\n```{code-cell}\nx = 77\n```\n")
    book.add_text("one", "It is {value}`x` now.")
    words = book.root / "docs" / "words" / "de" / "LC_MESSAGES" / "one.po"
    words.parent.mkdir(parents=True)
    words.write_text(CATALOG)
    for builder, name in (("html", "one.html"), ("json", "one.fjson")):
        places = ("-c", "conf", "docs", builder)
        status, said = book.sphinx("-W", "-b", builder, *places)
        assert status == 0, said
        text = (book.root / builder / name).read_text("utf-8").replace("\\", "")
        assert 'Jetzt <span class="value">77</span>.' in text


def test_what_children_read_is_said_by_the_page_or_it_runs_in_each_build(book):
    book.configure("nb_execution_in_temp, executed_book_rules = False, []")
    docs = book.root / "docs"
    (docs / "data.txt").write_text("first")
    (docs / "c.py").write_text("print(open('data.txt').read())")
    (docs / "ask.sh").write_text("cat data.txt")
    (docs / "helper.py").write_text(HELPER)
    for name, (cell, _) in CHILDREN.items():
        book.chapter(name, cell)
    unseen = sorted(name for name, (_, is_seen) in CHILDREN.items() if not is_seen)
    book.executed()
    said = book.executed()
    assert f"may have read files that have changed: {', '.join(unseen)}\n" in said
    assert f", {len(unseen)} to execute" in said
    front = FRONT.replace("\n---", "\nexecuted_book: {reads: []}\n---")
    for name in unseen:
        book.chapter(name, CHILDREN[name][0], front=front)
    (book.root / "data" / "deep").mkdir(parents=True)
    front = front.replace("[]", "[../data]")
    book.chapter("said", "!sh -c 'cat ../data/deep/*'", front=front)
    assert "1 to execute" in book.executed(), "the others have other prose"
    said = book.executed()
    assert "0 to execute" in said
    assert "not seen" not in said
    # Only what is said counts, a file or all in a folder.
    (docs / "data.txt").write_text("second")
    assert "1 to execute" in book.executed(), "that of the known program"
    for content in ("appeared", "changed"):
        (book.root / "data" / "deep" / "one.txt").write_text(content)
        assert "1 to execute" in book.executed()


def test_a_page_that_was_changed_while_the_book_was_built_is_not_shown(book):
    book.configure("executed_book_rules = []")
    more = "\n```{code-cell}\nprint(6 * 8)\n```\n"
    path = book.root / "docs" / "one.md"
    cell = f"import pathlib\npath = pathlib.Path({str(path)!r})\n"
    book.chapter("one", f"{cell}path.write_text(path.read_text() + {more!r})")
    book.index("one")
    said = book.refused("build")
    assert "one.md: has other cells than were executed; build again" in said
    assert not book.site.exists()


def test_verify_leaves_files_alone_that_it_did_not_write(book):
    book.configure('executed_book_rules = []\nexecuted_book_programs = "../docs"')
    book.chapter("one", "print(6 * 7)")
    data, page = (book.root / "docs" / f"{name}.txt" for name in ("data", "one"))
    data.write_text("mine")
    page.write_text("mine")
    assert "docs/one.txt:1: not a file of verdicts" in book.refused("verify")
    assert page.read_text() == "mine"
    page.unlink()
    assert "1 held" in book.done("verify")
    assert data.read_text() == "mine"


@pytest.mark.skipif(sys.version_info < (3, 13), reason="Python itself gives up")
def test_a_sum_of_many_terms_costs_its_page_the_programs_alone(book):
    terms = " + ".join(["1"] * 3_000)
    book.chapter("one", f"print({terms})")
    book.index("one")
    said = book.refused("build")
    assert "cell 1 cannot be copied as a program: the page nests code too dee" in said
    book.configure("executed_book_rules = []")
    book.chapter("two", "print(6 * 7)")
    book.index("one", "two")
    assert "1 program: 1 held" in book.done("verify")
    book.built()
    assert "3000" in book.html("one")


def test_a_page_that_was_deleted_is_published_no_more(book):
    book.chapter("one", "1")
    book.chapter("one.more", "2")
    book.index("one", "one.more")
    book.built()
    assert (book.site / "one.html").exists()
    (book.root / "docs" / "one.md").unlink()
    book.index("one.more")
    book.built()
    assert not list(book.site.rglob("one.html"))
    assert not list(book.site.rglob("one.ipynb"))
    assert (book.site / "one.more.html").exists()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python says nothing of it")
def test_what_python_warns_of_in_a_cell_is_said_on_its_page_alone(book):
    warns = ":warns: \"SyntaxWarning: invalid escape sequence '\\\\s'\"\n"
    book.chapter("one", warns + "print('a\\s')")
    book.index("one")
    assert "Warning" not in book.built() + book.done("verify")
    assert "SyntaxWarning" in book.html("one")


def test_a_book_is_told_only_of_what_it_uses(book):
    book.chapter("one", "6 * 7")
    book.index("one")
    said = book.built()
    assert " sentences with " not in said
    assert "record of" not in said
    assert "1 cell\n1 program, not verified: run" in said
    shown = book.done("build", "-Dnb_execution_mode=off")
    assert "programs" not in shown


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is preloaded")
def test_a_page_without_jax_does_not_speak_of_it(book):
    book.chapter("one", "import numpy as np\nnp.arange(3)")
    book.index("one")
    book.built(JAX_ENABLE_X64="0")  # in processes of its own, without our imports
    page = book.html("one")
    assert "with Python 3" in page
    assert "JAX" not in page
    assert "accelerator" not in page
