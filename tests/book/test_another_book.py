"""A book that is not ours: its own layout and tags, with nothing but the extension."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import TinyBook
from .test_six_promises import deep_metadata, links_into_itself, write

CONF = """\
project = "Another"
extensions = ["myst_nb", "executed_book"]
html_theme = "alabaster"
exclude_patterns = ["_out", "drafts"]
nb_execution_excludepatterns = ["old/*"]
nb_execution_timeout = 60
"""

PAGE = """\
---
jupytext:
  text_representation: {format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
---
# First

```{code-cell} ipython3
:id: colab-id
%matplotlib inline
import numpy as np
import matplotlib.pyplot as plt
from helper import seven
```

```{code-cell} ipython3
:tags: [hide-input, some-tag-of-theirs]
plt.plot(np.arange(3))
```

```{code-cell} ipython3
:tags: [raises-exception]
1 / 0
```

```{code-cell} ipython3
:tags: [skip-execution]
this_is = never + run
```

```{code-cell} ipython3
:tags: [remove-stderr]
import sys
print("to stderr", file=sys.stderr)
print(object(), seven(), open("data.txt").read())
```

It takes 3.2 times as long, 5 ms.

```{code-cell} ipython3
from myst_nb import glue
glue("answer", 42, display=False)
```

Pasted: {glue}`answer`.

```{code-cell} ipython3
!echo from the shell
%timeit -n1 -r1 seven()
np.arange(4)
```
"""


SECOND = "# A notebook\n\nThe sum is {value}`x + 1`."


def notebook(source: str, text: str = "# A notebook") -> str:
    """A notebook as an editor leaves it: a cell with an output, and a text below."""
    output = {"output_type": "stream", "name": "stdout", "text": "stored before\n"}
    cell = {"cell_type": "code", "source": source, "metadata": {"ExecuteTime": {}}}
    cell |= {"outputs": [output], "execution_count": 7}
    title = {"cell_type": "markdown", "source": text, "metadata": {}}
    metadata = {"kernelspec": {"name": "theirs", "display_name": "Theirs"}}
    whole = {"nbformat": 4, "nbformat_minor": 4, "metadata": metadata}
    return json.dumps(whole | {"cells": [cell, title]})


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("another")
    source = root / "source"
    (source / "old").mkdir(parents=True)
    (source / "drafts").mkdir()
    (source / "conf.py").write_text(CONF)
    (source / "index.rst").write_text(
        "Another\n=======\n\n.. toctree::\n\n"
        "   first\n   second\n   old/third\n   old/fourth\n"
    )
    (source / "first.md").write_text(PAGE)
    (source / "helper.py").write_text("def seven():\n    return 7\n")
    (source / "data.txt").write_text("some data")
    (source / "second.ipynb").write_text(notebook("x = 6\nprint(x * 7)", SECOND))
    (source / "old" / "third.ipynb").write_text(notebook("1 / 0"))
    (source / "old" / "fourth.md").write_text(
        "---\nfile_format: mystnb\n---\n# Fourth\n\n```{code-cell}\n1 / 0\n```\n"
    )
    (source / "drafts" / "fourth.md").write_text(PAGE.replace("1 / 0", "("))
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "source", "_out/html"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout[-600:] + built.stderr[-600:]
    return root / "_out" / "html"


def text(site: Path, name: str) -> str:
    page = (site / f"{name}.html").read_text("utf-8")
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", page))


def test_what_other_books_use_works(site):
    first = text(site, "first")
    assert "ZeroDivisionError" in first
    assert "division by zero" in first
    assert "this_is = never + run" in first
    assert "NameError" not in first
    assert "&lt;object object at 0x" in first
    assert "7 some data" in first, "modules and data beside the page are found"
    assert "Pasted: 42." in first
    assert "from the shell" in first
    assert "array([0, 1, 2, 3])" in first
    assert "to stderr" not in re.sub(r'print\((&quot;|")to stderr', "", first)


def test_figures_are_their_authors_and_each_cell_that_can_be_copied_is(site):
    first, second = ((site / f"{n}.html").read_text() for n in ("first", "second"))
    assert first.count("<img") == 1, "one figure, without a twin"
    assert re.search(r'src="_images/\w+\.png"', first)
    assert first.count('class="program-box"') >= 3
    assert second.count('class="program-box"') == 1


def test_a_notebook_is_executed_and_an_excluded_one_left_as_it_is(site):
    second = text(site, "second")
    assert "42" in second
    assert "The sum is 7." in second
    assert "stored before" not in second
    assert "Executed" in second, "it carries a stamp"
    assert (site / "_downloads" / "second.ipynb").exists()
    for name, words in {"old/third": "stored before", "old/fourth": "1 / 0"}.items():
        assert words in text(site, name)
        assert "Executed" not in text(site, name), "it carries no stamp"
    assert not (site / "drafts").exists()


def test_a_second_build_executes_nothing(site):
    status, said = TinyBook(site.parents[1]).sphinx("-W", "source", "_out/html")
    assert status == 0, said
    assert "2 unchanged, 0 to execute" in said


def test_sphinx_says_what_failed_and_of_pages_left_out_nothing(
    book, tmp_path_factory, monkeypatch
):
    scratch = tmp_path_factory.mktemp("scratch")
    monkeypatch.setenv("TMPDIR", str(scratch))
    book.chapter("good", "print(6 * 7)")
    book.chapter("bad", "1 / 0")
    book.index("good", "bad")
    places = ("-q", "-c", "conf", "docs", "out")
    status, said = book.sphinx(*places)
    assert status == 2
    assert "bad.md:9: cell 1 raised ZeroDivisionError" in said
    assert "report" not in said
    assert "extension.py" not in said
    assert list(scratch.iterdir()) == [], "no report of a defect"
    left_out = "-Dnb_execution_excludepatterns=bad.md,other.md"
    assert book.sphinx(*places, "-W", left_out)[0] == 0
    assert "42" in (book.root / "out" / "good.html").read_text()
    book.done("build", left_out)


def custom_format(book: TinyBook) -> None:
    book.configure("nb_custom_formats = {'.Rmd': ['jupytext.reads', {}]}")


SPOILT = {
    "links": (links_into_itself, "docs/again:1: a link to a folder that it lies in"),
    "deep": (deep_metadata, "deep.ipynb: its data, metadata or outputs are nested too"),
    "format": (custom_format, ".Rmd in nb_custom_formats or source_suffix; only .md"),
    "list": (write("left.ipynb", b"[]"), "left.ipynb: not a notebook"),
}


@pytest.mark.parametrize(("spoil", "words"), SPOILT.values(), ids=SPOILT)
def test_sphinx_says_in_one_error_what_it_cannot_read(book, spoil, words):
    book.chapter("good", "print(6 * 7)")
    book.index("good")
    spoil(book)
    mode = "-Dnb_execution_mode=off"  # pages that are executed are looked at before
    status, said = book.sphinx("-q", "-c", "conf", mode, "docs", "out")
    assert status == 2, said
    assert words in said
    assert "report" not in said
    assert "extension.py" not in said


def test_a_book_needs_neither_matplotlib_nor_jax(book, tmp_path_factory):
    modules = tmp_path_factory.mktemp("modules")
    # As where it is not installed, though the backend that IPython brings is.
    (modules / "sitecustomize.py").write_text(
        "import sys\n"
        "sys.modules['matplotlib'] = None\n"
        "class Without:\n"
        "    def find_spec(self, name, *more):\n"
        "        if name.partition('.')[0] in ('jax', 'jaxlib'):\n"
        "            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Without())\n"
    )
    folders = filter(None, [str(modules), os.environ.get("PYTHONPATH")])
    book.chapter("one", "6 * 7")
    book.executed(PYTHONPATH=os.pathsep.join(folders))
