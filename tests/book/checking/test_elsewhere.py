"""Records of other devices: shown while they hold, left out when they are stale."""

import dataclasses
import re
import shutil
from importlib.metadata import version
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from executed_book.checking.elsewhere import (
    passed_elsewhere,
    recorded_elsewhere,
    records_of,
    same_cells,
)
from executed_book.checking.stored import (
    Part,
    StoredCell,
    StoredPage,
    recorded_page,
    stored_path,
    write_page,
)
from executed_book.model import Cell

from ..conftest import FRONT, TinyBook, copy_of, new_book, on_a_device
from ..made import CPU, GPU, chapter, executed, gave, shown

ON_CPU = FRONT.replace("---\n\n", "executed_book: {platform: cpu}\n---\n\n")


@pytest.fixture(scope="module")
def recorded_once(tmp_path_factory: pytest.TempPathFactory) -> TinyBook:
    """A book with accepted outputs, and recorded on a device called Pretend."""
    book = new_book(tmp_path_factory.mktemp("records"))
    (book.root / "outputs" / "cells").mkdir(parents=True)
    book.chapter(
        "one",
        "import jax\nscale = 2",
        ":alt: The same everywhere\nimport matplotlib.pyplot as plt\nplt.plot([1]);",
        ":tags: [device]\nprint(scale, jax.devices()[0].device_kind)\nassert scale",
        ":tags: [measured]\n:alt: A line\n"
        "import time\nimport matplotlib.pyplot as plt\n"
        "plt.plot([0, time.time()])\nplt.show()\nassert scale",
        "if jax.default_backend() != 'cpu':\n    print('there', scale)",
    )
    book.chapter(
        "here",
        ":tags: [device]\nimport jax\njax.devices()[0].platform\nassert jax\nprint(1)",
        front=ON_CPU,
    )
    book.index("one", "here")
    book.done("pin")
    book.done("record", **on_a_device())
    return book


@pytest.fixture
def recorded(recorded_once: TinyBook, tmp_path: Path) -> TinyBook:
    return copy_of(recorded_once, tmp_path)


def test_a_record_stands_beside_the_pages_own_output_with_its_provenance(recorded):
    stored = recorded.stored("one", "pretend")
    other = stored.parent.with_name("other-0.9.9") / stored.name
    other.parent.mkdir()
    told = stored.read_text().replace("Pretend", "Other")
    other.write_text(told.replace(version("jax"), "0.9.9"))
    for figure in stored.parent.glob("*.svg"):
        shutil.copy(figure, other.parent)
    assert "3 cells show a record of Other, Pretend" in recorded.built()
    page = recorded.html("one")
    for device in ("cpu", "other", "pretend"):
        assert page.count(f'data-sync-id="{device}"') == 3, "one tab for each cell"
    tabs = BeautifulSoup(page, "html.parser").select(".records")
    assert page.count("Other, JAX 0.9.9</label>") == 3
    assert "; this page itself with JAX " in page
    assert len(tabs) == 3, "all records of a cell share one set"
    own, there, _ = tabs[-1].select(".sd-tab-content")
    assert own.text.strip() == "", "where a cell gives nothing, the open tab is empty"
    assert own.find_previous("input").has_attr("checked")
    assert "there 2" in there.text
    assert "2 Pretend" in page
    assert "2 cpu" in page
    where = "Recorded on 1 × Pretend, JAX "
    assert page.count(where) == 4, "at its cells and in the page's stamp"
    assert page.count("<img") == 8, "four figures, each with its dark twin"
    assert "data-sync-id" not in recorded.html("here")
    assert sorted(p.name for p in stored.parent.iterdir()) == ["one-4-1.svg", "one.txt"]


def test_a_stale_record_is_listed_and_not_shown(recorded):
    path = recorded.root / "docs" / "one.md"
    path.write_text(path.read_text().replace("scale = 2", "scale = 3"))
    recorded.done("pin")
    output = recorded.built()
    # The second cell needs nothing of the first.
    assert "records are stale and not shown" in output
    assert "one, 4 cells on Pretend" in output
    assert "2 Pretend" not in recorded.html("one")


