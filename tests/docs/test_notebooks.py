"""Each chapter as a downloaded notebook runs from its first cell to its last."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from justafter.book._chapters import Chapter
from justafter.book._execute import Book
from justafter.book._snippets import chapter_notebook


def failure(chapter: Chapter, run: dict, folder: str) -> str | None:
    """What went wrong in a Jupyter kernel, or None."""
    client = NotebookClient(
        chapter_notebook(chapter, run),
        timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": folder}},
    )
    try:
        client.execute(env={**os.environ, "JAX_PLATFORMS": "cpu"})
    except CellExecutionError as error:
        return f"docs/{chapter.docname}.md: {error}"
    return None


# Closing a kernel leaves sockets of its own to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_notebooks_run(book: Book, tmp_path):
    def run(chapter: Chapter) -> str | None:
        return failure(chapter, book.runs[chapter.docname], str(tmp_path))

    with ThreadPoolExecutor(max_workers=2) as pool:
        said = list(pool.map(run, book.chapters))
    # In pairs they disturb each other's timings: those that fail run again, alone.
    again = [c for c, text in zip(book.chapters, said, strict=True) if text]
    failed = [text for text in map(run, again) if text]
    assert not failed, "\n\n".join(failed)
