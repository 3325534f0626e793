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
    every = list(book.executed.values())
    with ThreadPoolExecutor(max_workers=2) as pool:
        said = list(pool.map(lambda one: failure(one, tmp_path, compiled), every))
    # In pairs they disturb each other's timings: those that fail run again, alone.
    again = [one for one, text in zip(every, said, strict=True) if text]
    failed = [text for one in again if (text := failure(one, tmp_path))]
    assert not failed, "\n\n".join(failed)
