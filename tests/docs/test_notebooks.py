"""Each chapter as a downloaded notebook runs from its first cell to its last."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat

from executed_book.book import Book
from executed_book.model import Executed
from executed_book.programs.snippets import chapter_notebook
from executed_book.programs.verdicts import Promise

from .conftest import LONGEST


def failure(
    executed: Executed, folder: Path, variables: dict[str, str] | None = None
) -> str | None:
    """What `jupyter execute` says of the chapter's notebook, or None."""
    docname = executed.chapter.docname
    path = folder / f"{docname.replace('/', '-')}.ipynb"
    nbformat.write(chapter_notebook(executed), path)
    # A process of its own: a notebook client leaves its sockets to the garbage
    # collector, which tells whichever test happens to run at that moment.
    client = "from nbclient.cli import main; main()"
    ran = subprocess.run(
        [sys.executable, "-c", client, "--timeout=300", path.name],
        cwd=folder,
        env={**os.environ, "JAX_PLATFORMS": "cpu", **(variables or {})},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    if ran.returncode == 0:
        return None
    return f"docs/{docname}.md\n{ran.stderr[-3000:]}"


def test_notebooks_run(book: Book, tmp_path: Path, compiled: dict[str, str]):
    """Those that were not found to run before: verdicts are kept as for programs."""
    waiting = []
    for docname, executed in book.executed.items():
        if executed.run.seconds > LONGEST:
            continue
        promise = Promise(nbformat.writes(chapter_notebook(executed)))
        verdicts = book.offers[docname][0].verdicts
        if not verdicts.has(promise) or verdicts.problem(promise):
            waiting.append((executed, promise, verdicts))
    with ThreadPoolExecutor(max_workers=2) as pool:
        said = [
            pool.submit(failure, executed, tmp_path, compiled)
            for executed, *_ in waiting
        ]
        failed = []
        for one, told in zip(waiting, said, strict=True):
            if told.result():
                failed.append(one)
            else:
                one[2].note(one[1], None)
    # In pairs they disturb each other's timings: those that fail run again, alone.
    problems = []
    for executed, promise, verdicts in failed:
        problem = failure(executed, tmp_path)
        verdicts.note(promise, problem)
        problems += [problem] if problem else []
    assert not problems, "\n\n".join(problems)
