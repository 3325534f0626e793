"""Faults elsewhere that make a second build give other bytes than the first.

They are known by a test that builds several times; when it passes without this
module, the module goes.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from myst_nb.sphinx_ext import add_global_html_resources
from sphinx.application import Sphinx
from sphinx.util.index_entries import split_index_msg


def copy_notebook_styles(app: Sphinx, *_: Any) -> None:
    """Put MyST-NB's style sheet in place before any page is written.

    MyST-NB copies it at the very end, so that Sphinx finds no file to take the checksum
    of, which it writes into the link, except where an earlier build has left one.
    """
    Path(app.outdir, "_static").mkdir(parents=True, exist_ok=True)
    add_global_html_resources(app, None)


def complete_search_index(app: Sphinx) -> Iterable[Any]:
    """Make the search index what it would be if all pages had been written now.

    Sphinx reads the index of the earlier build back without the index entries of pages,
    and keeps words that are on no page any more.
    """
    indexer = getattr(app.builder, "indexer", None)
    for name in ("_mapping", "_title_mapping"):
        words = getattr(indexer, name, {})
        for word in [word for word, pages in words.items() if not pages]:
            del words[word]
    index_entries = getattr(indexer, "_index_entries", None)
    if index_entries is not None:
        index_entries.clear()  # so that their order is one, whatever was written now
        every = app.env.get_domain("index").data["entries"]
        for docname, entries in sorted(every.items()):
            index_entries[docname] = sorted(
                {word for e in entries for word in _words(*e)}
            )
    return ()


def _words(
    kind: str, value: str, target: str, main: str, *_: Any
) -> Iterable[tuple[str, str, str]]:
    parts = split_index_msg(kind, value)
    for part in parts[:1] if kind in ("see", "seealso") else parts:
        yield part, target or "", main


def setup_reproducible(app: Sphinx) -> None:
    """Have two builds of the same book write the same bytes."""
    app.connect("builder-inited", copy_notebook_styles, priority=900)
    app.connect("html-collect-pages", complete_search_index)
