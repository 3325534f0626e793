"""Tiny books, written and built as a user would."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from textwrap import dedent

import jax  # noqa: F401
import pytest

from executed_book.running import workers
from executed_book.running.fingerprint import STEERING

from . import forks
from .forks import Forked

CONF = """\
from pathlib import Path

project = "Tiny"
extensions = ["myst_nb", "executed_book"]
executed_book_figures = "themed"
nb_execution_in_temp = True
executed_book_rules = "all"
if Path(__file__).parents[1].joinpath("outputs", "cells").is_dir():
    executed_book_outputs = "../outputs/cells"
html_theme = "basic"
html_show_sphinx = False
nitpicky = True
"""

FRONT = """\
---
file_format: mystnb
kernelspec: {name: python3}
---

"""


def simulated(**variables: str) -> dict[str, str]:
    """The variables with which Python runs as on another machine: see `simulated`."""
    place = str(Path(__file__).parents[1] / "simulated")
    folders = filter(None, [place, os.environ.get("PYTHONPATH")])
    return {"PYTHONPATH": os.pathsep.join(folders), **variables}


def on_a_device(**how: object) -> dict[str, str]:
    return simulated(JAX_PLATFORMS="pretend,cpu", PRETEND=json.dumps(how))


def steering(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that what the tools import may read."""
    prefixes = ("PYTHON", *STEERING)
    return {k: v for k, v in variables.items() if k.startswith(prefixes)}


PYTHON = (sys.executable, "-m", "executed_book")

#: With these forks are as good as processes of their own: the variables before any test
#: sets one (importing JAX has set two), and those with a simulated accelerator.
STEERED = [steering({**os.environ, **more}) for more in ({}, on_a_device())]


@dataclass
class TinyBook:
    """A project folder with a book in it."""

    root: Path

    @property
    def site(self) -> Path:
        return self.root / "_build" / "html"

    @property
    def cache(self) -> Path:
        return self.root / "_build" / "cache"

    def page(self, name: str, text: str) -> None:
        path = self.root / "docs" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), "utf-8")

    def chapter(self, name: str, *cells: str, front: str = FRONT) -> None:
        """Write a chapter: a title and code cells; a cell may start with options."""
        body = "\n\n".join(f"```{{code-cell}}\n{dedent(cell)}\n```" for cell in cells)
        self.page(name, f"{front}# {name}\n\n{body}\n")

    def configure(self, *lines: str) -> None:
        """Add lines to `conf.py`."""
        path = self.root / "conf" / "conf.py"
        path.write_text("\n".join([path.read_text(), *lines]) + "\n")

    def add_text(self, name: str, text: str) -> None:
        """Add a paragraph to a page."""
        path = self.root / "docs" / f"{name}.md"
        path.write_text(f"{path.read_text()}\n{text}\n")

    def index(self, *names: str) -> None:
        """Write the landing page, with the chapters' names in its toctree."""
        self.page("index", "# Tiny\n\n```{toctree}\n" + "\n".join(names) + "\n```\n")

    def start(
        self, *arguments: str, python: Sequence[str] = PYTHON, **variables: str
    ) -> subprocess.Popen[str]:
        """Start a command of the book tools here."""
        return subprocess.Popen(
            [*python, *arguments],
            cwd=self.root,
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def fork(self, *arguments: str, **variables: str) -> Forked | subprocess.Popen[str]:
        """Start it in a fork of a process that is ready, unless imports are steered."""
        environment = {**os.environ, **variables}
        if steering(environment) in STEERED:
            return Forked(self.root, arguments, environment)
        return self.start(*arguments, **variables)

    def run(self, *arguments: str, **variables: str) -> tuple[int | None, str]:
        """Run a command to its end: its exit status and what it printed."""
        return ended(self.fork(*arguments, **variables))

    def sphinx(self, *arguments: str) -> tuple[int | None, str]:
        """The same of Sphinx's own command."""
        tool = "sphinx.cmd.build"
        return ended(Forked(self.root, arguments, dict(os.environ), tool))

    def stored(self, name: str, device: str = "cpu") -> Path:
        """The file with what the cells of a page gave on a device, with our JAX."""
        folder = self.root / "outputs" / "cells"
        return folder / f"{device}-{version('jax')}" / f"{name}.txt"

    def done(self, *arguments: str, **variables: str) -> str:
        """Run a command, and insist that it went well; what was printed."""
        status, output = self.run(*arguments, **variables)
        assert status == 0, output
        return output

    def refused(self, *arguments: str, **variables: str) -> str:
        """Run a command, and insist that it finds something wrong; what was printed."""
        status, output = self.run(*arguments, **variables)
        assert status == 1, output
        return output

    def built(self, **variables: str) -> str:
        return self.done("build", **variables)

    def executed(self, **variables: str) -> str:
        return self.done("execute", **variables)

    def html(self, name: str) -> str:
        return (self.site / f"{name}.html").read_text("utf-8")


def ended(process: Forked | subprocess.Popen[str]) -> tuple[int | None, str]:
    """The exit status of a process, once it has ended, and what it printed."""
    try:
        output, _ = process.communicate(timeout=1800)
    finally:
        process.kill()
    return process.returncode, output


def wait_for(path: Path, patience: float = 600.0) -> None:
    give_up = time.monotonic() + patience
    while not path.exists():
        assert time.monotonic() < give_up, f"{path} does not come"
        time.sleep(0.02)


def started_with(variable: str, value: str) -> list[int]:
    """The processes whose environment holds this, with all that they started.

    Only Linux tells, and of a fork what it was forked with.
    """
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if f"{variable}={value}".encode() in environment and state != "Z":
            found.append(int(folder.name))
    return found


def new_book(root: Path) -> TinyBook:
    (root / "docs").mkdir(parents=True)
    (root / "conf").mkdir()
    (root / "conf" / "conf.py").write_text(CONF)
    return TinyBook(root)


def copy_of(book: TinyBook, root: Path) -> TinyBook:
    shutil.copytree(book.root, root, dirs_exist_ok=True)
    return TinyBook(root)


@pytest.fixture
def book(tmp_path: Path) -> TinyBook:
    return new_book(tmp_path)


@pytest.fixture(scope="module")
def ready_workers() -> Iterator[None]:
    """Workers of the test's own process are forked from one that has imported all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "start_server", forks.start_server)
        yield
