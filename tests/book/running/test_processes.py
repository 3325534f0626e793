"""Processes and folders end with their owner."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from executed_book.running.processes import run_folder


@pytest.fixture
def temporary(tmp_path, monkeypatch) -> Path:
    """A folder for temporary files of one's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_goes_when_what_it_is_for_fails(temporary):
    with pytest.raises(KeyError), run_folder():
        raise KeyError
    assert list(temporary.iterdir()) == []


def test_a_folder_goes_also_where_a_killed_process_still_wrote(temporary, monkeypatch):
    """What is written between reading a folder and removing it makes that fail."""
    remove, removed = shutil.rmtree, []

    def late(folder: Path, ignore_errors: bool) -> None:
        remove(folder, ignore_errors=ignore_errors)
        if not removed:
            (folder / "late").mkdir(parents=True)
        removed.append(folder)

    monkeypatch.setattr(shutil, "rmtree", late)
    with run_folder():
        pass
    assert list(temporary.iterdir()) == []


def run(code: str) -> str:
    """What a process prints whose descendants are its own alone."""
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return ran.stdout


ORPHANS = """
import os, subprocess, sys, time
from executed_book.running.processes import adopt_orphans, children, end_descendants

adopt_orphans()
# A child that leaves its session, and starts another that outlives it.
code = "import os, time; os.setsid(); os.fork() and os._exit(0); time.sleep(60)"
first = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-c", code])
second = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-c", code])
os.waitpid(first, 0)
assert first not in children()
while len(children()) < 2:
    time.sleep(0.01)
end_descendants()
print(children())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux adopts orphans")
def test_every_descendant_is_ended_wherever_it_went():
    assert run(ORPHANS) == "[]\n"


BOUND = """
import os, sys, time
from executed_book.running.processes import die_with_parent

middle = os.fork()
if not middle:
    read, write = os.pipe()
    if not os.fork():
        die_with_parent()
        os.write(write, b"ready")
        time.sleep(60)
        os._exit(0)
    os.read(read, 5)
    os._exit(0)
os.waitpid(middle, 0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can be asked for it")
def test_a_bound_process_ends_with_its_parent():
    """It holds our pipe, so waiting for the pipe's end is waiting for it."""
    process = subprocess.Popen(
        [sys.executable, "-c", BOUND], stdout=subprocess.PIPE, close_fds=True
    )
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, b"")


def test_other_systems_are_asked_for_their_processes(monkeypatch):
    from executed_book.running import processes

    me = os.getpid()
    listed = f"  1     0\n {me}  1\n 4711 {me}\n 4712 {me}\n 4713 4712\n"
    monkeypatch.setattr(processes, "_IS_LINUX", False)
    monkeypatch.setattr(
        processes.subprocess,
        "run",
        lambda *a, **k: subprocess.CompletedProcess(a, 0, listed),
    )
    assert processes.children() == [4711, 4712]
