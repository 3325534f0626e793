"""Recording on an accelerator, here a simulated one, that fails in every known way."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from importlib.metadata import version
from pathlib import Path

import pytest

from executed_book.checking.pins import write_pins
from executed_book.commands import record as module
from executed_book.commands.record import record
from executed_book.errors import BookError, PageError
from executed_book.releases.snapshots import Snapshot
from executed_book.running.progress import Progress
from executed_book.settings import Settings

from ..conftest import FRONT, TinyBook, copy_of, new_book
from ..made import CPU, GPU, chapter, executed, gave
from ..running.test_stderr import RUNTIME_LINES

SIMULATED = Path(__file__).parents[2] / "simulated"

CELLS = (
    "import jax\nimport jax.numpy as jnp",  # 1
    "print('the same everywhere')",  # 2
    (  # 3: the device's own
        ":tags: [device]\nprint(jax.devices()[0].device_kind)\n"
        "assert jax.devices()[0].device_kind"
    ),
    (  # 4: raises there
        "def doomed(x):\n    return x * 2\n\nresult = jax.jit(doomed)(jnp.arange(3.0))"
    ),
    "print(result)",  # 5: needs it
    "print(jax.default_backend() == 'cpu')",  # 6: another one there
    (  # 7: stderr of its own there
        "import os\nif jax.default_backend() != 'cpu':\n    _ = os.write(2, b'mine\\n')"
    ),
    (  # 8: known to fail there
        ':fails-on: "gpu: it is about the CPU alone"\n'
        "assert jax.default_backend() == 'cpu'"
    ),
    (  # 9: raises another there
        ':raises: "ValueError: no"\nif jax.default_backend() == "cpu":\n'
        '    raise ValueError("no")\nraise ValueError("a different one")'
    ),
    "print(1 + 1)",  # 10
)

LINE = RUNTIME_LINES["autotuner"] + "\n"


#: Where modules are found on the simulated machine.
MODULES = os.pathsep.join(filter(None, [str(SIMULATED), os.environ.get("PYTHONPATH")]))


def on_the_device(book: TinyBook, *arguments: str, **how: object) -> tuple[int, str]:
    """Run a command of the book tools as if an accelerator were here."""
    return book.run(
        *arguments,
        PYTHONPATH=MODULES,
        JAX_PLATFORMS="pretend,cpu",
        PRETEND=json.dumps(how),
    )


def rows(output: str) -> dict[str, list[int]]:
    """The table's numbers, by chapter."""
    found = re.findall(r"^([\w/]+) +(\d+) +(\d+) +(\d+) +(\d+)$", output, re.MULTILINE)
    return {name: [int(n) for n in numbers] for name, *numbers in found}


def recorded_cells(book: TinyBook, name: str) -> list[int]:
    path = book.root / "outputs" / "records" / "pretend" / f"{name}.json"
    return [cell["number"] for cell in json.loads(path.read_text())["cells"]]


@pytest.fixture(scope="module")
def pinned_once(tmp_path_factory: pytest.TempPathFactory) -> TinyBook:
    book = new_book(tmp_path_factory.mktemp("recording"))
    (book.root / "outputs" / "pins").mkdir(parents=True)
    book.chapter("one", *CELLS)
    book.chapter("two", "import jax\njax.numpy.arange(3) + 1", "print('all is well')")
    book.index("one", "two")
    status, output = book.run("pin")
    assert status == 0, output
    return book


@pytest.fixture
def pinned(pinned_once: TinyBook, tmp_path: Path) -> TinyBook:
    return copy_of(pinned_once, tmp_path)


@pytest.fixture(scope="module")
def partly(pinned_once: TinyBook, tmp_path_factory) -> tuple[TinyBook, int, str]:
    """The book recorded where one cell raises, and the runtime logs."""
    book = copy_of(pinned_once, tmp_path_factory.mktemp("partly"))
    words = "INTERNAL: the device fell over\nand more"
    status, output = on_the_device(
        book, "record", stderr=LINE, raises=["doomed", words]
    )
    return book, status, output


