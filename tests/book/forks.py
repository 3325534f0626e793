"""Commands of the book's tools in forks of a process that has imported all they need.

On a tiny book nearly all of a command's time goes into imports, the builder's and those
of the process that its workers are forked from. Here both are forks of one process that
has imported everything; what they do from then on is what they always do.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
from multiprocessing.process import BaseProcess
from pathlib import Path

from executed_book.commands.line import main
from executed_book.running import server, workers

#: As the environment of workers has it, so that what is imported here is as there.
_IMPORTED_WITH = {"PYTHONHASHSEED": "0", "MPLBACKEND": "agg", "JAX_PLATFORMS": "cpu"}

_ROOT = str(Path(__file__).parents[2])  # where it finds this package

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.book.imports"])


def run_forked(
    root: Path, arguments: tuple[str, ...], output: Path, variables: dict[str, str]
) -> int | None:
    """Run a command in the folder `root`; its exit status, None if it ran too long."""
    before = dict(os.environ)
    os.environ.update(_IMPORTED_WITH)
    os.environ["PYTHONPATH"] = os.pathsep.join([_ROOT, before.get("PYTHONPATH", "")])
    try:
        given = (root, arguments, output, {**before, **variables})
        command = _FORKS.Process(target=_command, args=given)
        command.start()
    finally:
        os.environ.clear()
        os.environ.update(before)
    command.join(600.0)
    command.kill()
    return command.exitcode


def _command(
    root: Path, arguments: tuple[str, ...], output: Path, environment: dict[str, str]
) -> None:
    _write_to(output)
    os.chdir(root)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:] = [place for place in sys.path if place not in ("", _ROOT)]
    workers.start_server = _start_server
    sys.exit(main(list(arguments)))


def _write_to(file: Path) -> None:
    with file.open("ab") as stream:
        for descriptor in (1, 2):
            os.dup2(stream.fileno(), descriptor)


class _Server:
    """A forked server, with what its builder asks of a `subprocess.Popen`."""

    def __init__(self, process: BaseProcess) -> None:
        process.start()
        self.kill, self.wait = process.kill, process.join
        self.poll = lambda: process.exitcode
        self.returncode = None


def _start_server(
    link: socket.socket,
    run: Path,
    environment: dict[str, str],
    without: tuple[str, ...] = (),
) -> _Server:
    fork = multiprocessing.get_context("fork")
    process = fork.Process(target=_serve, args=(link, run, environment, without))
    return _Server(process)


def _serve(
    link: socket.socket,
    run: Path,
    environment: dict[str, str],
    without: tuple[str, ...],
) -> None:
    os.setsid()
    _write_to(run / workers.LOG)
    os.closerange(3, link.fileno())
    os.closerange(link.fileno() + 1, 1 << 16)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(run)
    server.serve(link, run, without)
