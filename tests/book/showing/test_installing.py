"""What a page needs is said on it, in its programs, and in its notebook."""

import json
import os
import subprocess
import sys

import pytest
from bs4 import BeautifulSoup

from executed_book.showing.installing import Installing, first_cell

OPTIONS = """
executed_book_install = ["jax==0.0", "colorsys-lib"]
executed_book_install_also = {
    "jax": "jax",
    "colorsys": "colorsys-lib",
    "string": "strings",
    "wave": "_downloads/wave-1.0-py3-none-any.whl",
}
"""
WHEEL = "wave-1.0-py3-none-any.whl"
CELLS = (
    "import jax\nimport colorsys",
    "import wave\nimport jax",
    "print(wave.__name__)",
)


@pytest.fixture
def page(book):
    def page(*options: str, before: str = "") -> BeautifulSoup:
        book.configure(OPTIONS, *options)
        book.index("part/one")
        book.chapter("part/one", *CELLS)
        if before:
            path = book.root / "docs" / "part" / "one.md"
            text = path.read_text().replace("# part/one\n", f"# part/one\n\n{before}\n")
            path.write_text(text)
        book.built()
        return BeautifulSoup(book.html("part/one"), "html.parser")

    return page


def programs(page: BeautifulSoup) -> list[list[str]]:
    return [box.get_text().splitlines() for box in page.select("pre.program")]


def test_a_page_and_its_programs_say_where_the_sites_own_package_is(page):
    made = page('html_baseurl = "https://a.book/"')
    command = f"pip install jax colorsys-lib https://a.book/_downloads/{WHEEL}"
    [note] = made.select(".install-note")
    assert note.get_text().strip() == f"To run this page: {command}"
    # It is below the first cell that needs more than every notebook has.
    assert "import wave" in note.find_previous_sibling("div").get_text()
    first, second, third = programs(made)
    assert first[1] == "# pip install jax colorsys-lib"
    assert second[1] == f"# pip install jax https://a.book/_downloads/{WHEEL}"
    assert third[1] == f"# pip install https://a.book/_downloads/{WHEEL}"
    assert third[2] == "import wave"


def test_without_an_address_it_is_a_link_to_the_file(page, book):
    made = page()
    [link] = made.select(".install-note code.install > a")
    assert (link["href"], link.get_text()) == (f"../_downloads/{WHEEL}", WHEEL)
    assert programs(made)[2][1] == f"# pip install {WHEEL}"
    notebook = json.loads((book.site / "_downloads" / "part" / "one.ipynb").read_text())
    first = notebook["cells"][0]["source"]
    assert f'wave="./{WHEEL}",  # put this file beside the notebook' in first
    assert "To run this page" not in json.dumps(notebook)
    assert "To run this page" in (book.site / "_downloads/part/one.md").read_text()


def test_a_page_whose_text_says_it_does_not_say_it_again(page):
    made = page(before="Get it: {install}`wave other[a]`.")
    assert made.select(".install-note") == []
    assert (
        made.select_one("code.install").get_text() == f"pip install {WHEEL} 'other[a]'"
    )


def run(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", **variables},
        capture_output=True,
        text=True,
        check=True,
    )


def test_one_thing_that_cannot_be_had_does_not_keep_the_others(tmp_path):
    also = {"one": "no-such-one", "two": "no-such-two"}
    installing = Installing(("pytest",), also)
    code = first_cell(installing, "import one, os\nimport two", {})
    said = run(code).stdout
    assert "pytest" not in said, "it is there"
    for name in also.values():
        assert f"NOT INSTALLED: {name}. What needs it will fail." in said


def test_the_first_cell_sets_what_later_imports_read():
    code = first_cell(Installing(("pytest",)), "", {"A_A": "0", "B_B": None})
    code += "\nprint(os.environ['A_A'], 'B_B' in os.environ)"
    assert run(code, B_B="1").stdout == "0 False\n"