def test_a_record_of_a_page_that_is_gone_is_listed(recorded):
    (recorded.root / "docs" / "one.md").unlink()
    recorded.index("here")
    recorded.done("pin")
    assert "one, of which no page was executed" in recorded.built()


def stored(source: str, text: str = "2", **fields) -> StoredCell:
    return StoredCell(source, (Part(text),), **{"needs": frozenset(), **fields})


def needs_nothing(number: int) -> set[int]:
    return set()


def records(folder, *cells, here=CPU, tags=(), before="1.0"):
    """The records of a page whose cell gave 1.0 here, and `before` with their JAX."""
    path = stored_path(folder, GPU.jax, "one", GPU.device_kind)
    write_page(StoredPage(GPU, cells), path)
    page = StoredPage(CPU, (stored("x", before),))
    write_page(page, stored_path(folder, GPU.jax, "one"))
    [paths] = recorded_elsewhere(folder).values()
    made = chapter(Cell(1, "x", 5, tags=frozenset(tags)))
    ran = executed(made, gave(shown("1.0")), provenance=here)
    return records_of(ran, paths, needs_nothing)


@pytest.mark.parametrize(
    ("cell", "tags", "is_shown"),
    [
        (stored("x", "2"), (), True),
        (stored("x", "1.00001"), (), False),
        (stored("x", "1.0"), ("measured",), True),
        (stored("x", "2", failed=True), (), False),
        (StoredCell("x", needs=frozenset()), ("measured",), False),
    ],
    ids=["another", "rounding", "varies", "failed", "empty"],
)
def test_what_has_a_tab(tmp_path, cell, tags, is_shown):
    found, stale = records(tmp_path, cell, tags=tags)
    assert (list(found), stale) == ([1] if is_shown else [], {})


SEE = "\nSee https://docs.jax.dev/"


@pytest.mark.parametrize(
    ("message", "is_shown"),
    [
        (f"ValueError: bad{SEE}101/errors.html", False),
        (f"ValueError: worse{SEE}errors.html", True),
    ],
    ids=["documented elsewhere", "another"],
)
def test_a_message_has_a_tab_if_it_says_something_else(tmp_path, message, is_shown):
    path = stored_path(tmp_path, GPU.jax, "one", GPU.device_kind)
    write_page(StoredPage(GPU, (stored("x", message),)), path)
    made = chapter(Cell(1, "x", 5, raises="ValueError"))
    item = {"output_type": "error", "ename": "ValueError", "traceback": []}
    ran = executed(made, gave(item | {"evalue": f"bad{SEE}errors.html"}))
    found, _ = records_of(ran, [path], needs_nothing)
    assert list(found) == [1] * is_shown


def test_what_a_release_changed_on_all_devices_has_no_tab(tmp_path):
    assert records(tmp_path, stored("x", "2"), before="2") == ({}, {})
    assert list(records(tmp_path, stored("x", "2"), before="3")[0]) == [1]


def test_a_record_of_the_pages_own_kind_of_device_is_left_out(tmp_path):
    assert records(tmp_path, stored("x"), here=GPU) == ({}, {})


#: Three cells, of which the third needed the first.
ABC = [stored("a"), stored("b"), stored("c", needs=frozenset({1}))]


@pytest.mark.parametrize(
    ("sources", "needs", "same"),
    [
        ("abc", {3: {1}}, {1, 2, 3}),
        ("aXbc", {4: {1}}, {1, 3, 4}),
        ("ac", {2: {1}}, {1, 2}),
        ("Xbc", {3: {1}}, {2}),
        ("bc", {}, {1}),
        ("abXc", {4: {1, 3}}, {1, 2}),
    ],
    ids=["all", "one more", "one less", "changed", "needed one gone", "new need"],
)
def test_a_cell_is_the_same_with_all_that_it_needs(sources, needs, same):
    found = same_cells(ABC, list(sources), lambda n: needs.get(n, set()))
    assert found.keys() == same


