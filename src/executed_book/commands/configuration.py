"""What Sphinx's configuration says that is needed before Sphinx runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.config import Config
from sphinx.errors import SphinxError
from sphinx.util.tags import Tags

from ..errors import BookError


def page_patterns(folder: Path) -> dict[str, Any]:
    """Which pages belong to the book, from the `conf.py` in a folder.

    Raises:
        BookError: there is none, or it cannot be read.
    """
    if not (folder / "conf.py").is_file():
        raise BookError(
            f"{folder}: no conf.py in it; name the folder that holds it with --config"
        )
    try:
        config = Config.read(folder.resolve(), overrides={}, tags=Tags())
    except SphinxError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise BookError(f"{folder / 'conf.py'}: {lines[0]} {lines[-1]}") from None
    return {
        "include": tuple(config.include_patterns),
        "exclude": tuple(config.exclude_patterns),
    }
