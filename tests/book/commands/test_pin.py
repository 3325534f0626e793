"""What is accepted, what is refused, and what is removed; nothing is executed here."""

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from executed_book.book import Book
from executed_book.checking.stored import (
    StoredPage,
    outputs_text,
    read_outputs,
    stored_path,
)
from executed_book.commands import pin as module
from executed_book.commands.pin import pin
from executed_book.errors import BookError, PageError
from executed_book.model import Cell, Executed
from executed_book.running.progress import Progress
from executed_book.settings import Settings

from ..made import CPU, chapter, executed, gave, shown


class Pinning:
    """A book whose runs give one thing after the other."""

    def __init__(self, root: Path, monkeypatch) -> None:
        self.settings = Settings(root / "docs", root / "cache", outputs=root / "cells")
        self.asked: list[Settings] = []
        self.log = io.StringIO()
        self._runs: Iterator[str] = iter(())
        self.cells: tuple[Cell, ...] = (Cell(1, "x", 10),)
        self.errors: list[PageError] = []
        monkeypatch.setattr(module, "execute", self._execute)

    def _execute(self, settings: Settings, progress: Progress) -> Book:
        self.asked.append(settings)
        text = next(self._runs)
        made = chapter(*self.cells)
        ran: Executed = executed(made, *[gave(shown(text)) for _ in self.cells])
        return Book([made], {"one": ran}, errors=self.errors)

    def pin(self, *runs: str, **settings) -> list[str]:
        """Pin what these runs give, all of which are asked for; what is said."""
        self._runs, self.asked = iter(runs), []
        self.log.truncate(self.log.seek(0))
        own = replace(self.settings, **settings)
        try:
            pin(own, Progress(self.log))
        finally:
            assert len(self.asked) == len(runs)
        return self.log.getvalue().splitlines()

    @property
    def path(self) -> Path:
        return stored_path(self.settings.outputs, CPU.jax, "one")

    @property
    def accepted(self) -> str | None:
        if not self.path.exists():
            return None
        [cell] = read_outputs(self.path).cells
        return None if cell.varies else cell.text


@pytest.fixture
def pinning(tmp_path, monkeypatch) -> Pinning:
    return Pinning(tmp_path, monkeypatch)


def test_a_new_output_is_shown_and_kept_once_it_is_the_same_twice(pinning):
    said = pinning.pin("1", "1")
    assert "+| 1" in said
    assert said[-1].endswith("; 1 chapter accepted anew")
    assert pinning.accepted == "1"
    first, again = pinning.asked
    assert (first.compares, again.only) == (False, {"one"})
    assert again.cache != first.cache, "the second run is no kept one"


def test_what_is_pinned_already_is_not_run_again(pinning):
    pinning.pin("1", "1")
    said = pinning.pin("1")
    assert said[-1].endswith("; 0 chapters accepted anew")
    said = pinning.pin("2", "2")
    assert {"-| 1", "+| 2"} <= set(said)
    pinning.path.write_bytes(b"\0\xff")
    pinning.pin("2", "2")
    assert pinning.accepted == "2"


def test_an_output_of_two_kinds_is_not_pinned_and_rounding_is_none(pinning):
    with pytest.raises(BookError, match=r"one\.md:10: cell 1 gave two outputs in two"):
        pinning.pin("1", "2")
    assert pinning.accepted is None
    pinning.pin("1.0000000", "1.0000001")
    assert pinning.accepted == "1.0000000"


def test_a_book_with_an_error_changes_no_pin(pinning):
    pinning.errors = [PageError(Path("docs/one.md"), 3, "odd")]
    with pytest.raises(BookError, match="odd"):
        pinning.pin("1")
    assert pinning.accepted is None


def test_pins_of_chapters_that_are_gone_go_and_other_files_stay(pinning):
    folder = pinning.path.parent
    (folder / "part").mkdir(parents=True)
    (folder / "part" / "gone.txt").write_text(outputs_text(StoredPage(CPU, ())))
    (folder / "notes.txt").write_text("mine")
    pinning.pin("1", "1", only=frozenset({"one"}))
    assert (folder / "part" / "gone.txt").exists()
    said = pinning.pin("1")
    assert "removed: gone.txt, of a chapter that is gone" in said
    left = {path.name for path in folder.rglob("*.txt")}
    assert left == {"notes.txt", "one.txt"}


def test_a_book_without_a_folder_for_pins(pinning):
    with pytest.raises(BookError, match="nowhere to keep outputs\n    → name a"):
        pinning.pin(outputs=None)
