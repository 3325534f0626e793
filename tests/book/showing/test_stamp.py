"""Where and when something ran, in words."""

import dataclasses

import pytest
from docutils import nodes

from executed_book.book import ExecutedPage
from executed_book.checking.elsewhere import Record
from executed_book.model import Cell
from executed_book.programs.snippets import Snippets
from executed_book.showing.stamp import devices, stamp, where

from ..made import CPU, GPU, chapter, executed, gave


def test_a_record_says_all_that_is_known_of_where_it_was_made():
    versions = "driver 570.1, JAX 0.12.0, Python 3.12.3, 2001-02-03"
    assert where(GPU) == f"Recorded on 1 × NVIDIA H200, {versions}"
    assert where(CPU) == "Recorded on 1 × cpu, JAX 0.12.0, Python 3.13.1"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "cpu"),
        ({"device_count": 8}, "8 × cpu"),
        ({"platform": "gpu", "device_kind": "NVIDIA H200"}, "gpu: NVIDIA H200"),
        ({"platform": "tpu", "device_kind": "TPU"}, "TPU"),
    ],
)
def test_devices_in_words(fields, words):
    assert devices(dataclasses.replace(CPU, **fields)) == words


def text(page: ExecutedPage) -> str:
    return stamp(page).astext()


def page(*cells: Cell | str, records: dict[int, list[Record]] | None = None):
    made = chapter(*cells)
    results = [gave(seconds=1.25) for _ in made.cells]
    return ExecutedPage(executed(made, *results), Snippets([None]), records or {})


def test_a_stamp_says_when_where_and_how_long():
    assert text(page("x", "y")) == (
        "Executed 1970-01-01 00:00 UTC on cpu with JAX 0.12.0, Python 3.13.1, in 2.5 s"
    )


def test_what_differs_between_builds_is_marked():
    [line] = stamp(page("x")).children
    parts = [n for n in line.children if isinstance(n, nodes.inline)]
    marked = [n.astext() for n in parts if "measured" in n["classes"]]
    assert marked == ["1970-01-01 00:00 UTC", "1.2 s"]


def test_a_page_that_varies_says_where_it_was_recorded_or_that_it_was_not():
    varies = Cell(1, "x", 5, tags=frozenset({"device"}))
    said = ". No accelerator has been recorded for this page yet."
    assert text(page(varies)).endswith(said)
    records = [Record(GPU, []), Record(GPU, [])]
    assert text(page(varies, records={1: records})).count("Recorded on") == 1
