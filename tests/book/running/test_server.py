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


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("pass", 0),
        ("raise SystemExit(3)", 3),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -9),
    ],
)
@pytest.mark.parametrize("has_pidfd", [True, False])
def test_how_a_worker_ended(monkeypatch, pipe, code, status, has_pidfd):
    if not has_pidfd:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    assert server._wait_for(started(code).pid, pipe[0]) == status


@pytest.mark.parametrize("has_pidfd", [True, False])
def test_a_worker_that_the_builder_lets_go_of_has_no_status(monkeypatch, has_pidfd):
    if not has_pidfd:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
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
    ran = subprocess.run(
        python_running("server"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "the wrong one" not in ran.stderr
    assert ran.stderr.splitlines()[-1].startswith("IndexError")
