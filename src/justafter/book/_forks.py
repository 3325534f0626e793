"""Running many programs, each by itself, without importing JAX for each.

`run_programs` starts one process that imports JAX, NumPy and Matplotlib and then forks
once a program. Forking is safe there because no JAX backend has started yet. A program
runs in the fork as the main module of a process of its own, in an empty folder, with
the ordinary end of a process, so that what JAX does at exit is done.

A program that sets the environment starts in an interpreter that has imported nothing,
since JAX reads its variables when it is imported.
"""

import atexit
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

FILE = "program.py"
_POLL = 0.01  # seconds


@dataclass(frozen=True)
class Run:
    """What a program did.

    Attributes:
        stdout, stderr: what it wrote.
        raised: the class and message of the exception that ended it, or None.
        status: its exit status; negative for the signal that ended it.
        timed_out: whether it was stopped at the time limit.
        seconds: wall time from its start to its end.
    """

    stdout: str
    stderr: str
    raised: str | None
    status: int
    timed_out: bool
    seconds: float

    @property
    def shown(self) -> str:
        """Its output as a page shows it: what it printed, then what it raised."""
        parts = [self.stdout.rstrip("\n"), self.raised or ""]
        if self.timed_out:
            parts.append("(stopped at the time limit)")
        elif self.status and self.raised is None:
            parts.append(f"(ended with status {self.status})")
        return "\n".join(part for part in parts if part)


def run_programs(
    texts: Sequence[str],
    fresh: Iterable[int] = (),
    jobs: int = 2,
    timeout: float = 120.0,
    environment: dict[str, str] | None = None,
) -> list[Run]:
    """Runs programs, `jobs` at a time, and returns what each did, in order.

    Args:
        texts: the programs' sources.
        fresh: indices of those that must start without JAX imported.
        jobs: how many run at the same time.
        timeout: seconds before a program is killed with all it started.
        environment: variables to set besides the current ones; `JAX_PLATFORMS` is
            `cpu` and `MPLBACKEND` is `agg` unless they are set here.

    Raises:
        RuntimeError: the process that forks ended early.
    """
    # JAX prints some sets: their order is that of the page if the seed is the same.
    defaults = {"JAX_PLATFORMS": "cpu", "MPLBACKEND": "agg", "PYTHONHASHSEED": "0"}
    variables = defaults | os.environ | (environment or {})
    with tempfile.TemporaryDirectory(prefix="programs-") as folder:
        for i, text in enumerate(texts):
            place = Path(folder, str(i))
            place.mkdir()
            (place / FILE).write_text(text, encoding="utf-8")
        order = {"folder": folder, "count": len(texts), "fresh": sorted(fresh)}
        _start(order | {"jobs": jobs, "timeout": timeout}, variables)
        return [_result(Path(folder, str(i))) for i in range(len(texts))]


def _start(order: dict, variables: dict[str, str]) -> None:
    command = [sys.executable, __file__, "serve", json.dumps(order)]
    server = subprocess.Popen(
        command, env=variables, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        _, errors = server.communicate()
    except BaseException:
        server.terminate()
        server.wait()
        raise
    if server.returncode:
        raise RuntimeError(f"running programs failed:\n{errors.decode()}")


def _result(place: Path) -> Run:
    end = json.loads((place / "end.json").read_text())
    raised = place / "raised.json"
    return Run(
        stdout=(place / "stdout").read_text(encoding="utf-8", errors="replace"),
        stderr=(place / "stderr").read_text(encoding="utf-8", errors="replace"),
        raised=json.loads(raised.read_text()) if raised.exists() else None,
        **end,
    )


# -- in the process that forks; run as a script, so that a fork is the main module


def _serve(order: dict) -> str | None:
    """Starts each program; returns a folder in the fork, None when all have ended."""
    _import_libraries(order)
    running: dict[int, tuple[Path, float]] = {}
    stopped: set[int] = set()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    waiting = [Path(order["folder"], str(i)) for i in range(order["count"])]
    waiting.reverse()
    fresh = {Path(order["folder"], str(i)) for i in order["fresh"]}
    try:
        while waiting or running:
            while waiting and len(running) < order["jobs"]:
                place = waiting.pop()
                child = _spawn(place) if place in fresh else os.fork()
                if not child:
                    running.clear()
                    signal.signal(signal.SIGTERM, signal.SIG_DFL)
                    return str(place)
                if place not in fresh:
                    os.setpgid(child, child)  # the fork does so too; either may be late
                running[child] = place, time.monotonic()
            _reap(running, stopped, order["timeout"])
    finally:
        for child in running:
            _kill(child)
    return None


def _import_libraries(order: dict) -> None:
    if order["count"] > len(order["fresh"]):
        for library in ("jax", "jax.numpy", "numpy", "matplotlib.pyplot"):
            importlib.import_module(library)

        # Keeps the forks' garbage collector from writing to the shared pages.
        gc.collect()
        gc.freeze()


def _spawn(place: Path) -> int:
    command = [sys.executable, __file__, "one", str(place)]
    process = subprocess.Popen(command, process_group=0)
    process.returncode = 0  # it is waited for with the forks
    return process.pid


def _reap(
    running: dict[int, tuple[Path, float]], stopped: set[int], timeout: float
) -> None:
    child, status = os.waitpid(-1, os.WNOHANG)
    now = time.monotonic()
    if child in running:
        place, start = running.pop(child)
        _kill(child)  # what it left running
        end = {
            "status": os.waitstatus_to_exitcode(status),
            "timed_out": child in stopped,
            "seconds": now - start,
        }
        (place / "end.json").write_text(json.dumps(end))
        return
    for late, (_, start) in running.items():
        if now - start > timeout and late not in stopped:
            stopped.add(late)
            _kill(late)
    time.sleep(_POLL)


def _kill(leader: int) -> None:
    """Kills a program and all that it started; it leads a process group."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return  # all of it has ended


# -- in a program's process


def _become(place: str) -> None:
    """Turns this process into one that was started for the program."""
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
    os.chdir(place)
    for number, name in ((1, "stdout"), (2, "stderr")):
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(handle, number)
        os.close(handle)


def _run(place: str) -> int:
    """Runs the program as `python program.py` does; returns the exit status."""
    import types

    main = types.ModuleType("__main__")
    main.__file__ = str(Path(place, FILE))
    sys.modules["__main__"] = main
    sys.argv = [FILE]
    sys.path[0] = place
    try:
        source = Path(place, FILE).read_text(encoding="utf-8")
        code = compile(source, main.__file__, "exec", dont_inherit=True)
        exec(code, main.__dict__)
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        Path(place, "raised.json").write_text(json.dumps(message))
        trace = error.__traceback__.tb_next if error.__traceback__ else None
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 1
    except SystemExit as end:
        if end.code is not None and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _finish(status: int) -> None:
    """Ends the process in the ordinary order, but leaves freeing memory to the system.

    Taking JAX's modules apart costs more than most programs do.
    """
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _main(command: str, argument: str) -> None:
    place = argument if command == "one" else _serve(json.loads(argument))
    if place is not None:
        _become(place)
        _finish(_run(place))


if __name__ == "__main__":
    _main(*sys.argv[1:])