def test_what_can_be_recorded_is_and_the_rest_is_told(partly):
    book, status, output = partly
    assert status == 1, "something failed that is not known to"
    assert rows(output) == {
        "one": [2, 3, 1, 4],
        "two": [0, 2, 0, 0],
        "total": [2, 5, 1, 4],
    }
    assert recorded_cells(book, "one") == [3, 6]
    assert re.search(r"raised: [\w.]*JaxRuntimeError: INTERNAL: the device", output)
    assert "and more" not in output
    assert "not looked at, since they need one of these: cells 5" in output
    assert re.search(r"cell 7, line \d+: writes to stderr: mine", output)
    assert "as expected: it is about the CPU alone" in output
    assert "cell 9" in output
    assert "and raises another: ValueError: a different one" in output
    assert "3 cells or chapters failed; all others are recorded" in output


def test_what_the_runtime_logged_is_kept_and_is_no_output(partly):
    book, _, output = partly
    log = (book.cache / "logs" / "one.log").read_text()
    assert LINE in log
    assert "mine" not in log
    assert re.search(r"\d+ lines that the runtime logged are kept in .*logs", output)
    records = list((book.root / "outputs" / "records").rglob("*.json"))
    assert records
    assert not any("buffer_comparator" in path.read_text() for path in records)


def test_the_page_shows_the_records_of_the_cells_that_have_one(partly):
    book, _, _ = partly
    output = book.built()
    assert "2 cells show a record of Pretend" in output
    page = book.html("one")
    assert page.count('data-sync-id="pretend"') == 2
    assert "False" in page
    assert "fell over" not in page


def test_all_is_well_where_only_what_is_expected_fails(pinned):
    pinned.chapter("one", *CELLS[:6], CELLS[7], CELLS[9])
    assert pinned.run("pin")[0] == 0
    status, output = on_the_device(pinned, "record")
    assert status == 0, output
    assert rows(output)["one"] == [2, 5, 1, 1]
    built, text = on_the_device(pinned, "build", "--output", "_build/pretend")
    assert built == 0, text


def test_an_expected_failure_that_does_not_happen_is_told(pinned):
    pinned.chapter("one", CELLS[0], ':fails-on: "tpu, gpu: not yet"\nprint(2)')
    assert pinned.run("pin")[0] == 0
    status, output = on_the_device(pinned, "record")
    assert status == 0, output
    assert "announced with :fails-on:, and do not fail here: cells 2" in output


@pytest.mark.parametrize("said", ["gpu", "GPU: why", ": why", "gpu:"])
def test_what_a_cell_fails_on_has_a_reason(pinned, said):
    pinned.chapter("one", f':fails-on: "{said}"\nprint(2)')
    status, output = pinned.run("execute")
    assert status == 1
    assert ':fails-on: "gpu: why it cannot run there"' in output


def test_a_cell_that_ends_the_process_costs_itself_and_what_needs_it(pinned):
    status, output = on_the_device(pinned, "record", ends="doomed")
    assert status == 1
    assert "once more, without the cells that ended it: one" in output
    assert recorded_cells(pinned, "one") == [3, 6]
    assert "cell 4, line 24: raised: cell 4 killed its process (SIGABRT)" in output
    assert "since they need one of these: cells 5" in output
    assert rows(output)["two"] == [0, 2, 0, 0]


def test_parts_are_recorded_by_themselves(pinned):
    status, output = on_the_device(pinned, "record", "--only", "two")
    assert status == 0, output
    assert list(rows(output)) == ["two", "total"]
    assert not (pinned.root / "outputs" / "records" / "pretend" / "one.json").exists()


