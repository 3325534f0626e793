"""Chapters and runs as plain data."""

import dataclasses
import json

from executed_book.model import Cell, Prose, ValueResult, run_from, to_plain

from .made import GPU, chapter, executed, gave, printed, raised


def test_a_run_is_the_same_after_a_file():
    made = executed(
        chapter("x", "y"),
        gave(printed("1\n"), seconds=0.5, values=(ValueResult("6"),), log="I0000"),
        raised(),
        provenance=GPU,
    ).run
    assert run_from(json.loads(json.dumps(to_plain(made)))) == made
    sealed = run_from(to_plain(made), "abc")
    assert sealed == dataclasses.replace(made, seal="abc")


def test_a_title_is_the_first_heading_of_the_text():
    parts = (Cell(1, "# not this", 1), Prose("## Nor this\n\n#  The  one \n# B", 3))
    assert chapter(parts=parts).title == "The  one"
    assert chapter(parts=(Prose("No heading", 1),), docname="a/b").title == "a/b"
