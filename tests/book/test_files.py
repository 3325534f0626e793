"""Files are written whole or not at all."""

from pathlib import Path

import pytest

from executed_book.files import file_name, write_whole


@pytest.mark.parametrize("content", ["é\r\n", "é\r\n".encode()])
def test_text_is_written_as_utf8_with_its_own_line_ends(tmp_path, content):
    write_whole(tmp_path / "a" / "b.txt", content)
    assert (tmp_path / "a" / "b.txt").read_bytes() == b"\xc3\xa9\r\n"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.txt"]


def test_an_old_file_stands_until_the_new_one_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "b.txt"
    path.write_text("old")

    def full(self: Path, content: bytes) -> None:
        self.touch()
        assert path.read_text() == "old"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["b.txt"]


def test_the_name_of_a_page_deep_in_folders_fits_into_a_file_system():
    deep = "/".join(["é" * 60] * 6)
    assert len(file_name(deep).encode()) < 150
    assert file_name(deep) != file_name(deep + "/a")
