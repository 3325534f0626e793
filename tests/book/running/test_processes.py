"""Processes and folders end with their owner."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from executed_book.running import processes
from executed_book.running.processes import run_folder


@pytest.fixture
def temporary(tmp_path, monkeypatch) -> Path:
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


#: Programs that print nothing but what is left; each holds our pipe as long as it, or
#: what it started, is there.
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
ORPHANED = """
import os, time
from executed_book.running.processes import adopt_orphans, end_descendants

adopt_orphans()
read, write = os.pipe()
if not os.fork():
    if not os.fork():
        os.setsid()
        os.write(write, b"ready")
    time.sleep(60)
    os._exit(0)
os.read(read, 5)
end_descendants()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can be asked for it")
@pytest.mark.parametrize("program", [BOUND, ORPHANED], ids=["bound", "orphaned"])
def test_a_process_ends_with_its_parent_or_with_who_adopted_it(program):
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, stdout=subprocess.PIPE, timeout=30)
    assert (ended.returncode, ended.stdout) == (0, b"")


def test_other_systems_are_asked_for_their_processes(monkeypatch):
    me = os.getpid()
    listed = f"  1     0\n {me}  1\n 4711 {me}\n 4712 {me}\n 4713 4712\n"
    monkeypatch.setattr(processes, "_IS_LINUX", False)
    ps = subprocess.CompletedProcess((), 0, listed)
    monkeypatch.setattr(processes.subprocess, "run", lambda *a, **k: ps)
    assert processes.children() == [4711, 4712]
