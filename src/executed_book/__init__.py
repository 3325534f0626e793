"""Executes, checks and shows a book: a Sphinx extension.

List `executed_book` in `extensions`, after `myst_nb`; or run
`python -m executed_book build`, which adds the progress, the single writer and the
atomic publication.
"""

# Nothing is imported here: until the command line has begun, an interrupt would be
# answered with a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata


def setup(app: "Sphinx") -> "ExtensionMetadata":
    """Set up the Sphinx extension."""
    from pathlib import Path

    from .showing.extension import metadata, setup_extension

    setup_extension(app)
    return metadata(Path(app.confdir))
