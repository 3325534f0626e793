"""What the search gets of a small book: its sections, and the words of readers."""

import json
import re
from typing import Any

PAGE = (
    "# Book\n\nSee ({doc}`part/b`), {doc}`/part/b` and {doc}`this <part/b>`.\n\n"
    "```{toctree}\npart/b\n```\n"
)
WORDS = "# A note.\nsilent: a the\n\nno_grad, grad is none -> gradients\nseed, key\n"


def test_the_index_has_links_by_their_titles_and_the_words_of_readers(build, tmp_path):
    def index(part: str) -> dict[str, Any]:
        (tmp_path / "part" / "b.md").write_text(part)
        out = build(PAGE, "finding", options="exclude_patterns = ['_build']")
        script = (out / "_static" / "search-index.js").read_text("utf-8")
        rows = re.findall(r"^window\.(\w+) = (.*);$", script, re.MULTILINE)
        return {name: json.loads(value) for name, value in rows}

    def text(part: str) -> str:
        [page] = [row for row in index(part)["SEARCH_PAGES"] if row[0] == "index"]
        return page[2][0][2]

    (tmp_path / "search-words.txt").write_text(WORDS)
    (tmp_path / "part").mkdir()
    said = text("# The title\n\n## A section\n\nWords.\n")
    assert said == "See (The title), The title and this."
    assert text("# Another title\n") == "See (Another title), Another title and this."
    assert index("# The title\n")["SEARCH_WORDS"] == {
        "silent": ["a", "the"],
        "pairs": [[["no_grad", "grad is none"], "gradients"]],
        "alike": [["seed", "key"]],
    }
