"""The page of what changed between releases: what is alike stands once."""

from __future__ import annotations

import json

from executed_book.releases.page import keep, releases_page, substitutions
from executed_book.releases.snapshots import Change, Drift

VERSIONS = {"jax": "2", "python": "3", "platform": "cpu"}


def changed(number: int, old: str, new: str) -> Change:
    return Change("a", "changed", number, "f()", new=new, old=old)


def test_what_differs_in_the_same_way_in_several_cells_stands_once():
    alike = [changed(i, f"E{i}: a list", f"E{i}: a tuple") for i in range(1, 5)]
    other = [changed(5, "a 1", "a 2"), changed(6, "a", "a\nb")]
    titles = {"a": "A"}
    page = releases_page(
        [Drift(VERSIONS, {**VERSIONS, "jax": "1"}, 9, titles, (*alike, *other))]
    )
    assert "Of 9 cells, 6 differ." in page
    assert page.count("### Alike in several cells") == 1
    assert page.count("tuple") == 1
    assert "{doc}`A </a>`, cell 1, 2, 3, 4." in page
    first, second = (page.index(f"Cell {n} differs on 1:") for n in (5, 6))
    assert first < second < page.index("### Alike")


def test_messages_that_name_another_address_alone_stand_last_and_once():
    old, new = "E{}: see https://x.dev/a#e, and", "E{}: see https://x.dev/101/a#e, and"
    moved = [changed(i, old.format(i), new.format(i)) for i in (1, 3)]
    page = releases_page([drift("1", *moved, changed(2, "a 1", "a 2"))])
    line = "- `https://x.dev/101/a#e,`, before `https://x.dev/a#e,`: in {doc}`A </a>`"
    assert f"### Addresses in messages\n\n{line}, cell 1, 3." in page
    assert page.index("Cell 2 differs on 1:") < page.index("### Addresses")
    assert "Cell 1 differs" not in page


def test_lines_that_came_are_no_substitution():
    assert substitutions(changed(1, "a", "a\nb")) == frozenset()


def drift(jax: str, *changes: Change) -> Drift:
    return Drift(VERSIONS, {**VERSIONS, "jax": jax}, 9, {"a": "A"}, changes)


def test_a_chapter_that_broke_says_why():
    page = releases_page([drift("1", Change("a", "broke", new="SIGSEGV"))])
    assert "did not run to its end: SIGSEGV" in page


def test_the_newest_release_stands_first():
    page = releases_page([drift("0.9.2"), drift("0.10.0"), drift("0.10.0rc1")])
    heads = [line for line in page.splitlines() if line.startswith("## ")]
    assert heads == [
        "## JAX 0.10.0rc1 beside 2",
        "## JAX 0.10.0 beside 2",
        "## JAX 0.9.2 beside 2",
    ]


def test_one_difference_is_one():
    assert "Of 9 cells, 1 differs." in releases_page([drift("1", changed(1, "a", "b"))])
    assert "Of 9 cells, 0 differ." in releases_page([drift("1")])


def test_fences_inside_outputs_stay_inside():
    change = changed(1, "````\nx", "no output at all")
    page = releases_page([drift("1", change)])
    assert "`````{code-block} text\n````\nx\n`````" in page


def test_no_output_is_said():
    assert "(no output)" in releases_page([drift("1", changed(1, "", "b"))])


def test_the_page_is_written_from_all_that_is_kept(tmp_path):
    folder, page = tmp_path / "drift", tmp_path / "releases.md"
    keep(drift("0.9", changed(1, "old", "new")), folder, page)
    keep(drift("0.10"), folder, page)
    assert [path.name for path in sorted(folder.iterdir())] == [
        "jax-0.10.json",
        "jax-0.9.json",
    ]
    assert page.read_text("utf-8").count("\n## JAX ") == 2
    assert json.loads((folder / "jax-0.9.json").read_text("utf-8"))["changes"] == [
        {"docname": "a", "kind": "changed", "number": 1}
        | {"source": "f()", "new": "new", "old": "old"}
    ]
