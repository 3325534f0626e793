"""The tools that execute, check and render the book: a Sphinx extension.

List `executed_book` in `extensions`, after `myst_nb`; or run
`python -m executed_book build`, which adds the progress, the single writer and
the atomic publication.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Set up the Sphinx extension."""
    from .showing.extension import metadata, setup_extension

    setup_extension(app)
    return metadata()
