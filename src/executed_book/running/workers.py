"""The builder's side of the processes that do the work: starting them, ending them."""

import contextlib
import json
import os
import pickle
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..errors import BookError
from ..model import Chapter
from ..settings import Settings
from .channel import BELOW, JOB, Channel
from .processes import run_folder
from .server import python_running

#: A chapter to run cell by cell, or the text of a program to run as a whole.
Job = tuple[Chapter, Settings] | str

#: Set for the processes that do the work, unless the caller chose otherwise.
DEFAULTS = {"JAX_PLATFORMS": "cpu", "MPLBACKEND": "agg"}

#: Variables of Python's that stay as the caller set them: where modules are. All others
#: change what a page shows, so they are the builder's.
_KEPT = frozenset(
    {"PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE"}
    | {"PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE", "PYTHONPLATLIBDIR"}
)

#: What makes programs color their output where nobody can see it.
_COLORS = frozenset({"FORCE_COLOR", "CLICOLOR_FORCE", "PY_COLORS"})

#: What the process says that workers are forked from, in the run's folder.
LOG = "server.log"

#: How much an error repeats of what a dead process said (characters, from the end).
SAID_AT_MOST = 1500


def worker_environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment that chapters and programs run in.

    JAX prints some sets, so the order in which Python hashes text is fixed. Options of
    Python's that would falsify a page, such as `-O`, which drops every assert, do not
    pass. Folders of modules are named from here: workers start elsewhere.
    """
    environment = {**os.environ, **(variables or {})}
    passed = {
        name: value
        for name, value in environment.items()
        if name not in _COLORS and (not name.startswith("PYTHON") or name in _KEPT)
    }
    if folders := passed.get("PYTHONPATH"):
        absolute = (
            str(Path(folder).absolute()) for folder in folders.split(os.pathsep)
        )
        passed["PYTHONPATH"] = os.pathsep.join(absolute)
    return {**DEFAULTS, **passed, "PYTHONHASHSEED": "0"}


def _waiting_pair() -> tuple[socket.socket, socket.socket]:
    """Two ends of a channel, whatever limit of time `conf.py` sets for sockets."""
    ends = socket.socketpair()
    for end in ends:
        end.setblocking(True)
    return ends


class Worker:
    """One process that does one job; `channel` is where it speaks and listens."""

    def __init__(self, folder: Path, channel: Channel, life: int, end: int) -> None:
        self.folder, self.channel = folder, channel
        self._life: int | None = life
        self.end = end

    def let_go(self) -> None:
        """Have it ended, with all that it started; then `end` can be read."""
        if self._life is not None:
            os.close(self._life)
            self._life = None

    def go_on(self) -> None:
        """Tell it that it has the machine."""
        with contextlib.suppress(ConnectionError):  # it has ended: that comes next
            self.channel.send(at="go")

    def status(self) -> int | None:
        """Its exit code, once `end` can be read; None if it was ended by us."""
        answer = os.read(self.end, 1000)
        status: int | None = json.loads(answer)["status"] if answer else None
        return status

    def close(self, patience: float = 5.0) -> None:
        """Forget it and all its files, as soon as it has ended (seconds).

        One that is still starting would look for its folder, and make another.
        """
        self.let_go()
        select.select([self.end], [], [], patience)
        os.close(self.end)
        self.channel.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def wrote_below(self) -> int:
        """How many characters wait in the files that it writes below Python."""
        sizes = 0
        for name in BELOW.values():
            with contextlib.suppress(OSError):
                sizes += (self.folder / name).stat().st_size
        return sizes

    def text_below(self, number: int) -> str:
        """What it wrote below Python to stdout (1) or stderr (2)."""
        path = self.folder / BELOW[number]
        return path.read_text("utf-8", "replace") if path.exists() else ""


def start_server(
    link: socket.socket,
    run: Path,
    environment: Mapping[str, str],
    without: Iterable[str] = (),
) -> subprocess.Popen[bytes]:
    """Start the process that workers are forked from; see `server`."""
    with (run / LOG).open("wb") as log:
        return subprocess.Popen(
            [*python_running("server"), str(link.fileno()), str(run), *without],
            cwd=run,
            env=dict(environment),
            pass_fds=[link.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # an interrupt in the terminal is ours to handle
        )


class Workers:
    """Starts workers; see `open_workers`."""

    def __init__(
        self, run: Path, environment: Mapping[str, str], without: Iterable[str]
    ) -> None:
        self._run, self._started = run, list[Worker]()
        ours, theirs = _waiting_pair()
        self._link = ours
        self._server = start_server(theirs, run, environment, without)
        theirs.close()

    def start(self, job: Job, fresh: bool = False) -> Worker:
        """Start a worker; `fresh` where nothing may have been imported before it.

        Raises:
            BookError: the process that workers are forked from has ended.
        """
        folder = self._run / str(len(self._started) + 1)
        folder.mkdir()
        (folder / JOB).write_bytes(pickle.dumps(job))
        # Elsewhere than on Linux nothing is imported before the fork: see `server`.
        if fresh or sys.platform != "linux":
            (folder / "fresh").touch()
        ours, theirs = _waiting_pair()
        life_read, life_write = os.pipe()
        end_read, end_write = os.pipe()
        fds = [theirs.fileno(), life_read, end_write]
        worker = Worker(folder, Channel(ours), life_write, end_read)
        self._started.append(worker)
        try:
            socket.send_fds(self._link, [os.fsencode(folder)], fds)
            # It answers when it has forked: from then on our ends may be closed.
            if not self._link.recv(1):
                raise ConnectionError
        except ConnectionError:
            worker.close(patience=0.0)
            raise BookError(self._ended()) from None
        finally:
            theirs.close()
            os.close(life_read)
            os.close(end_write)
        return worker

    def _ended(self) -> str:
        """Why there is no process any more that workers are forked from."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._server.wait(1.0)
        status = self._server.returncode or 0
        if status < 0:
            return (
                f"the process that chapters are forked from was ended by"
                f" {signal.Signals(-status).name}\n    → build again; what has run is"
                " kept. If this happens again, the machine may lack memory: see --jobs"
            )
        text = (self._run / LOG).read_text("utf-8", "replace").strip()
        # Of a traceback, what is below its last indented line.
        said = re.split(r"(?m)^ .*\n", text)[-1][-SAID_AT_MOST:]
        answer = said or "it ended without a message"
        return f"Python cannot import what chapters need:\n{answer}"

    def close(self, patience: float = 15.0) -> None:
        """Let the server end, and with it all that still runs (seconds).

        Also a worker whose start was cut off, which nobody else knows of.
        """
        for worker in self._started:
            worker.let_go()
        self._link.close()
        give_up = time.monotonic() + patience
        while self._server.poll() is None and time.monotonic() < give_up:
            time.sleep(0.01)
        self._server.kill()
        self._server.wait()


@contextlib.contextmanager
def open_workers(
    variables: Mapping[str, str] | None = None, without: Iterable[str] = ()
) -> Iterator[Workers]:
    """Workers that end, with their folders, when the block does.

    The packages in `without` are imported by the workers that ask for them, and not
    before.
    """
    with run_folder() as run:
        workers = Workers(run, worker_environment(variables), without)
        try:
            yield workers
        finally:
            workers.close()
