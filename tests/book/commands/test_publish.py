"""What the exchange of a site replaces, and what it leaves alone."""

import filecmp
import os
import shutil
import threading

import pytest

from executed_book.commands import publish
from executed_book.commands.publish import MARK, Site, foreign_files, write_mark
from executed_book.errors import BookError

from ..conftest import new_book


def tree(root):
    """What lies below a folder: links with their targets, files with their bytes."""
    return {
        path: (
            path.is_symlink() and path.readlink(),
            path.is_file() and path.read_bytes(),
        )
        for path in root.rglob("*")
    }


@pytest.fixture
def project(tmp_path):
    """A book in a checkout of its own, beside another checkout."""
    book = new_book(tmp_path / "project")
    book.index("one")
    book.chapter("one", "print('ran')")
    for name in ("project", "other"):
        (tmp_path / name / ".git").mkdir(parents=True)
        (tmp_path / name / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "other" / "work.txt").write_text("a day's work")
    (tmp_path / "target").mkdir()
    (book.root / "link").symlink_to(tmp_path / "target")
    (book.root / "file").write_text("a file")
    for name in ("full", "_build/.html-work"):
        (book.root / name).mkdir(parents=True)
        (book.root / name / "mine.txt").write_text("mine")
    return book


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (".", "is inside the book's own folder"),
        ("docs", "is inside the book's own folder"),
        ("conf/site", "is inside the book's own folder conf"),
        ("file", "is a file"),
        ("link", "is a link"),
        ("full", "contains mine.txt, which a build did not make"),
        ("_build/html", ".html-work: is needed by the build, and contains files"),
        ("../other", "contains .git/HEAD and 1 more, which a build did not make"),
    ],
)
def test_what_no_build_made_is_not_replaced(project, output, reason):
    before = tree(project.root.parent)
    said = project.refused("build", "--output", output)
    assert reason in said
    assert ": nothing was done\n    → " in said
    assert "chapter" not in said.partition("→")[0], "it is said before anything runs"
    assert tree(project.root.parent) == before


def test_an_output_among_excluded_files_is_fine(project):
    project.configure('exclude_patterns = ["_build"]')
    project.done("build", "--output", "docs/_build/html")
    said = project.done("build", "--output", "docs/_build/html")
    assert "1 unchanged" in said, "what it wrote is not taken for a page"


def test_a_site_that_something_was_put_into_stands(book):
    book.index("one")
    book.chapter("one", "print('first')")
    book.built()
    mine = [book.site / "mine.txt", book.site / "numpy" / "notes.md"]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    book.chapter("one", "print('second')")
    said = book.refused("build")
    assert "contains mine.txt and 1 more, which a build did not make" in said
    assert [path.read_text() for path in mine] == ["mine", "mine"]
    assert "first" in book.html("one")
    for path in mine:
        path.unlink()
    book.built()
    assert "second" in book.html("one")


def working(output):
    site = Site(output)
    with site.work_alone():
        return site


def made_site(folder, text):
    folder.mkdir(parents=True)
    (folder / "index.html").write_text(text)
    return folder


def test_there_is_no_moment_without_a_site(tmp_path):
    site = working(tmp_path / "html")
    site.publish(made_site(tmp_path / "one", "one"))
    others = [made_site(tmp_path / text, text) for text in ("other", "another")]
    missing, stop = [], threading.Event()

    def look():
        while not stop.is_set():
            try:
                (site.output / "index.html").read_bytes()
            except OSError as error:
                missing.append(error)

    reader = threading.Thread(target=look)
    reader.start()
    for _ in range(50):
        for other in others:
            site.publish(other)
    stop.set()
    reader.join()
    assert not missing


def test_a_site_that_a_build_gives_again_is_left_as_it_is(tmp_path):
    site, built = working(tmp_path / "html"), made_site(tmp_path / "built", "one")
    (built / ".buildinfo").write_text("Sphinx's own")
    site.publish(built)
    stood, page = site.output.stat().st_ino, site.output / "index.html"
    site.publish(built)
    assert site.output.stat().st_ino == stood
    times = page.stat().st_atime_ns, page.stat().st_mtime_ns
    page.write_text("two")  # as long, and as old
    os.utime(page, ns=times)
    filecmp.clear_cache()  # each build is a process of its own
    site.publish(built)
    assert page.read_text() == "one"
    page.unlink()
    site.publish(built)
    assert page.read_text() == "one"
    (built / "more.html").write_text("more")
    site.publish(built)
    assert (site.output / "more.html").exists()


def test_where_two_folders_cannot_be_swapped_they_change_places(tmp_path, monkeypatch):
    monkeypatch.setattr(publish, "_swap", lambda one, other: False)
    site = working(tmp_path / "html")
    for text in ("one", "two"):
        site.publish(made_site(tmp_path / text, text))
        assert (site.output / "index.html").read_text() == text
    assert [path.name for path in site.work.iterdir()] == ["lock"]


def test_a_site_moved_away_by_a_killed_build_comes_back(tmp_path):
    site = working(tmp_path / "html")
    site.publish(made_site(tmp_path / "one", "one"))
    site.output.rename(site.work / "old")
    with site.work_alone():
        assert (site.output / "index.html").read_text() == "one"


def test_a_disk_that_is_full_while_copying_leaves_nothing_half_done(
    tmp_path, monkeypatch
):
    site = working(tmp_path / "html")
    site.publish(made_site(tmp_path / "one", "one"))

    def full(source, target, **_):
        target.mkdir()
        raise shutil.Error([("a", "b", "[Errno 28] No space left on device: 'b'")])

    monkeypatch.setattr(publish.shutil, "copytree", full)
    said = "No space left on device: 'b'; the old site is unchanged"
    with pytest.raises(BookError, match=said):
        site.publish(made_site(tmp_path / "two", "two"))
    assert (site.output / "index.html").read_text() == "one"
    assert [path.name for path in site.work.iterdir()] == ["lock"]


def test_the_mark_names_every_file(tmp_path):
    site = made_site(tmp_path / "site", "text")
    (site / "a").mkdir()
    (site / "a" / "b.html").write_text("b")
    write_mark(site)
    assert foreign_files(site) == []
    (site / "a" / "link").symlink_to("b.html")
    (site / "new.txt").touch()
    assert foreign_files(site) == ["a/link", "new.txt"]
    (site / MARK).write_text("not a mark")
    assert "index.html" in foreign_files(site)
