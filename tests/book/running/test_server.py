"""The process that forks: how it is called, and how it waits."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from executed_book.running import server
from executed_book.running.server import python_running


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    os.close(read)
    os.close(write)


def started(code: str) -> subprocess.Popen[bytes]:
    """A process that we wait for ourselves."""
    process = subprocess.Popen([sys.executable, "-Sc", code])
    process.returncode = 0  # so that nobody else does
    return process


@pytest.fixture(params=[True, False], ids=["pidfd", "no pidfd"])
def kernel(request, monkeypatch) -> None:
    """One that gives a worker's process a descriptor, and one that does not."""
    if not request.param:
        monkeypatch.delattr(os, "pidfd_open", raising=False)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("pass", 0),
        ("raise SystemExit(3)", 3),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -9),
    ],
)
def test_how_a_worker_ended(kernel, pipe, code, status):
    assert server._wait_for(started(code).pid, pipe[0]) == status


def test_a_worker_that_the_builder_lets_go_of_has_no_status(kernel):
    life, ours = os.pipe()
    process = started("import time; time.sleep(60)")
    os.close(ours)
    assert server._wait_for(process.pid, life) is None
    os.kill(process.pid, 9)
    os.waitpid(process.pid, 0)
    os.close(life)


def test_a_module_of_ours_runs_whatever_lies_in_the_folder(tmp_path):
    """It fails at its arguments, which it asks for last."""
    for name in ("json.py", "socket.py", "executed_book.py"):
        (tmp_path / name).write_text("raise SystemExit('the wrong one')")
    command = python_running("server")
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "the wrong one" not in ran.stderr
    assert ran.stderr.splitlines()[-1].startswith("IndexError")
