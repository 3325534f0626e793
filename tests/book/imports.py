"""All that the book's tools and their workers import; see `forks`."""

import importlib

import matplotlib_inline.backend_inline  # noqa: F401

from executed_book.commands import build, pin, record, releases  # noqa: F401
from executed_book.running import script, server, shell, worker  # noqa: F401

for name in (*server.PRELOAD, "executed_book.showing.extension", "sphinx.application"):
    importlib.import_module(name)
