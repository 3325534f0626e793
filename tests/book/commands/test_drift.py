"""`snapshot` and `drift`: what is written, and what is told."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from executed_book.book import Book
from executed_book.commands import drift as module
from executed_book.commands.drift import drift, snapshot
from executed_book.errors import BookError
from executed_book.running.progress import Progress
from executed_book.settings import Settings

from ..made import chapter, executed, gave, raised, shown


@pytest.fixture
def log() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def progress(log: io.StringIO) -> Progress:
    return Progress(Console(file=log, width=200, highlight=False))


def taken(root: Path, monkeypatch, progress: Progress, name: str, *results) -> Path:
    """A snapshot of a chapter of two cells that gave this."""
    made = chapter("x", "y")
    asked = []

    def execute(settings: Settings, progress: Progress) -> Book:
        asked.append(settings)
        return Book([made], {"one": executed(made, *results)})

    monkeypatch.setattr(module, "execute", execute)
    own = Settings(root / "docs", root / "cache", pins=root / "pins")
    snapshot(own, root / name, progress)
    [settings] = asked
    assert settings.pins is None, "another version may give another output"
    assert settings.cache != own.cache, "every chapter runs anew"
    assert not settings.cache.exists()
    return root / name


def test_what_differs_is_told_and_kept(tmp_path, monkeypatch, progress, log):
    arguments = (tmp_path, monkeypatch, progress)
    base = taken(*arguments, "base.json", gave(shown("1")), gave(shown("2")))
    other = taken(*arguments, "other.json", gave(shown("9")), raised())
    drift(base, other, tmp_path / "kept", tmp_path / "page.md", progress)
    assert log.getvalue().splitlines() == [
        "one: cell 1 changed",
        "one: cell 2 broke",
        "2 of 2 cells differ",
    ]
    [kept] = (tmp_path / "kept").iterdir()
    assert [c["kind"] for c in json.loads(kept.read_text())["changes"]] == [
        "changed",
        "broke",
    ]
    assert "Of 2 cells, 2 differ." in (tmp_path / "page.md").read_text()


def test_a_chapter_that_broke_is_told_as_such(tmp_path, monkeypatch, progress, log):
    arguments = (tmp_path, monkeypatch, progress)
    base = taken(*arguments, "base.json", gave(), gave())
    plain = json.loads(base.read_text())
    plain["chapters"]["one"]["broken"] = "SIGSEGV"
    (tmp_path / "other.json").write_text(json.dumps(plain))
    drift(base, tmp_path / "other.json", tmp_path / "k", tmp_path / "p.md", progress)
    assert log.getvalue().splitlines()[0] == "one: the chapter broke"


def test_where_nothing_runs_nothing_is_written(tmp_path, monkeypatch, progress):
    with pytest.raises(BookError, match="no chapter runs here"):
        taken(tmp_path, monkeypatch, progress, "base.json", gave())
    assert not (tmp_path / "base.json").exists()
