"""The process that workers are forked from, and the supervisor of each worker.

The server imports JAX, NumPy and Matplotlib once and starts no backend, so a fork of it
is as good as a fresh interpreter, milliseconds old. It forks a *supervisor* for each
job. The supervisor adopts every orphan among its descendants, forks the worker, and
waits until the worker ends or the builder lets go of it; then it ends whatever the
worker left behind and says how the worker ended.

Three file descriptors come with a job: the channel to the builder, the end of a pipe
that says by closing that the builder lets go, and one to say how it ended.
"""

import contextlib
import gc
import importlib
import json
import os
import select
import shutil
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from .channel import BELOW
from .processes import adopt_orphans, children, die_with_parent, end_descendants

#: Imported once, so that no worker has to; what is not installed is left out.
PRELOAD = (
    "jax",
    "jax.numpy",
    "numpy",
    "matplotlib.pyplot",
    "matplotlib_inline.backend_inline",
    "IPython.core.interactiveshell",
    "IPython.core.completer",
    f"{__package__}.worker",
    f"{__package__}.shell",
)

_POLL = 0.02  # seconds, where the system cannot wake us


def serve(link: socket.socket, run: Path, without: Sequence[str] = ()) -> None:
    """Fork a supervisor for each order, until the builder is gone.

    Modules of the packages in `without` are not imported.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the builder decides what ends
    adopt_orphans()
    # Forking is safe before any backend starts, and only known to be on Linux.
    for module in PRELOAD if sys.platform == "linux" else ():
        if module.partition(".")[0] not in without:
            # Matplotlib's backend comes with IPython, also where Matplotlib does not.
            with contextlib.suppress(ModuleNotFoundError):
                importlib.import_module(module)
    # Keeps the garbage collector of the forks from writing to the shared pages.
    gc.collect()
    gc.freeze()
    supervisors: set[int] = set()
    while True:
        ready, _, _ = select.select([link], [], [], 0.2)
        supervisors -= _ended(supervisors)
        _end_strays(supervisors)
        if not ready:
            continue
        folder, fds = _receive(link)
        if not folder:
            break
        pid = os.fork()
        if not pid:
            link.close()
            _supervise(Path(folder), *fds)
        supervisors.add(pid)
        for fd in fds:
            os.close(fd)
        with contextlib.suppress(ConnectionError):  # the builder has gone meanwhile
            link.send(b".")
    # Supervisors notice by themselves that the builder is gone.
    give_up = time.monotonic() + 5
    while supervisors and time.monotonic() < give_up:
        supervisors -= _ended(supervisors)
        time.sleep(_POLL)
    end_descendants()
    shutil.rmtree(run, ignore_errors=True)


def _receive(link: socket.socket) -> tuple[str, list[int]]:
    try:
        data, fds, _, _ = socket.recv_fds(link, 1 << 16, 3)
    except ConnectionError:
        return "", []
    return data.decode(), list(fds)


def _ended(pids: set[int]) -> set[int]:
    return {pid for pid in pids if os.waitpid(pid, os.WNOHANG) != (0, 0)}


def _end_strays(supervisors: set[int]) -> None:
    """End what a supervisor that was itself killed could not."""
    for pid in set(children()) - supervisors:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


# -- in the supervisor


def _supervise(folder: Path, channel: int, life: int, end: int) -> None:
    os.setsid()  # what is sent to the group of the server is not meant for us
    adopt_orphans()
    worker = os.fork()
    if not worker:
        os.close(life)
        os.close(end)
        _become_worker(folder, channel)
    os.close(channel)
    status = _wait_for(worker, life)
    end_descendants()
    os.write(end, json.dumps({"status": status}).encode())
    os._exit(0)


def _wait_for(worker: int, life: int) -> int | None:
    """The worker's exit code once it ends; None if the builder lets go first."""
    watched: list[int] = [life]
    if hasattr(os, "pidfd_open"):
        watched.append(os.pidfd_open(worker))
    timeout = None if len(watched) > 1 else _POLL
    while True:
        # The worker goes first: one that has ended by itself has a status to tell, also
        # where the builder let go of it meanwhile.
        ready, _, _ = select.select(watched, [], [], timeout)
        pid, status = os.waitpid(worker, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        if life in ready:
            return None


def _become_worker(folder: Path, channel: int) -> None:
    os.setsid()  # what ends its own group must not end the supervisor
    die_with_parent()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for descriptor, name in BELOW.items():
        # Append, so that a file that was emptied is written from its start again.
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        file = os.open(folder / name, flags, 0o600)
        os.dup2(file, descriptor)
        os.close(file)
    if (folder / "fresh").exists():
        os.set_inheritable(channel, True)
        os.execv(sys.executable, [*python_running("worker"), str(folder), str(channel)])
    from .worker import work

    work(folder, channel)


def python_running(module: str) -> list[str]:
    """The command that runs `main` of a module beside this one.

    The folder that a build starts in is not where modules are looked for, since a file
    there may be called like one.
    """
    home = str(Path(__file__).parents[2])  # where this package was found
    code = (
        f"import sys; sys.path.append({home!r});"
        f" from {__package__}.{module} import main; main()"
    )
    return [sys.executable, "-P", "-c", code]


def main() -> None:
    """Serve the builder: the number of the socket to it, a folder, what to leave."""
    serve(socket.socket(fileno=int(sys.argv[1])), Path(sys.argv[2]), sys.argv[3:])
