"""All that the book's tools and their workers import and find out once; see `forks`."""

import contextlib
import gc
import importlib
import io
import signal
import sys
import tempfile
from pathlib import Path

import matplotlib_inline.backend_inline  # noqa: F401

from executed_book.commands import line, pin, record, releases  # noqa: F401
from executed_book.running import fingerprint, script, server, shell, worker  # noqa: F401

for name in (*server.PRELOAD, "executed_book.showing.extension", "sphinx.application"):
    importlib.import_module(name)

CELL = "---\nfile_format: mystnb\n---\n# A\n\n```{code-cell}\nprint(1)\n```\n"


def build_once(folder: Path) -> None:
    """Render a book, which brings extensions, patterns and templates into memory."""
    for name in ("conf", "docs"):
        (folder / name).mkdir()
    extensions = 'extensions = ["myst_nb", "executed_book"]'
    off = 'nb_execution_mode = "off"\nhtml_theme = "basic"'
    (folder / "conf" / "conf.py").write_text(f"{extensions}\n{off}\n")
    (folder / "docs" / "index.md").write_text("# I\n\n```{toctree}\na\n```\n")
    (folder / "docs" / "a.md").write_text(CELL)
    path, said = list(sys.path), io.StringIO()
    handlers = {number: signal.getsignal(number) for number in line.STOPPING}
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.chdir(folder))
        stack.enter_context(contextlib.redirect_stdout(said))
        stack.enter_context(contextlib.redirect_stderr(said))
        status = line.main(["build"])
    for number, handler in handlers.items():
        signal.signal(number, handler)
    sys.path[:] = path
    if status:
        raise RuntimeError(said.getvalue())


with tempfile.TemporaryDirectory() as folder:
    build_once(Path(folder))
# What an execution finds out besides: the versions of what is installed.
for names in fingerprint._owners().values():
    for name in names:
        fingerprint.installed_version(name)
# So that neither a fork nor its garbage collector writes to what they share.
gc.collect()
gc.freeze()
