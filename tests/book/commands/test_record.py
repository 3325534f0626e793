"""Recording on an accelerator, here a simulated one, that fails in every known way."""

import re
import signal
from importlib.metadata import version
from pathlib import Path

import pytest

from executed_book.checking.stored import read_outputs
from executed_book.commands import record as module

from ..conftest import TinyBook, copy_of, ended, new_book, on_a_device, wait_for
from ..made import CPU, GPU, chapter, executed, gave
from ..running.test_stderr import RUNTIME_LINES

CELLS = (
    "import jax\nimport jax.numpy as jnp",  # 1
    "print('the same everywhere')",  # 2
    # 3: the device's own
    ":tags: [device]\nkind = jax.devices()[0].device_kind\nprint(kind)\nassert kind",
    # 4: raises there
    "def doomed(x):\n    return x * 2\n\nresult = jax.jit(doomed)(jnp.arange(3.0))",
    "print(result)",  # 5: needs it
    "here = jax.default_backend() == 'cpu'\nprint(here)",  # 6: another one there
    # 7: stderr of its own there, and an address
    "import os\nif not here:\n    print(os.write(2, b'mine\\n'), object())",
    # 8: raises another there
    ':raises: "ValueError: no"\nraise ValueError("no" if here else "a different one")',
    "print(1 + 1)",  # 9
    "assert here or 1 + 1 == 3",  # 10
)

LINE = RUNTIME_LINES["autotuner"] + "\n"


def rows(output: str) -> dict[str, list[int]]:
    """The numbers in the report, by chapter."""
    line = r"^([\w/]+): (\d+) cells? .*?(\d+) the same.*? (\d+) .*? (\d+) failed$"
    found = re.findall(line, output, re.MULTILINE)
    return {name: [int(n) for n in numbers] for name, *numbers in found}


@pytest.fixture(scope="module")
def pinned_once(tmp_path_factory: pytest.TempPathFactory) -> TinyBook:
    book = new_book(tmp_path_factory.mktemp("recording"))
    (book.root / "outputs" / "cells").mkdir(parents=True)
    book.chapter("one", *CELLS)
    book.chapter("two", "import jax\njax.numpy.arange(3) + 1", "print('all is well')")
    book.index("one", "two")
    book.done("pin")
    return book


@pytest.fixture
def pinned(pinned_once: TinyBook, tmp_path: Path) -> TinyBook:
    return copy_of(pinned_once, tmp_path)


@pytest.fixture(scope="module")
def partly(pinned_once: TinyBook, tmp_path_factory) -> tuple[TinyBook, str]:
    """The book recorded where one cell raises, and the runtime logs."""
    book = copy_of(pinned_once, tmp_path_factory.mktemp("partly"))
    words = f"INTERNAL: the device fell {'over ' * 99}\nand more"
    device = on_a_device(stderr=LINE, raises=["doomed", words])
    return book, book.refused("record", **device)


def test_what_can_be_recorded_is_and_the_rest_is_told(partly):
    book, output = partly
    assert rows(output) == {"one": [5, 3, 1, 4], "two": [2, 2, 0, 0]}
    cells = read_outputs(book.stored("one", "pretend")).cells
    assert [n for n, cell in enumerate(cells, 1) if cell.failed] == [4, 5, 7, 8, 10]
    assert [cell.text for cell in cells[:3]] == ["", "the same everywhere", "Pretend"]
    assert cells[4].needs == {1, 4}
    spoilt = "not checked, because they need it: cells 5"
    raised = r"raised: [\w.]*JaxRuntimeError: INTERNAL: the device .{100,160}; "
    assert re.search(raised + spoilt, output)
    assert re.search(r"cell 7, line \d+: writes to stderr: mine", output)
    assert re.findall(r"^    cell (\d+),", output, re.MULTILINE) == [*"478", "10"]
    assert f"recorded below {book.root / 'outputs' / 'cells'}\n" in output
    assert "and raises another: ValueError: a different one" in output
    assert "raised: AssertionError: assert here or 1 + 1 == 3" in output
    assert "4 cells or chapters failed; all others are recorded" in output