def test_an_interruption_leaves_the_records_of_the_chapters_that_were_done(pinned):
    pinned.chapter("a", "import jax", "print(jax.default_backend() == 'cpu')")
    pinned.chapter("b", "import time\ntime.sleep(100)")
    process = pinned.start(
        "record",
        "--jobs",
        "2",
        PYTHONPATH=MODULES,
        JAX_PLATFORMS="pretend,cpu",
        PRETEND="{}",
    )
    path = pinned.root / "outputs" / "records" / "pretend" / "a.json"
    assert process.stdout is not None
    for line in process.stdout:
        if re.match(r" +a +2/2 cells", line):
            break
    assert path.exists(), "written as soon as the chapter was done"
    process.terminate()
    output, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    assert rows(output)["a"] == [1, 0, 1, 0], "nothing is pinned of it"


# -- another JAX than the pins'


def pinned_with(book: TinyBook, version: str) -> None:
    for path in (book.root / "outputs" / "pins").rglob("*.txt"):
        head, _, rest = path.read_text().partition(",")
        assert head.startswith("# JAX ")
        path.write_text(f"# JAX {version},{rest}")


def other_jax(book: TinyBook, version: str) -> None:
    """Let the records be made with another JAX."""
    for path in (book.root / "outputs" / "records").rglob("*.json"):
        record = json.loads(path.read_text())
        record["provenance"]["jax"] = version
        path.write_text(json.dumps(record))


@pytest.fixture
def of_another_jax(pinned: TinyBook) -> TinyBook:
    pinned.chapter(
        "one",
        "import jax",
        "print(jax.default_backend() == 'cpu')",
        ":tags: [device]\nprint(jax.devices()[0].device_kind)\nassert jax",
    )
    assert pinned.run("pin")[0] == 0
    pinned_with(pinned, "0.1")
    status, output = on_the_device(pinned, "record", "--only", "one")
    assert status == 0, output
    assert "The pins were made with another JAX than the" in output
    return pinned


def test_the_tab_names_the_other_jax(of_another_jax):
    pinned_with(of_another_jax, "any")
    other_jax(of_another_jax, "0.9.9")
    of_another_jax.built()
    page = of_another_jax.html("one")
    assert page.count("Pretend, JAX 0.9.9</label>") == 2
    assert "; this page itself with JAX " in page
    assert 'data-sync-id="pretend"' in page


def test_a_cell_that_the_other_jax_changes_on_the_cpu_too_has_no_tab(of_another_jax):
    other_jax(of_another_jax, "0.9.9")
    path = of_another_jax.root / "outputs" / "records" / "pretend" / "one.json"
    record = json.loads(path.read_text())
    assert [cell["cpu"] for cell in record["cells"]] == ["True", "cpu"]
    record["cells"][1]["cpu"] = "what the other JAX gave on the CPU"
    del record["cells"][0]["cpu"]
    path.write_text(json.dumps(record))
    output = of_another_jax.built()
    assert "2 records are not shown: with the JAX that they were made with" in output
    assert "one, cell 2, Pretend, JAX 0.9.9" in output, "nobody knows what the CPU gave"
    assert "one, cell 3, Pretend, JAX 0.9.9" in output
    assert "data-sync-id" not in of_another_jax.html("one")


def test_the_cpu_beside_it_can_be_a_snapshot_taken_elsewhere(pinned, tmp_path):
    status, output = pinned.run("snapshot", "cpu.json")
    assert status == 0, output
    pinned_with(pinned, "0.1")
    taken = pinned.root / "cpu.json"
    arguments = ("record", "--on-cpu", str(taken), "--only", "two")
    status, output = on_the_device(pinned, *arguments)
    assert status == 0, output
    assert "the CPU goes first" not in output
    assert rows(output)["two"] == [0, 2, 0, 0]
    snapshot = json.loads(taken.read_text())
    snapshot["versions"]["jax"] = "0.1"
    taken.write_text(json.dumps(snapshot))
    status, output = on_the_device(pinned, *arguments)
    assert status == 1
    assert "taken on cpu with JAX 0.1, and here is JAX" in output


