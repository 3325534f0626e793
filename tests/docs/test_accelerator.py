"""The pages' branches for other devices run, on a simulated one.

So that a slip in one of them is not found on a GPU's time. What a real device gives is
in the records; here its library calls count no FLOPs, its compiler makes more kernels
and keeps nothing between them, and its runtime logs.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from executed_book.reading.pages import find_chapters

from .conftest import DOCS

ROOT = DOCS.parent

#: A chapter that the simulation cannot run: its kernels are compiled, for a real GPU.
NOT_SIMULATED = {"devices/pallas"}

DEVICE = {
    "flops": -1,
    "kernels": 2,
    "temporaries": 0,
    "stderr": (
        "2025-05-18 21:59:55.086788: W external/xla/xla/tsl/framework/"
        "bfc_allocator.cc:310] Allocator (GPU_0_bfc) ran out of memory\n"
    ),
}

_ROW = re.compile(r"^([\w/-]+) +(\d+) +(\d+) +(\d+) +(\d+)$", re.MULTILINE)


def branching() -> list[str]:
    """The chapters that ask which device they run on."""
    return sorted(
        chapter.docname
        for chapter in find_chapters(DOCS)[0]
        if "default_backend" in chapter.text and chapter.platform is None
    )


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str]:
    """The recording of these chapters on the simulated device."""
    folder = tmp_path_factory.mktemp("accelerator")
    run = subprocess.run(
        [
            *(sys.executable, "-m", "executed_book", "record"),
            *("--cache", str(folder / "cache")),
            *("-D", f"executed_book_records={folder / 'records'}"),
            *("--only", *(set(branching()) - NOT_SIMULATED)),
        ],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "tests" / "simulated"),
            "JAX_PLATFORMS": "pretend,cpu",
            "PRETEND": json.dumps(DEVICE),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return run.returncode, run.stdout


def test_what_is_not_simulated_is_a_chapter_that_branches():
    assert set(branching()) >= NOT_SIMULATED


def test_every_branch_for_another_device_runs(recording):
    status, output = recording
    assert status == 0, output
    rows = {name: [int(n) for n in numbers] for name, *numbers in _ROW.findall(output)}
    assert rows.keys() - {"total"} == set(branching()) - NOT_SIMULATED
    assert rows["total"][-1] == 0, output
    assert rows["total"][0] > 0


def test_what_the_runtime_logged_went_to_the_log(recording):
    _, output = recording
    assert re.search(r"\d+ lines that the runtime logged are kept in", output)
