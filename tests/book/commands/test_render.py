"""Rendering starts afresh after a build that did not finish, and says what failed."""

from pathlib import Path

import pytest

from executed_book.book import Book
from executed_book.commands.render import Rendering
from executed_book.errors import BookError


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "doctrees").mkdir()
    (tmp_path / "html").mkdir()
    return tmp_path


class Otherwise(Rendering):
    """A rendering that does something else."""

    does = staticmethod(lambda: False)

    def _run(self, book: Book) -> bool:
        assert (self.work / "unfinished").exists()
        return self.does()


def render(work: Path, does=lambda: False) -> None:
    made = Otherwise(work, work, work, {})
    object.__setattr__(made, "does", does)
    made.render(Book([]))


def test_what_was_read_before_is_used_after_a_build_that_finished(work):
    render(work)
    assert sorted(path.name for path in work.iterdir()) == ["doctrees", "html"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])  # as if stopped, full
def test_after_one_that_did_not_it_is_not(work, error):
    def fails() -> bool:
        raise error

    with pytest.raises(error):
        render(work, fails)
    assert (work / "doctrees").exists()
    render(work)
    assert list(work.iterdir()) == []


def test_warnings_are_errors_and_leave_it_unfinished(work):
    with pytest.raises(BookError, match="without the warnings above: nothing was pub"):
        render(work, lambda: True)
    assert (work / "unfinished").exists()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("odd\nand more"), "ValueError: odd: nothing was published"),
        (ValueError(""), "ValueError: nothing was published"),
        (type("E", (Exception,), {"category": "A theme"})("no"), "A theme: no:"),
    ],
)
def test_what_failed_is_one_line_and_the_whole_is_in_a_file(work, error, said):
    def fail() -> bool:
        raise error

    with pytest.raises(BookError) as caught:
        render(work, fail)
    first, second = str(caught.value).splitlines()
    assert first.startswith(f"the pages could not be rendered: {said}")
    assert second.endswith("traceback.txt")
    assert "Traceback" in (work / "traceback.txt").read_text()
    render(work)
    assert not (work / "traceback.txt").exists()
