"""The whole book to take along as a zip."""

import os
import zipfile
from pathlib import Path

import pytest


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "_static").mkdir()
    (tmp_path / "index.html").write_text("<p>one</p>")
    (tmp_path / "_static" / "sheet.css").write_text("p { color: red }")
    return tmp_path


def test_the_zip_holds_the_pages_in_the_same_bytes_each_time(archive, site):
    packed = archive.pack(site, "book")
    first = packed.read_bytes()
    with zipfile.ZipFile(packed) as book:
        assert book.namelist() == ["book/_static/sheet.css", "book/index.html"]
        assert book.read("book/index.html") == b"<p>one</p>"
        modes = {member.external_attr >> 16 for member in book.infolist()}
        assert modes == {0o644}, "others than who unpacks it may read the files"
    packed.unlink()
    assert archive.pack(site, "book").read_bytes() == first
    for broken in (b"", b"no zip"):
        packed.write_bytes(broken)
        assert archive.pack(site, "book").read_bytes() == first


def test_it_is_packed_again_only_when_the_pages_have_changed(archive, site):
    packed = archive.pack(site, "book")
    os.utime(packed, (0, 0))
    archive.pack(site, "book")
    assert packed.stat().st_mtime == 0
    (site / "index.html").write_text("<p>two</p>")
    archive.pack(site, "book")
    with zipfile.ZipFile(packed) as book:
        assert book.read("book/index.html") == b"<p>two</p>"
    (site / "_static" / "sheet.css").unlink()
    archive.pack(site, "book")
    with zipfile.ZipFile(packed) as book:
        assert book.namelist() == ["book/index.html"]