def test_what_the_runtime_logged_is_no_output(partly):
    book, _ = partly
    for path in book.stored("one", "pretend").parent.iterdir():
        assert "buffer_comparator" not in path.read_text()


def test_all_is_well_where_nothing_fails(pinned):
    pinned.chapter("one", *CELLS[:6], CELLS[8])
    pinned.done("pin")
    output = pinned.done("record", "--only", "one", **on_a_device())
    assert rows(output) == {"one": [7, 5, 1, 0]}
    pinned.done("build", "--output", "_build/pretend", **on_a_device())


def test_a_cell_that_ends_the_process_costs_its_chapter(pinned):
    output = pinned.refused("record", **on_a_device(ends="doomed"))
    assert not pinned.stored("one", "pretend").exists()
    assert "line 25: killed its process (SIGABRT)" in output
    assert [*rows(output).items()] == [("one", [0, 0, 0, 1]), ("two", [2, 2, 0, 0])]


def test_an_interruption_leaves_the_records_of_the_chapters_that_were_done(pinned):
    pinned.chapter("a", "import jax", "print(jax.default_backend() == 'cpu')")
    pinned.chapter("b", "import time\ntime.sleep(100)")
    process = pinned.fork("record", "--jobs", "2", **on_a_device())
    wait_for(pinned.stored("a", "pretend"))  # as soon as the chapter is done
    process.send_signal(signal.SIGTERM)
    status, output = ended(process)
    assert status == 128 + signal.SIGTERM
    assert rows(output)["a"] == [2, 0, 2, 0], "nothing is pinned of it"


def with_jax(path: Path, jax: str) -> None:
    other = path.parents[1] / path.parent.name.replace(version("jax"), jax) / path.name
    other.parent.mkdir(exist_ok=True)
    other.write_text(path.read_text().replace(version("jax"), jax))
    path.unlink()


def test_a_cpu_with_another_jax_is_recorded_as_it_is(pinned):
    output = pinned.refused("record")
    assert f"with JAX {version('jax')} are pinned already" in output
    for name in ("one", "two"):
        with_jax(pinned.stored(name), "0.1")
    pinned.chapter("two", "import jax\njax.numpy.arange(3) + 2", "1 / 0", "print('on')")
    for _ in range(2):  # what is recorded already is not compared
        told = {"one": [10, 9, 0, 0], "two": [2, 0, 2, 1]}
        assert rows(pinned.done("record")) == told
    one, two = (read_outputs(pinned.stored(name)) for name in ("one", "two"))
    assert (one.provenance.platform, one.provenance.jax) == ("cpu", version("jax"))
    assert [cell.text for cell in one.cells[1:3]] == ["the same everywhere", ""]
    assert [cell.failed for cell in two.cells] == [False, True, False]
    assert two.cells[1].text == "ZeroDivisionError: division by zero"


@pytest.mark.parametrize(
    ("script", "driver"),
    [(None, None), ("exit 9", None), ("echo 570.1; echo 570.1", "570.1"), ("", None)],
)
def test_the_driver_is_the_one_that_nvidia_smi_names(
    tmp_path, monkeypatch, script, driver
):
    monkeypatch.setenv("PATH", str(tmp_path))
    if script is not None:
        (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "nvidia-smi").chmod(0o755)
    assert module._driver() == driver


@pytest.mark.parametrize(
    ("made", "driver"), [(GPU, "570.2"), (CPU, None)], ids=["gpu", "cpu"]
)
def test_a_record_says_when_it_was_made_and_on_a_gpu_with_which_driver(made, driver):
    ran = executed(chapter("x"), gave(), provenance=made)
    found = module._with_provenance(ran, "570.2").run.provenance
    assert (found.date, found.driver) == ("1970-01-01", driver)