def test_what_nobody_knows_the_needs_of_needs_all_above_it():
    unknown = [dataclasses.replace(cell, needs=None) for cell in ABC]
    assert same_cells(unknown, list("abc"), needs_nothing).keys() == {1, 2, 3}
    assert same_cells(unknown, list("abX"), needs_nothing).keys() == {1, 2}
    assert same_cells(unknown, list("Xbc"), needs_nothing).keys() == set()


CHECKS = """
It is there. {check}`there` It is here, and there. {check}`partly`

```{code-cell}
:tags: [check]
:check: there
import jax
on_cpu = jax.default_backend() == "cpu"
if not on_cpu:
    assert jax.devices()
```

```{code-cell}
:tags: [check]
:check: partly
assert jax.devices()
if not on_cpu:
    assert jax.devices()[0].device_kind == "Pretend"
```
"""


def test_a_check_of_another_device_needs_its_record_and_says_so(book):
    (book.root / "outputs" / "cells").mkdir(parents=True)
    book.page("one", f"{FRONT}# One\n{CHECKS}")
    book.index("one")
    text = (book.root / "docs" / "one.md").read_text()
    line = text.split("\n").index("if not on_cpu:") + 2
    refused = book.refused("execute")
    assert f"docs/one.md:{line}: cell 1 is a check, and this run reaches" in refused
    book.done("record", **on_a_device())
    book.done("pin")
    assert "# missed" not in book.stored("one", "pretend").read_text()
    book.built()
    page = BeautifulSoup(book.html("one"), "html.parser")
    there, partly = (note.p.text for note in page.select(".receipt-note"))
    record = r"on \S+: Pretend, JAX [\d.]+, Python [\d.]+, [\d-]+"
    now = r"20[\d-]+ [\d:]+ UTC on cpu, JAX [\d.]+, Python [\d.]+\."
    assert re.fullmatch(
        rf"Passed {record}, as recorded\. None of its assertions ran {now} It holds:",
        there,
    )
    said = rf"Passed {now} Of its 2 assertions 1 ran there\. It also passed {record}\."
    assert re.fullmatch(rf"{said} It holds:", partly)


def test_a_check_on_what_depends_on_the_device_passed_where_it_was_recorded(tmp_path):
    path = tmp_path / "one.txt"
    cells = (Cell(1, "x", 10, tags=frozenset({"device"})), Cell(2, "assert x", 20))
    reached = gave(), gave(reached=(1,))
    there = executed(chapter(*cells), *reached, provenance=GPU)
    write_page(recorded_page(there, {1: {1}, 2: {1, 2}}.get, (), ()), path)
    here = executed(chapter(*cells), *reached)
    for needed, passed in (({1, 2}, {2: [GPU]}), ({2}, {})):
        assert passed_elsewhere(here, [path], {1: {1}, 2: needed}.get) == passed
    assert passed_elsewhere(there, [path], {1: {1}, 2: {1, 2}}.get) == {}


def test_a_record_that_missed_the_assertion_vouches_for_nothing(tmp_path):
    path = tmp_path / "one.txt"
    cell = Cell(1, "if False:\n    assert x\nassert y", 10, check="one")
    ran = executed(chapter(cell), gave(reached=(), missed=(2, 3)))
    for missed, failed, passes in (
        ((2,), (), True),
        ((2, 3), (), False),
        ((), (1,), False),
    ):
        there = executed(chapter(cell), gave(missed=missed), provenance=GPU)
        write_page(recorded_page(there, needs_nothing, failed, ()), path)
        passed = passed_elsewhere(ran, [path], needs_nothing)
        assert passed == ({1: [GPU]} if passes else {})
