"""Each chapter as a downloaded notebook runs from its first cell to its last."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from executed_book.programs.verdicts import HELD, Promise, Verdict
from executed_book.programs.verify import compiled_into
from executed_book.showing.formats import notebook_of_page, readable

from .conftest import LONG


def failure(page, folder, variables=None) -> str | None:
    """What `jupyter execute` says of the chapter's notebook, or None."""
    docname = page.executed.chapter.docname
    path = folder / f"{docname.replace('/', '-')}.ipynb"
    nothing = readable("", docname, "")  # its text plays no part
    path.write_text(notebook_of_page(page.executed, nothing, ""), "utf-8")
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


def test_notebooks_run(book, tmp_path, kept):
    """Those that were not found to run before: verdicts are kept as for programs.

    JAX keeps what it compiles, for all of them. What fails so is run again without it.
    """
    compiled = compiled_into(tmp_path / "compiled")
    waiting = []
    for page in book.pages.values():
        if page.executed.run.seconds > LONG:
            continue
        cells = page.executed.chapter.cells
        promise = Promise("\n".join(f"{cell.source}\n{cell.raises}" for cell in cells))
        verdicts = kept("notebooks", page.executed)
        if verdicts.find(promise) is None:
            waiting.append((page, promise, verdicts))
    with ThreadPoolExecutor(max_workers=2) as pool:
        said = [pool.submit(failure, page, tmp_path, compiled) for page, *_ in waiting]
        failed = []
        for one, told in zip(waiting, said, strict=True):
            if told.result():
                failed.append(one)
            else:
                one[2].note(one[1], "notebook", Verdict(HELD))
    # In pairs they disturb each other's timings: those that fail run again, alone.
    problems = []
    for page, promise, verdicts in failed:
        if problem := failure(page, tmp_path):
            problems.append(problem)
        else:
            verdicts.note(promise, "notebook", Verdict(HELD))
    assert not problems, "\n\n".join(problems)
