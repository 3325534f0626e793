"""A page is read once for as long as it is the same."""

import pickle
from pathlib import Path

import pytest

from executed_book.reading import cache
from executed_book.reading.pages import read_pages
from executed_book.settings import Settings

PAGE = "---\nfile_format: mystnb\n---\n\n```{code-cell}\nx = 41\n```\n{value}`x`\n"


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Reads the book; gives its chapters, its errors, and the names of pages parsed."""
    source = tmp_path / "docs"
    source.mkdir()
    parsed: list[str] = []
    read_page = cache.read_page

    def noting(path: Path, *arguments: object):
        parsed.append(path.stem)
        return read_page(path, *arguments)

    monkeypatch.setattr(cache, "read_page", noting)

    def read(rules: tuple[str, ...] = ()):
        parsed.clear()
        settings = Settings(source, tmp_path / "cache", rules=frozenset(rules))
        readings = read_pages(settings)
        errors = [error for reading in readings for error in reading.errors]
        return [r.chapter for r in readings if r.chapter], errors, [*parsed]

    read.source = source
    return read


def test_a_page_is_parsed_again_only_when_it_has_changed(read):
    (read.source / "one.md").write_text(PAGE)
    (read.source / "text.md").write_text("# No cells\n")
    first, _, parsed = read()
    assert parsed == ["one", "text"]
    again, _, parsed = read()
    assert parsed == []
    assert again == first
    assert again[0].cells[0].values[0].expression == "x"
    (read.source / "one.md").write_text(PAGE.replace("41", "42"))
    changed, _, parsed = read()
    assert parsed == ["one"]
    assert changed[0].cells[0].source == "x = 42"
    assert read(rules=("options",))[2] == ["one", "text"]


def test_what_is_wrong_with_a_page_is_told_each_time(read):
    (read.source / "one.md").write_text(PAGE.replace("x = 41", ":tags: [odd]\nx = 41"))
    for _ in range(2):
        _, errors, parsed = read(rules=("options",))
        assert parsed == ["one"]
        assert "unknown cell tag 'odd'" in str(errors[0])


@pytest.mark.parametrize("content", [b"", b"odd", None])
def test_a_broken_file_in_the_cache_costs_a_parsing(read, content: bytes | None):
    (read.source / "one.md").write_text(PAGE)
    first, *_ = read()
    (file,) = (read.source.parent / "cache" / "read").iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:80] if content is None else content)
    again, _, parsed = read()
    assert parsed == ["one"]
    assert again == first


class Opens:
    """What a pickle would call when it is loaded."""

    def __reduce__(self):
        return open, ("made", "w")


def test_a_file_in_the_cache_runs_no_code(read, monkeypatch):
    monkeypatch.chdir(read.source.parent)
    (read.source / "one.md").write_text(PAGE)
    first, *_ = read()
    (file,) = (read.source.parent / "cache" / "read").iterdir()
    key = file.read_bytes().partition(b"\n")[0]
    file.write_bytes(key + b"\n" + pickle.dumps((Opens(), (), False)))
    assert read() == (first, [], ["one"])
    assert not Path("made").exists()


def test_a_page_with_a_cell_from_a_file_is_kept_as_long_as_both_are_the_same(read):
    (read.source / "cell.py").write_text("x = 1")
    (read.source / "one.md").write_text(PAGE.replace("x = 41", ":load: cell.py\n"))
    assert read()[2] == ["one"]
    assert read()[2] == []
    (read.source / "cell.py").write_text("x = 2")
    assert read()[2] == ["one"]
    (read.source / "cell.py").unlink()
    _, errors, _ = read()
    assert "cannot be read" in str(errors[0])
