"""Processes and folders that end with their owner.

On Linux a process can adopt the orphans among its descendants, so that what a cell
started is found even where it left its session and its parent. Elsewhere a process
group is all there is.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

#: What asks a command to end.
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_IS_LINUX = sys.platform == "linux"

#: How the folders of runs are called, below the system's temporary one.
_PREFIX = "executed-book-"


def die_with_parent() -> None:
    """Have the kernel end this process when its parent ends."""
    if _IS_LINUX:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of every descendant that loses its own."""
    if _IS_LINUX:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def children() -> list[int]:
    """The processes whose parent this one is."""
    me = os.getpid()
    if _IS_LINUX:
        return [pid for pid, parent in _parents_on_linux() if parent == me]
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=False
    )
    pairs = (map(int, line.split()) for line in listed.stdout.splitlines())
    return [pid for pid, parent in pairs if parent == me]


def _parents_on_linux() -> Iterator[tuple[int, int]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            # A process may end between listing and reading.
            with contextlib.suppress(OSError):
                # The name in parentheses may hold anything, so count from its end.
                fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
                yield int(folder.name), int(fields[1])


def memory_of(pid: int) -> int:
    """How much memory a process holds (bytes); 0 where the system does not say."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def end_descendants(patience: float = 5.0) -> None:
    """Kill every descendant of this process, and wait until there are none.

    What a killed process leaves behind becomes our child, and is killed in turn.
    """
    give_up = time.monotonic() + patience
    while (pids := children()) and time.monotonic() < give_up:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        for pid in pids:
            with contextlib.suppress(ChildProcessError):
                _wait(pid, give_up)


def _wait(pid: int, give_up: float) -> None:
    # Not for ever: a killed process may still wait for a disk.
    while os.waitpid(pid, os.WNOHANG) == (0, 0) and time.monotonic() < give_up:
        time.sleep(0.002)


@contextlib.contextmanager
def run_folder() -> Iterator[Path]:
    """A temporary folder that is removed with its owner."""
    with contextlib.ExitStack() as stack:
        # Looking for the system's folder leaves a file of its own if cut off.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        try:
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
            stack.callback(_remove, folder)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        yield folder


def _remove(folder: Path, patience: float = 2.0) -> None:
    """Remove it, also while a process that was killed still writes there (seconds)."""
    give_up = time.monotonic() + patience
    while True:
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists() or time.monotonic() > give_up:
            return
        time.sleep(0.05)
