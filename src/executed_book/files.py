"""Files that are written whole, names of those that are kept of a page, digests."""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

#: A name of a file has at most 255 bytes, and what is kept adds some to a page's.
_LONGEST = 150


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
    """The name of a page as that of a file, without folders; a long one is cut.

    >>> file_name("tracing/xla")
    'tracing--xla'
    """
    name = docname.replace("/", "--")
    raw = name.encode()
    cut = f"{raw[:100].decode(errors='ignore')}-{digest(name)}"
    return name if len(raw) <= _LONGEST else cut


def digest(data: Any) -> str:
    """A name for plain data: equal data, equal name."""
    text = json.dumps(data, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def file_digest(path: Path) -> str | None:
    """The digest of a file's content; None if there is no such file.

    What a folder holds is another question, so all folders have one digest.
    """
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except IsADirectoryError:
        return "a folder"
    except (OSError, ValueError):  # a name that no file can have
        return None


def code_digest(files: Iterable[Path]) -> str:
    """A name for the code in some files: what it made holds while it is the same."""
    return digest([file_digest(path) for path in files])
