"""What is recorded of a book that nobody here wrote, on a tiny one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.book.conftest import new_book

from .other_book import ROOT, Place, main, tables

PAGES = {
    "index": "# Tiny\n\n```{toctree}\ngood\nbad\n```\n",
    "good": "print(6 * 7)",
    "bad": "1 / 0",
    "figure": "import matplotlib.pyplot as plt\n_ = plt.plot([1, 2])",
    "files": "print(open('data.txt').read())",
    "same": "print(1)\n```\n\n```{code-cell}\nprint(1)",
}
CONF = """\
extensions = ["myst_nb"]
suppress_warnings = ["toc.not_included"]
nb_execution_timeout = 60
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a book: a page that fails, and one that needs a file."""
    root = tmp_path / "book"
    (root / "text").mkdir(parents=True)
    for name, body in PAGES.items():
        if name != "index":
            front = "---\nfile_format: mystnb\nkernelspec: {name: python3}\n---\n"
            body = f"{front}# {name}\n\n```{{code-cell}}\n{body}\n```\n"
        (root / "text" / f"{name}.md").write_text(body)
    (root / "text" / "data.txt").write_text("some data")
    for command in (
        "init -q",
        "add .",
        "-c user.name=me -c user.email=me@here commit -qm one",
    ):
        subprocess.run(["git", "-C", str(root), *command.split()], check=True)
    (root / "text" / "good.md").write_text("changed since")
    return root


@pytest.mark.weekly
def test_what_is_kept_of_a_book(repository, tmp_path):
    conf, kept = tmp_path / "conf.py", tmp_path / "kept" / "tiny.json"
    conf.write_text(CONF)
    options = ["--title=Tiny", "--source=text", f"--python={sys.executable}"]
    main([str(repository), str(conf), *options, f"--keep={kept}"])
    found = json.loads(kept.read_text())
    head = ["git", "-C", str(repository), "rev-parse", "HEAD"]
    assert found["commit"] == subprocess.check_output(head, text=True).strip()
    assert found["refused"] == {"bad": "cell 1 raised ZeroDivisionError"}
    assert found["failed in MyST-NB"] == ["bad"]
    assert (found["executed pages"], found["cells"]) == (5, 6)
    assert found["pages"] == {"executed_book": 6, "MyST-NB": 6}
    assert found["figures"] == {"executed_book": 1, "MyST-NB": 1}
    programs = found["programs"]
    assert (programs["pages"], programs["of"]) == (4, 4)
    assert (programs["held"], programs["needs files"]) == (4, 1)
    assert (programs["hold beside their files"], programs["offered"]) == (1, 5)
    for kind in ("seconds", "CPU seconds"):
        for seconds in found[kind].values():
            assert all(value > 0 for value in seconds.values())
    assert "\nrefused,1\n" in (kept.parent / "books.csv").read_text()
    assert (kept.parent / "refused.csv").read_text().splitlines()[1:] == [
        "Tiny,bad,cell 1 raised ZeroDivisionError,failed"
    ]


def test_a_page_that_computes_counts_as_cpu_of_the_build(tmp_path):
    """Workers are not children of the command that is measured."""
    book = new_book(tmp_path)
    book.chapter("one", "import time\nwhile time.process_time() < 2: pass")
    place = Place(book.root, "docs", "conf", sys.executable)
    first, again = place.ours("execute"), place.ours("execute")
    assert first.status == again.status == 0, first.text
    assert first.cpu - again.cpu > 1.5


def test_the_tables_of_the_page_are_those_of_the_kept_runs():
    folder = ROOT / "outputs" / "books"
    for name, text in tables(folder).items():
        assert (folder / name).read_text() == text
