"""What failed while rendering is said in one line."""

from __future__ import annotations

import pytest

from executed_book.book import Book
from executed_book.commands.render import Rendering
from executed_book.errors import BookError


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("odd\nand more"), "ValueError: odd: nothing was published"),
        (ValueError(""), "ValueError: nothing was published"),
        (
            type("E", (Exception,), {"category": "Theme error"})("no"),
            "Theme error: no:",
        ),
    ],
)
def test_what_failed_is_one_line_and_the_whole_is_in_a_file(
    tmp_path, monkeypatch, error, said
):
    def fail(self: Rendering, book: Book) -> bool:
        raise error

    monkeypatch.setattr(Rendering, "_run", fail)
    with pytest.raises(BookError) as caught:
        Rendering(tmp_path, tmp_path, tmp_path, {}).render(Book([]))
    first, second = str(caught.value).splitlines()
    assert first.startswith(f"the pages could not be rendered: {said}")
    assert second.endswith("traceback.txt")
    assert "Traceback" in (tmp_path / "traceback.txt").read_text()