@pytest.mark.parametrize(
    "cell", ["import mine", "import os\nos.environ['JAX_A'] = '1'"]
)
def test_modules_are_found_below_a_folder_that_is_named_from_here(book, cell):
    """On a machine where nothing is installed, `PYTHONPATH=src` names the modules."""
    (book.root / "src").mkdir()
    (book.root / "src" / "mine.py").write_text("here = 1")
    book.chapter("one", cell, "import mine\nprint(mine.here)")
    book.index("one")
    book.executed(PYTHONPATH="src")


def test_the_simulated_device_is_another_one(tmp_path):
    """So that a page which passes there has gone another way than on the CPU."""
    book = new_book(tmp_path)
    book.chapter(
        "one",
        """\
        import jax
        import jax.numpy as jnp
        from jax import lax
        x = jnp.ones((3, 3))
        compiled = jax.jit(lambda x: jnp.sin(x) @ x).lower(x).compile()
        print(jax.default_backend(), jax.devices()[0].device_kind)
        print(compiled.cost_analysis()["flops"])
        print(compiled.memory_analysis().temp_size_in_bytes)
        print(jax.devices("cpu")[0].device_kind)
        print(jax.device_put(x, jax.devices("cpu")[0]).devices() == x.devices())
        jnp.ones(1000)
        """,
        front=FRONT,
    )
    book.index("one")
    status, output = on_the_device(
        book, "execute", flops=-1, temporaries=0.5, memory=1000, words="Out of memory"
    )
    assert status == 1
    assert "JaxRuntimeError: Out of memory" in output


# -- one step at a time


def test_a_book_without_a_folder_for_records(tmp_path):
    settings = Settings(tmp_path, tmp_path / "cache")
    with pytest.raises(BookError, match="nowhere to keep records\n    → name a folder"):
        record(settings, Progress())


def error(message: str, detail: str = "") -> PageError:
    return PageError(Path("docs/one.md"), 1, message, "", detail)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (error("cell 3 killed its process (SIGKILL)"), "killed its process (SIGKILL)"),
        (
            error(
                "cell 3 raised ValueError", "Traceback\n  Cell 3\nValueError: bad\nx"
            ),
            "raised: ValueError: bad",
        ),
        (
            error("cell 3 raised E; not looked at, since they need it: 4", "E: a"),
            "raised: E: a",
        ),
        (error("cell 3 writes to stderr", "careful"), "writes to stderr: careful"),
        (error("odd " * 100), ("odd " * 50)),
    ],
)
def test_why_a_cell_failed_in_a_line(told, why):
    assert module._first_line(told) == why


@pytest.mark.parametrize(("line", "number"), [(3, 0), (10, 1), (19, 1), (99, 2)])
def test_a_line_belongs_to_the_cell_above_it(line, number):
    assert module._cell_at(chapter("x", "y"), line) == number


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


def test_pins_of_the_same_jax_need_no_cpu_beside_them(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "execute", None)  # nothing is executed
    settings = Settings(tmp_path, tmp_path / "cache")
    nothing = Snapshot({}, {})
    assert module._on_cpu(settings, None, Progress()) == nothing
    own = dataclasses.replace(CPU, jax=version("jax"))
    (tmp_path / "one.txt").write_text(write_pins([], own))
    (tmp_path / "notes.txt").write_text("mine")
    assert module._on_cpu(settings, tmp_path, Progress()) == nothing


def test_a_snapshot_of_another_device_does_not_fit(tmp_path):
    fits = Snapshot({"jax": version("jax"), "platform": "cpu"}, {})
    assert module._fitting(fits, tmp_path) is fits
    other = Snapshot({"jax": version("jax"), "platform": "gpu"}, {})
    with pytest.raises(BookError, match="taken on gpu with JAX"):
        module._fitting(other, tmp_path)
