"""Each chapter as a downloaded notebook runs from its first cell to its last.

It runs as a reader has it: in an environment with JAX, Jupyter and Matplotlib alone, by
Jupyter's own kernel, with its first cell installing the rest.
"""

import json
import os
import runpy
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import pytest

from executed_book.programs.verdicts import HELD, Promise, Verdict
from executed_book.programs.verify import compiled_into
from executed_book.showing.formats import notebook_of_page, readable
from executed_book.showing.installing import Installing, first_cell

from .conftest import ROOT

#: Of a reader who has not installed anything for the book.
READERS = (f"jax=={version('jax')}", "jupyter", "matplotlib")
#: Of the environment that runs these tests.
OWN = ("PYTHONPATH", "VIRTUAL_ENV", "FORCE_COLOR", "NO_COLOR")


@pytest.fixture(scope="session")
def conf() -> dict:
    return runpy.run_path(str(ROOT / "conf" / "conf.py"))


@pytest.fixture(scope="session")
def readers(tmp_path_factory) -> Path:
    """A reader's environment, of which each notebook gets a copy."""
    place = tmp_path_factory.mktemp("readers") / "base"
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    pip = [place / "bin" / "python", "-m", "pip", "install", "-q"]
    subprocess.run([*pip, *READERS], check=True, env=outside())
    return place


@pytest.fixture(scope="session")
def wheels(conf, tmp_path_factory) -> list[Path]:
    """The packages that the site offers for download."""
    place = tmp_path_factory.mktemp("wheels")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", place]
    for project in conf["archive_wheels"].values():
        subprocess.run(command, cwd=project, check=True, capture_output=True)
    assert {path.name for path in place.iterdir()} == set(conf["archive_wheels"])
    return list(place.iterdir())


def outside(**variables: str) -> dict[str, str]:
    """The variables of a reader's process."""
    own = {name: value for name, value in os.environ.items() if name not in OWN}
    return {**own, "JAX_PLATFORMS": "cpu", **variables}


class Reader:
    """Takes notebooks home, and runs them there."""

    def __init__(self, conf: dict, base: Path, wheels: list[Path], place: Path) -> None:
        self.base, self.wheels, self.place = base, wheels, place
        also = conf["executed_book_install_also"]
        self.installing = Installing(tuple(conf["executed_book_install"]), also)
        self.environ = conf["executed_book_install_environ"]

    def notebook(self, page) -> str:
        """A page's notebook, as a site without an address has it."""
        docname = page.executed.chapter.docname
        code = "\n".join(cell.source for cell in page.executed.chapter.cells)
        first = first_cell(self.installing, code, self.environ)
        nothing = readable("", docname, "")  # its text plays no part
        return notebook_of_page(page.executed, nothing, first)

    def failure(self, page, variables=None) -> str | None:
        """What `jupyter execute` says of the chapter's notebook, or None."""
        docname = page.executed.chapter.docname
        home = self.place / docname.replace("/", "-")
        shutil.rmtree(home, ignore_errors=True)
        # Files are shared: pip and Python replace those that they change.
        links = {"symlinks": True, "copy_function": os.link}
        shutil.copytree(self.base, home / "env", **links)
        for wheel in self.wheels:
            shutil.copy(wheel, home)
        path = home / "page.ipynb"
        path.write_text(self.notebook(page), "utf-8")
        python = home / "env" / "bin" / "python"
        ran = subprocess.run(
            [python, "-m", "jupyter", "execute", "--inplace", "--timeout=600", path],
            cwd=home,
            env=outside(
                PATH=f"{python.parent}:{os.environ['PATH']}", **(variables or {})
            ),
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
        )
        shutil.rmtree(home / "env")
        if ran.returncode:
            return f"docs/{docname}.md\n{ran.stderr[-3000:]}"
        said = json.dumps(json.loads(path.read_text("utf-8"))["cells"][0]["outputs"])
        return f"docs/{docname}.md\n{said}" if "NOT INSTALLED" in said else None


def test_notebooks_run(book, conf, readers, wheels, tmp_path, kept):
    """Those that were not found to run before: verdicts are kept as for programs.

    JAX keeps what it compiles, for all of them. What fails so is run again without it.
    """
    compiled = compiled_into(tmp_path / "compiled")
    reader = Reader(conf, readers, wheels, tmp_path)
    waiting = []
    for page in book.pages.values():
        cells = json.loads(reader.notebook(page))["cells"]
        sources = [c["source"] for c in cells if c["cell_type"] == "code"]
        promise = Promise("\n".join(sources))
        verdicts = kept("notebooks", page.executed)
        if verdicts.find(promise) is None:
            waiting.append((page, promise, verdicts))
    with ThreadPoolExecutor(max_workers=2) as pool:
        said = [pool.submit(reader.failure, page, compiled) for page, *_ in waiting]
        failed = []
        for one, told in zip(waiting, said, strict=True):
            if told.result():
                failed.append(one)
            else:
                one[2].note(one[1], "notebook", Verdict(HELD))
    # In pairs they disturb each other's timings: those that fail run again, alone.
    problems = []
    for page, promise, verdicts in failed:
        if problem := reader.failure(page):
            problems.append(problem)
        else:
            verdicts.note(promise, "notebook", Verdict(HELD))
    assert not problems, "\n\n".join(problems)
