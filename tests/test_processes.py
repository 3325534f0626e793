"""The example that trains on several processes: whole, killed, and gone on."""

import inspect
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLE = Path(__file__).parents[1] / "examples" / "train_on_processes.py"
LIMIT = 900
FITTED = "step 40: w = 1.005 1.966 2.962"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(EXAMPLE.parent))
    import train_on_processes

    return train_on_processes


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Fails a test after which a process that it started still runs."""
    before = children()
    yield
    assert children() <= before


def children() -> set[str]:
    """The processes whose parent this one is, or that have lost their parent."""
    command = ["ps", "-A", "-o", "pid=,ppid=,args="]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = (line.split(None, 2) for line in listed.stdout.splitlines())
    ours = (line for line in lines if line[1] == str(os.getpid()) or orphan(line))
    return {line[0] for line in ours if line[2] != " ".join(command)}


def orphan(line: list[str]) -> bool:
    return line[1] == "1" and "jax.distributed" in line[-1]


def last_lines(ended: list) -> list[str]:
    assert [status for status, _, _ in ended] == [0] * len(ended), ended
    return [said[-1] for _, said, _ in ended]


WEEKLY = pytest.mark.weekly


@pytest.mark.parametrize(
    "count", [2, pytest.param(1, marks=WEEKLY), pytest.param(4, marks=WEEKLY)]
)
def test_any_number_of_processes_fits_the_same(example, tmp_path, count):
    ended = example.launch(count, example.train, str(tmp_path), limit=LIMIT)
    assert last_lines(ended) == [FITTED] * count
    begins = f"own rows {64 // count} of 64, begins after step 0"
    assert {said[0] for _, said, _ in ended} == {begins}


@pytest.mark.parametrize(
    ("before", "dies", "after"),
    [(2, 1, 1), *(pytest.param(*one, marks=WEEKLY) for one in [(2, 0, 1), (4, 2, 1)])],
)
def test_a_killed_run_ends_and_goes_on_from_its_checkpoint(
    example: ModuleType, tmp_path: Path, before: int, dies: int, after: int
):
    folder = str(tmp_path)
    args = (folder, 40, (25, dies))
    ended = example.launch(before, example.train, *args, limit=LIMIT)
    assert ended.pop(dies)[0] == -9
    for status, said, complained in ended:
        assert status not in (0, -9), complained
        assert complained != ""
        assert "step 40" not in " ".join(said)
    if (before, dies) == (2, 1):
        assert "Gloo all-reduce failed" in complained, "what the other one sees"

    ended = example.launch(after, example.train, folder, limit=LIMIT)
    assert last_lines(ended) == [FITTED] * after
    assert all("begins after step 20" in said[0] for _, said, _ in ended)


def waits(address, count, index):
    import time

    if index == 1:
        raise SystemExit("left early")
    time.sleep(600)


def test_a_process_that_hangs_is_ended_at_the_limit(example: ModuleType):
    began = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        example.launch(2, waits, limit=2)
    assert time.monotonic() - began < 300


def test_a_worker_ends_by_itself_when_nobody_waits_for_it(example: ModuleType):
    parts = {"source": inspect.getsource(waits), "name": "waits", "args": ("", 1, 0)}
    program = example.WORKER.format(limit=1, **parts)
    ended = subprocess.run([sys.executable, "-c", program], timeout=LIMIT, check=False)
    assert ended.returncode == -14  # SIGALRM


def fails(address, count, index):
    if index == 1:
        raise ValueError("no such file")


def test_a_failure_is_told(example, capsys, monkeypatch):
    monkeypatch.setattr(example, "train", lambda *_: None)
    monkeypatch.setattr(example, "launch", lambda *_, run=example.launch: run(2, fails))
    with pytest.raises(SystemExit) as ended:
        example.main()
    assert ended.value.code not in (0, None)
    assert "ValueError: no such file" in capsys.readouterr().err
