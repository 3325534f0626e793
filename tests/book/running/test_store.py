"""Entries are whole, sealed, and hold only while what they depend on is as it was."""

import os
import time
from pathlib import Path

import pytest

from executed_book.running.store import KEEP_SECONDS, Store

KEY = "0123456789abcdef01234567"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache", tmp_path)


def test_what_is_kept_is_found_with_its_seal(store):
    seal = store.save("a/b", KEY, {"text": "é"})
    assert store.path("a/b", KEY).name == f"a--b-{KEY}.json"
    assert store.load("a/b", KEY) == {"text": "é", "seal": seal}
    assert store.load("a/b", KEY[::-1]) is None
    assert store.save("a/b", KEY, {"text": "other"}) != seal


@pytest.mark.parametrize("damage", [b"", b"x\n{}", b"\xff\xfe", None])
def test_what_is_not_whole_is_not_there(store, damage):
    store.save("a", KEY, {"text": "long enough"})
    path = store.path("a", KEY)
    path.write_bytes(path.read_bytes()[:-3] if damage is None else damage)
    assert store.load("a", KEY) is None


@pytest.mark.parametrize("depends", [[], {"files": 3}, {"modules": {"a": "1"}}])
def test_an_entry_of_another_form_does_not_hold(store, depends):
    store.save("a", KEY, {"depends": depends})
    assert store.load("a", KEY) is None


def aged(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_entries_of_a_name_are_its_own_the_newest_first(store):
    other = KEY[::-1]
    for name in ("one", "one-two", "one--three", "[o]ne"):
        store.save(name, KEY, {})
    store.save("one", other, {})
    aged(store.path("one", KEY), 100)
    assert store.entries("one") == [store.path("one", other), store.path("one", KEY)]
    assert store.entries("[o]ne") == [store.path("[o]ne", KEY)]
    assert store.entries("two") == []


def test_what_is_used_is_kept_and_what_is_old_goes(store):
    names = ("used", "old", "new")
    for name in names:
        store.save(name, KEY, {})
        if name != "new":
            aged(store.path(name, KEY), KEEP_SECONDS + 60)
    store.load("used", KEY)
    foreign = store.folder / "notes.json"
    foreign.write_text("mine")
    aged(foreign, KEEP_SECONDS + 60)
    store.prune()
    left = {foreign, store.path("new", KEY), store.path("used", KEY)}
    assert {*store.folder.iterdir()} == left
