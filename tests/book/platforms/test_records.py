"""Records of another platform: shown while they hold, dropped when they are stale."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from executed_book.model import Cell, Executed, Provenance
from executed_book.platforms.records import (
    Record,
    current,
    program_digest,
    read_records,
    records_of,
    same_as,
    slug,
    write_records,
)
from executed_book.programs import program
from executed_book.programs.cells import SourceCell

from ..conftest import TinyBook, copy_of, new_book, pretend
from ..made import CPU, GPU, chapter, executed, figure, gave, printed, shown

FRONT = """\
---
file_format: mystnb
kernelspec: {name: python3}
executed_book: {platform: cpu}
---

"""


@pytest.fixture(scope="module")
def recorded_once(tmp_path_factory: pytest.TempPathFactory) -> TinyBook:
    """A book with pins, and with records as if a device called Pretend made them."""
    book = new_book(tmp_path_factory.mktemp("records"))
    (book.root / "outputs" / "pins").mkdir(parents=True)
    book.chapter(
        "one",
        "import jax\nscale = 2",
        "print('the same everywhere')",
        ":tags: [device]\nprint(scale, jax.devices()[0].platform)\nassert scale",
        ":tags: [measured]\n:alt: A line\n"
        "import time\nimport matplotlib.pyplot as plt\n"
        "plt.plot([0, time.time()])\nplt.show()\nassert scale",
    )
    book.chapter(
        "here",
        ":tags: [device]\nimport jax\njax.devices()[0].platform\nassert jax\nprint(1)",
        front=FRONT,
    )
    book.index("one", "here")
    for command in ("pin", "record"):
        status, output = book.run(command)
        assert status == 0, output
    assert "2 cells recorded" in output
    pretend(book, "Pretend <X>")
    path = book.root / "outputs" / "records" / "pretend-x" / "one.json"
    path.write_text(path.read_text().replace('"2 cpu', '"2 on the other device'))
    return book


@pytest.fixture
def recorded(recorded_once: TinyBook, tmp_path: Path) -> TinyBook:
    return copy_of(recorded_once, tmp_path)


def test_a_record_stands_beside_the_pages_own_output_with_its_provenance(recorded):
    assert "2 cells show a record of Pretend <X>" in recorded.built()
    page = recorded.html("one")
    assert page.count('data-sync-id="pretend-x"') == 2, "one tab for each cell"
    assert page.count('data-sync-id="cpu"') == 2
    assert "2 on the other device" in page
    assert "2 cpu" in page
    where = "Recorded on 1 × Pretend &lt;X&gt;, driver 1.2.3, JAX "
    assert page.count(where) == 3, "at both cells and in the page's stamp"
    assert "2001-02-03" in page
    assert page.count("<img") == 4, "two figures, each with its dark twin"
    assert "data-sync-id" not in recorded.html("here")


def test_what_is_the_same_everywhere_is_not_recorded(recorded):
    record = recorded.root / "outputs" / "records" / "pretend-x" / "one.json"
    assert [c["number"] for c in json.loads(record.read_text())["cells"]] == [3, 4]
    assert not list(record.parent.glob("here*")), "that chapter runs on the CPU"


def test_a_stale_record_is_listed_and_not_shown(recorded):
    recorded.built()
    path = recorded.root / "docs" / "one.md"
    path.write_text(path.read_text().replace("scale = 2", "scale = 3"))
    assert recorded.run("pin")[0] == 0
    output = recorded.built()
    # The figure does not depend on the scale, but its check does.
    assert "2 records are stale and not shown" in output
    assert "one, cell 3, Pretend <X>" in output
    assert "2 on the other device" not in recorded.html("one")


def test_without_records_the_page_says_so_and_is_the_cpus(recorded):
    for path in (recorded.root / "outputs" / "records").rglob("*.json"):
        path.unlink()
    assert "0 cells show a record of another platform" in recorded.built()
    page = recorded.html("one")
    assert "data-sync-id" not in page
    assert "No accelerator has been recorded for this page yet" in page


def test_a_new_record_renders_the_page_anew(recorded):
    recorded.built()
    path = recorded.root / "outputs" / "records" / "pretend-x" / "one.json"
    path.write_text(path.read_text().replace("on the other", "from the other"))
    recorded.built()
    assert "2 from the other device" in recorded.html("one")


def test_recording_leaves_the_records_of_other_devices(recorded):
    """Also where the chapter gives nothing here that is not as pinned."""
    recorded.chapter("one", "print('the same everywhere')")
    assert recorded.run("pin")[0] == 0
    status, output = recorded.run("record")
    assert status == 0, output
    assert "0 cells recorded" in output
    assert (recorded.root / "outputs" / "records" / "pretend-x" / "one.json").exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"cells": [{"number": 1}]}', "KeyError: 'provenance'"),
        (
            (
                '{"provenance": {"device_kind": "", "platform": "gpu", "jax": "1",'
                ' "device_count": 1, "jaxlib": "1", "python": "3"}, "cells": []}'
            ),
            "device_kind is empty",
        ),
        ("[]", "TypeError"),
    ],
)
def test_a_broken_record_is_named(recorded, text, reason):
    path = recorded.root / "outputs" / "records" / "pretend-x" / "one.json"
    path.write_text(text)
    status, output = recorded.build()
    assert status == 1
    assert "outputs/records/pretend-x/one.json:1: not a record (" in output
    assert reason in output
    assert "delete it, or write it again" in output


def test_new_records_leave_the_figures_of_a_chapter_whose_name_begins_alike(tmp_path):
    figure = {"output_type": "display_data", "data": {"image/svg+xml": "<svg/>"}}
    record = Record(
        1, "digest", [figure], Provenance("gpu", "Pretend", 1, "1", "1", "3")
    )
    for docname in ("timing", "timing-2"):
        write_records([record], docname, tmp_path)
    write_records([], "timing", tmp_path)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["timing-2-1-1.svg", "timing-2.json"]


# -- one chapter at a time


def record(program: str = "p", jax: str = CPU.jax, **fields) -> Record:
    provenance = dataclasses.replace(GPU, jax=jax)
    return Record(1, program, [shown("1")], provenance, **fields)


def ran(*cells, provenance: Provenance = CPU) -> tuple[Executed, list[None]]:
    """A chapter whose cells gave 1, and its programs, of which there are none."""
    made = chapter(*cells)
    results = [gave(shown("1")) for _ in made.cells]
    return executed(made, *results, provenance=provenance), [None] * len(results)


def test_what_differs_or_may_differ_is_recorded():
    varies = Cell(3, "z", 30, tags=frozenset({"measured"}))
    here, programs = ran("x", "y", varies, provenance=GPU)
    found = records_of(here, programs, {1: "1", 2: "2", 3: "1"})
    assert [(r.number, r.cpu) for r in found] == [(2, "2"), (3, None)]
    assert found[0].label == "NVIDIA H200"
    assert [r.number for r in records_of(here, programs, {}, without={1, 2})] == [3]
    silent = executed(chapter("x"), gave(), provenance=GPU)
    assert records_of(silent, [None], {}) == []


def test_rounding_is_the_same():
    here = executed(chapter("x", "y"), gave(shown("1.00001")), gave(shown("2")))
    assert same_as(here, {1: "1.0", 2: "3"}) == {1}


def test_records_are_the_same_after_their_files(tmp_path):
    error = {"output_type": "error", "ename": "E", "evalue": "a", "traceback": ["x"]}
    outputs = [
        *(printed("a\nb\n"), printed("c", "stderr"), shown("1", html="<b>\n1</b>")),
        *(figure("<svg>\n1</svg>"), figure("<svg>2</svg>"), error),
    ]
    made = [
        Record(1, "p", outputs, GPU, "1\n2"),
        Record(12, "q", [figure("<svg>3</svg>")], GPU),
    ]
    folder = tmp_path / slug(GPU.device_kind)
    write_records(made, "part/one", folder)
    assert read_records(tmp_path) == ({"part/one": made}, [])
    names = sorted(path.name for path in (folder / "part").glob("*.svg"))
    assert names == ["one-1-1.svg", "one-1-2.svg", "one-12-1.svg"]
    write_records([], "part/one", folder)
    assert list((folder / "part").iterdir()) == []


def test_a_record_holds_while_its_program_is_that_of_a_cell():
    here, programs = ran("x", "y")
    name = program_digest(here.chapter, 2, programs)
    holding, stale, misleading = current(here, programs, [record(name), record("old")])
    assert (list(holding), [r.program for r in stale], misleading) == ([2], ["old"], [])


def test_a_record_of_the_pages_own_kind_of_device_is_left_out():
    here, programs = ran("x", provenance=GPU)
    name = program_digest(here.chapter, 1, programs)
    assert current(here, programs, [record(name)]) == ({}, [], [])


@pytest.mark.parametrize(
    ("fields", "tags", "holds"),
    [
        ({"jax": "0.11"}, (), False),
        ({"jax": "0.11", "cpu": "1"}, (), True),
        ({"jax": "0.11", "cpu": "2"}, (), False),
        ({"cpu": "2"}, (), False),
        ({"jax": "0.11"}, ("measured",), True),
        ({}, (), True),
    ],
)
def test_a_record_of_another_jax_holds_where_only_the_device_can_be_why(
    fields, tags, holds
):
    here, programs = ran(Cell(1, "x", 5, tags=frozenset(tags)))
    name = program_digest(here.chapter, 1, programs)
    holding, stale, misleading = current(here, programs, [record(name, **fields)])
    assert (bool(holding), bool(misleading), stale) == (holds, not holds, [])


def test_a_first_comment_is_no_part_of_a_program():
    one, other, third = (
        [program([SourceCell(code)], 0, head)]
        for code, head in [("x = 1", "# A"), ("x = 1", "# B"), ("x = 2", "# A")]
    )
    digests = [program_digest(chapter("x"), 1, made) for made in (one, other, third)]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(
    "output",
    [
        {"output_type": "stream", "name": "stdout"},
        {"output_type": "stream", "name": "stdout", "text": 3},
        {"output_type": "noise"},
        {
            "output_type": "display_data",
            "data": {"image/svg+xml": {"file": "gone.svg"}},
        },
        {"output_type": "error", "ename": "E", "evalue": "a", "traceback": 3},
    ],
)
def test_an_output_that_is_none_is_told(tmp_path, output):
    write_records([record()], "one", tmp_path / "gpu")
    path = tmp_path / "gpu" / "one.json"
    plain = json.loads(path.read_text())
    plain["cells"][0]["outputs"] = [output]
    path.write_text(json.dumps(plain))
    found, [error] = read_records(tmp_path)
    assert found == {}
    assert error.message.startswith("not a record (")
    assert "executed_book record" in error.hint
