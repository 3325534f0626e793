"""What makes a second build give the bytes of the first: see `test_determinism`."""

from types import SimpleNamespace
from typing import Any

from executed_book.showing.reproducible import complete_search_index


def app(indexer: Any, entries: dict[str, list[Any]]) -> Any:
    domain = SimpleNamespace(data={"entries": entries})
    env = SimpleNamespace(get_domain={"index": domain}.get)
    return SimpleNamespace(builder=SimpleNamespace(indexer=indexer), env=env)


def test_the_index_is_what_it_would_be_if_all_pages_were_written_now():
    indexer = SimpleNamespace(
        _mapping={"gone": set(), "here": {"a"}},
        _title_mapping={"old": set()},
        _index_entries={"b": [("stale", "", "")], "gone": []},
    )
    entries = {
        "b": [("single", "key; split", "id-1", "", None)],
        "a": [
            ("pair", "one; two", "id-2", "main", None),
            ("see", "x; y", "", "", None),
            ("odd", "no such kind", "", "", None),
        ],
    }
    assert list(complete_search_index(app(indexer, entries))) == []
    assert (indexer._mapping, indexer._title_mapping) == ({"here": {"a"}}, {})
    assert list(indexer._index_entries) == ["a", "b"]
    words = [("one", "id-2", "main"), ("two", "id-2", "main"), ("x", "", "")]
    assert indexer._index_entries["a"] == words
