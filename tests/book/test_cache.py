"""What is executed again, and what is not."""

import os

import pytest

from .conftest import copy_of, new_book


@pytest.fixture(scope="module")
def two_once(tmp_path_factory):
    book = new_book(tmp_path_factory.mktemp("two"))
    book.index("one", "two")
    book.chapter("one", "import os\nprint('one', os.environ.get('SOME_NAME'))")
    book.chapter("two", "print('two')")
    assert "2 to execute" in book.built()
    return book


@pytest.fixture
def two(two_once, tmp_path):
    return copy_of(two_once, tmp_path)


def test_prose_alone_executes_nothing_and_a_cell_its_chapter_alone(two):
    two.add_text("one", "New prose.")
    assert "0 to execute" in two.built()
    assert "New prose." in two.html("one")
    assert "1 to execute" in two.built(SOME_NAME="set")
    assert "one set" in two.html("one")
    two.add_text("one", "An older file.")
    os.utime(two.root / "docs" / "one.md", (1e9, 1e9))
    assert "0 to execute" in two.built(SOME_NAME="set")
    assert "An older file." in two.html("one")
    two.chapter("one", "print('uno')")
    read = (two.site.parent / ".html-work" / "doctrees" / "two.doctree").stat()
    assert "1 to execute" in two.built()
    assert "uno" in two.html("one")
    again = (two.site.parent / ".html-work" / "doctrees" / "two.doctree").stat()
    assert again.st_mtime_ns == read.st_mtime_ns, "the other page is not read again"


def test_a_changed_renderer_renders_all_and_executes_nothing(two):
    footer = two.root / "conf" / "footer.py"
    said = (
        "def say(app, name, template, context, doctree):\n"
        "    context['body'] = context.get('body', '') + 'SAID'\n\n"
        "def setup(app):\n    app.connect('html-page-context', say)\n"
    )
    here = "import sys; sys.path.insert(0, str(Path(__file__).parent))"
    two.configure("extensions.append('footer')", here)
    # Python takes a file of the same second and the same size for the same.
    for words in ("first words", "others"):
        footer.write_text(said.replace("SAID", words))
        assert "0 to execute" in two.built()
        assert words in two.html("one")
        assert words in two.html("two")
    taken = sorted(path.name for path in two.site.glob("_downloads/*.md"))
    assert taken == ["index.md", "one.md", "two.md"], "what is no page offers nothing"


def test_a_changed_announcement_is_checked_without_running(two):
    two.chapter("two", ':raises: "ValueError: invalid literal"\nint("a")')
    assert "1 to execute" in two.executed()
    two.chapter("two", ':raises: "TypeError: invalid literal"\nint("a")')
    output = two.refused("execute")
    assert "0 to execute" in output
    assert "raises another" in output
