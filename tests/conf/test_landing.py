"""The first picture: what it shows is what the page's check holds."""

import ast
import re
from pathlib import Path

import pytest

INDEX = Path(__file__).parents[2] / "docs" / "index.md"


def drawn() -> list[str]:
    pattern = r"```\{path-of-a-line\}\n(.*?)\n```"
    return re.search(pattern, INDEX.read_text("utf-8"), re.DOTALL)[1].split("\n")


def test_the_page_s_check_holds_what_the_picture_shows():
    checked = re.search(r"^drawn = (\[.*?^\])", INDEX.read_text("utf-8"), re.M | re.S)
    rows = [tuple(row.split(" | ")) for row in drawn()[1:-1]]
    assert rows == ast.literal_eval(checked[1])


def test_each_piece_holds_the_one_that_came_before(landing):
    html = landing.picture(drawn())
    nested = (
        '<span class="piece p2">x * <span class="piece p1">jax.nn.sigmoid('
        '<span class="piece p0">2 * x</span>)</span></span>'
    )
    assert f"<pre>{nested}</pre>" in html
    assert [html.count(f"piece p{nth}") for nth in range(3)] == [3, 3, 3]


def test_a_piece_that_is_not_in_the_line_is_an_error(landing):
    with pytest.raises(ValueError, match=r"'2 \* y' is no piece of '2 \* x'"):
        landing.picture(["2 * x", "b = mul 2.0 a | 2 * y", "writes"])
