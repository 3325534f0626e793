"""Commands of the book's tools in forks of a process that has imported all they need.

On a tiny book nearly all of a command's time goes into imports, the builder's and those
of the process that its workers are forked from. Here both are forks of one process that
has imported everything; what they do from then on is what they always do.
"""

import importlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

from executed_book.programs.verify import compiled_into
from executed_book.running import server, workers

from .programs.running import as_settings

#: As the environment of workers has it, so that what is imported here is as there.
_IMPORTED_WITH = {"PYTHONHASHSEED": "0", "MPLBACKEND": "agg", "JAX_PLATFORMS": "cpu"}

_ROOT = str(Path(__file__).parents[2])  # where it finds this package

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.book.imports"])


def forked(target: Callable[..., object], *arguments: object) -> BaseProcess:
    """A process that has imported all, forked to call a function."""
    before = dict(os.environ)
    os.environ.update(_IMPORTED_WITH)
    os.environ["PYTHONPATH"] = os.pathsep.join([_ROOT, before.get("PYTHONPATH", "")])
    try:
        process = _FORKS.Process(target=target, args=arguments)
        process.start()
    finally:
        os.environ.clear()
        os.environ.update(before)
    return process


class Forked:
    """A command that runs in a fork, with what a test asks of a `subprocess.Popen`."""

    def __init__(
        self,
        root: Path,
        arguments: tuple[str, ...],
        environment: dict[str, str],
        tool: str = "executed_book.commands.line",
    ) -> None:
        self._said = tempfile.NamedTemporaryFile()  # noqa: SIM115
        given = (root, arguments, Path(self._said.name), environment, tool)
        self._process = forked(_command, *given)
        self.kill = self._process.kill

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self._process.pid and self.poll() is None:
            os.kill(self._process.pid, number)

    def communicate(self, timeout: float) -> tuple[str, None]:
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("a forked command", timeout)
        with self._said:
            return Path(self._said.name).read_text("utf-8"), None


def _command(root, arguments, output, environment, tool="executed_book.commands.line"):
    _write_to(output)
    os.chdir(root)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # a variable may say another
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also where the tests ignore it
    sys.path[:] = [place for place in sys.path if place not in ("", _ROOT)]
    workers.start_server = _start_server
    sys.exit(importlib.import_module(tool).main(list(arguments)))


def _write_to(file: Path) -> None:
    with file.open("ab") as stream:
        for descriptor in (1, 2):
            os.dup2(stream.fileno(), descriptor)


class _Server:
    """A forked server, with what its builder asks of a `subprocess.Popen`."""

    def __init__(self, process: BaseProcess) -> None:
        self.kill, self.wait = process.kill, process.join
        self.poll = lambda: process.exitcode
        self._process = process

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode


def _start_server(link, run, environment, without=()) -> _Server:
    fork = multiprocessing.get_context("fork")
    process = fork.Process(target=_serve, args=(link, run, environment, without))
    process.start()
    return _Server(process)


def start_server(link, run, environment, without=()) -> _Server:
    """Fork the server for a test that starts workers in its own process."""
    return _Server(forked(_serve, link, run, environment, without))


def _serve(link, run, environment, without) -> None:
    os.setsid()
    _write_to(run / workers.LOG)
    os.closerange(3, link.fileno())
    os.closerange(link.fileno() + 1, 1 << 16)
    os.environ.clear()
    os.environ.update(environment)
    _steer(environment)
    sys.path[:] = [place for place in sys.path if place not in ("", _ROOT)]
    os.chdir(run)
    server.serve(link, run, without)


def _steer(environment: dict[str, str]) -> None:
    """Have JAX, which is imported already, do what it would have read of variables.

    It keeps what it compiles, and finds the accelerator of `simulated`.
    """
    import jax

    if "JAX_COMPILATION_CACHE_DIR" in environment:
        compiled = compiled_into(Path(environment["JAX_COMPILATION_CACHE_DIR"]))
        for name, value in as_settings(compiled).items():
            jax.config.update(name, value)
    if "PRETEND" in environment:
        from tests.simulated import sitecustomize

        jax.config.update("jax_platforms", environment["JAX_PLATFORMS"])
        sitecustomize._simulate(jax, json.loads(environment["PRETEND"]))
