"""Files that are written whole, and the names of those that are kept of a page."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that no reader ever sees a part of it; text as UTF-8."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_bytes(content.encode() if isinstance(content, str) else content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def file_name(docname: str) -> str:
    """The name of a page as that of a file, without folders.

    >>> file_name("tracing/xla")
    'tracing--xla'
    """
    return docname.replace("/", "--")
