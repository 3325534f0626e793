"""What the search gets of a small book: its sections, and the words of readers."""

import json
from pathlib import Path

import pytest
from sphinx.testing.util import SphinxTestApp

CONF = Path(__file__).parents[2] / "conf"


@pytest.fixture
def book(tmp_path: Path) -> Path:
    (tmp_path / "conf.py").write_text(
        f"import sys\nsys.path.append({str(CONF)!r})\n"
        "extensions = ['myst_parser', 'finding']\nexclude_patterns = ['_build']\n"
    )
    (tmp_path / "search-words.txt").write_text(
        "# A note.\nsilent: a the\n\nno_grad, grad is none -> gradients\nseed, key\n"
    )
    (tmp_path / "index.md").write_text(
        "# Book\n\nSee ({doc}`part/b`), {doc}`/part/b` and {doc}`this <part/b>`.\n\n"
        "```{toctree}\npart/b\n```\n"
    )
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "b.md").write_text("# The title\n\n## A section\n\nWords.\n")
    return tmp_path


def written(book: Path) -> dict[str, object]:
    """What the script of the index sets, by name."""
    app = SphinxTestApp("html", srcdir=book)
    app.build()
    app.cleanup()
    script = book / "_build" / "html" / "_static" / "search-index.js"
    lines = script.read_text("utf-8").splitlines()
    rows = [line.removeprefix("window.").rstrip(";").split(" = ", 1) for line in lines]
    return {name: json.loads(value) for name, value in rows}


def test_a_link_to_a_page_is_found_by_its_title(book: Path):
    def text() -> str:
        [page] = [row for row in written(book)["SEARCH_PAGES"] if row[0] == "index"]
        return page[2][0][2]

    assert text() == "See (The title), The title and this."
    (book / "part" / "b.md").write_text("# Another title\n")
    assert text() == "See (Another title), Another title and this."


def test_the_words_of_readers_go_with_the_index(book: Path):
    assert written(book)["SEARCH_WORDS"] == {
        "silent": ["a", "the"],
        "pairs": [[["no_grad", "grad is none"], "gradients"]],
        "alike": [["seed", "key"]],
    }
