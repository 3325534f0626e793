"""What makes a second build give the bytes of the first."""

from types import SimpleNamespace
from typing import Any

from executed_book.showing.reproducible import (
    complete_search_index,
)


def app(indexer: Any, entries: dict[str, list[Any]]) -> Any:
    domain = SimpleNamespace(data={"entries": entries})
    env = SimpleNamespace(get_domain={"index": domain}.get)
    return SimpleNamespace(builder=SimpleNamespace(indexer=indexer), env=env)


def test_an_entry_that_sphinx_cannot_split_is_left_out():
    indexer = SimpleNamespace(_index_entries={})
    complete_search_index(app(indexer, {"a": [("odd", "x", "", "", None)]}))
    assert indexer._index_entries == {"a": []}


def test_a_builder_without_an_index_is_fine():
    complete_search_index(app(None, {}))
