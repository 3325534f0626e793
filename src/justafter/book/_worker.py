"""The child process that runs one chapter's cells and reports what they gave.

It is forked from a process that has imported JAX but started no backend, so a
chapter starts in milliseconds and still sees a fresh interpreter: its own
`__main__`, its own devices, its own configuration. Nothing here talks to
Sphinx; what comes back is plain data, in nbformat's form for outputs.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

#: Imported once, by the process that the workers are forked from.
PRELOAD = (
    "jax",
    "jax.numpy",
    "numpy",
    "matplotlib.pyplot",
    "matplotlib_inline.backend_inline",
    "IPython.core.interactiveshell",
    "justafter",
    "justafter.book._worker",
)

_CELL_FILE = "<cell "


@dataclass(frozen=True)
class Job:
    """What a worker needs to know of a chapter: plain data, so it can be sent.

    `cells` are (source, measured, whether it may raise, expressions to evaluate
    afterwards);
    `leading` are the expressions that stand above the first cell. `turnstile`
    and `room` are lock files that let a measured cell run alone.
    """

    docname: str
    cells: tuple[tuple[str, bool, bool, tuple[str, ...]], ...]
    leading: tuple[str, ...]
    output_limit: int
    project: str
    turnstile: str
    room: str
    style: dict[str, Any] = field(default_factory=dict)
    platform: str | None = None


class OutputLimit(BaseException):
    """A cell printed more than it may. Not an Exception: cells catch those."""


def run_chapter(job: Job, events: Connection) -> None:
    """Run the cells in order and send what happens; stop at the first failure.

    Sends ("started", n), ("cell", n, record) for each cell and at the end
    ("done", facts). A record holds outputs, seconds, the failure if the cell
    raised, and the values of the expressions that follow it.
    """
    _own_process_group()
    try:
        _run(job, events)
    except BaseException:
        # Our own bug, or a chapter that broke the shell itself: say so above,
        # since nobody sees this process's stderr.
        events.send(("crashed", traceback.format_exc()))
    events.close()
    # JAX's threads and the chapter's own must not outlive the chapter.
    os._exit(0)


def _run(job: Job, events: Connection) -> None:
    files = _record_opened_files(Path(job.project))
    if job.platform:
        _choose_platform(job.platform)
    with tempfile.TemporaryDirectory(prefix="justafter-") as folder:
        os.environ["IPYTHONDIR"] = folder
        workplace = Path(folder, "work")
        workplace.mkdir()
        os.chdir(workplace)
        session = _Session(job, folder)
        events.send(("leading", session.evaluate(job.leading)))
        for number, cell in enumerate(job.cells, 1):
            source, measured, may_raise, expressions = cell
            with _turn(job, measured):
                events.send(("started", number))
                record = session.run(number, source)
            record["values"] = session.evaluate(expressions)
            events.send(("cell", number, record))
            if record["failure"] and not may_raise:
                return
        events.send(("done", _facts(files)))
        os.chdir(os.sep)


def _choose_platform(platform: str) -> None:
    """Run on this platform: JAX was imported before the chapter was known."""
    import jax

    os.environ["JAX_PLATFORMS"] = platform
    jax.config.update("jax_platforms", platform)


def _own_process_group() -> None:
    """Make this process the head of a group that can be killed as one."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if sys.platform == "linux":
        # Die with the process that started us, however that one died.
        parent_death = 1
        ctypes.CDLL(None).prctl(parent_death, signal.SIGKILL)


@contextlib.contextmanager
def _turn(job: Job, measured: bool) -> Iterator[None]:
    """Hold the machine: shared for ordinary cells, alone for measured ones.

    Whoever waits to measure holds the turnstile, so no ordinary cell can
    start and keep it waiting. The kernel frees both locks when we die.
    """
    with Path(job.turnstile).open("a") as turnstile, Path(job.room).open("a") as room:
        fcntl.flock(turnstile, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if measured else fcntl.LOCK_SH)
        if not measured:
            fcntl.flock(turnstile, fcntl.LOCK_UN)
        yield


class _Outputs:
    """The outputs of the running cell, in the order in which they came."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.clear()

    def clear(self) -> None:
        self.items: list[dict[str, Any]] = []
        self.size = 0

    def grow(self, size: int) -> None:
        self.size += size
        if self.size > self.limit:
            raise OutputLimit

    def stream(self, name: str, text: str) -> None:
        if not text:
            return
        self.grow(len(text))
        last = self.items[-1] if self.items else {}
        if last.get("output_type") == "stream" and last["name"] == name:
            last["text"] += text
        else:
            self.items.append({"output_type": "stream", "name": name, "text": text})

    def rich(self, kind: str, data: dict, metadata: dict, count: int | None) -> None:
        self.grow(sum(len(str(value)) for value in data.values()))
        item = {"output_type": kind, "data": data, "metadata": metadata}
        if kind == "execute_result":
            item["execution_count"] = count
        self.items.append(item)


class _Stream:
    """A text stream that writes into the running cell's outputs."""

    encoding = "utf-8"
    errors = "strict"

    def __init__(self, name: str, outputs: _Outputs, descriptor: int) -> None:
        self.name = f"<{name}>"
        self._kind, self._outputs, self._descriptor = name, outputs, descriptor

    def write(self, text: str) -> int:
        self._outputs.stream(self._kind, text)
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Nothing is held back."""

    def isatty(self) -> bool:
        return False

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor


class _Session:
    """An IPython shell whose outputs are collected, one chapter long."""

    def __init__(self, job: Job, folder: str) -> None:
        self.outputs = _Outputs(job.output_limit)
        self._below = _redirect_descriptors()
        sys.stdout = _Stream("stdout", self.outputs, 1)  # type: ignore[assignment]
        sys.stderr = _Stream("stderr", self.outputs, 2)  # type: ignore[assignment]
        warnings.formatwarning = _short_warning
        self.shell = _make_shell(self.outputs)
        _inline_figures(self.shell, {**job.style, "svg.hashsalt": job.docname})

    def run(self, number: int, source: str) -> dict[str, Any]:
        """Run one cell; its outputs, its seconds, and its failure if any."""
        self.outputs.clear()
        self.shell.compile.cell = number  # type: ignore[attr-defined]
        began = time.perf_counter()
        failure: dict[str, Any] | None = None
        try:
            result = self.shell.run_cell(source, store_history=True)
            error = result.error_before_exec or result.error_in_exec
            failure = _failure(error, number) if error is not None else None
            _settle()
        except OutputLimit:
            error = None
        seconds = time.perf_counter() - began
        self._collect_descriptors()
        if self.outputs.size > self.outputs.limit:
            failure = {"kind": "output", "name": "", "message": "", "line": 1}
            failure["traceback"] = ""
            self.outputs.items = []
        elif failure is not None:
            self.outputs.items.append(
                {
                    "output_type": "error",
                    "ename": failure["name"],
                    "evalue": failure["message"],
                    "traceback": failure["traceback"].splitlines(),
                }
            )
        return {
            "outputs": self.outputs.items,
            "seconds": seconds,
            "failure": failure,
        }

    def evaluate(self, expressions: tuple[str, ...]) -> list[dict[str, str]]:
        """The text of each `expression` or `expression:format`, as f-strings do."""
        found = []
        for expression in expressions:
            code = "f" + repr("{" + expression + "}")
            try:
                # The chapter's own code, in the chapter's own namespace.
                found.append({"text": str(eval(code, self.shell.user_ns))})
            except Exception as error:
                found.append({"error": f"{type(error).__name__}: {error}"})
        return found

    def _collect_descriptors(self) -> None:
        """Take what was written below Python, by C++ or by child processes."""
        for name, file in self._below.items():
            file.seek(0)
            data = file.read(self.outputs.limit + 1)
            file.seek(0)
            file.truncate()
            with contextlib.suppress(OutputLimit):
                if data:
                    self.outputs.stream(name, data.decode("utf-8", "replace"))


def _redirect_descriptors() -> dict[str, Any]:
    """Point file descriptors 1 and 2 at files that nobody else can see."""
    files = {}
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        os.dup2(file.fileno(), descriptor)
        # Append, so that a rewound file is written from its start again.
        flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_APPEND)
        files[name] = file
    return files


def _short_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    """A warning without the path of the file that gave it."""
    return f"{category.__name__}: {message}\n"


def _make_shell(outputs: _Outputs) -> Any:
    """An IPython shell that keeps no history and sends outputs to `outputs`."""
    from IPython.core.compilerop import CachingCompiler
    from IPython.core.displayhook import DisplayHook
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets import Type
    from traitlets.config import Config

    class Compiler(CachingCompiler):
        cell = 0

        def get_code_name(self, raw_code: str, code: str, number: int) -> str:
            return f"{_CELL_FILE}{self.cell}>"

    class Publisher(DisplayPublisher):
        def publish(self, data: dict, metadata: Any = None, **kwargs: Any) -> None:
            outputs.rich("display_data", data, metadata or {}, None)

    class Hook(DisplayHook):
        def write_output_prompt(self) -> None:
            pass

        def write_format_data(self, format_dict: dict, md_dict: Any = None) -> None:
            count = self.prompt_count
            outputs.rich("execute_result", format_dict, md_dict or {}, count)

    class Shell(InteractiveShell):
        compiler_class = Type(Compiler)
        display_pub_class = Type(Publisher)
        displayhook_class = Type(Hook)

        def showtraceback(self, *args: Any, **kwargs: Any) -> None:
            """Failures are reported from the result, in a short form."""

        def showsyntaxerror(self, *args: Any, **kwargs: Any) -> None:
            """The same for code that does not parse."""

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.banner1 = ""
    # Show what a bare interpreter shows: IPython's own printer wraps at 80.
    config.PlainTextFormatter.pprint = False
    return Shell.instance(config=config)


def _inline_figures(shell: Any, style: dict[str, Any]) -> None:
    """Show figures below the cell that draws them, as SVG without a date."""
    import matplotlib as mpl
    from matplotlib_inline.backend_inline import set_matplotlib_formats
    from matplotlib_inline.config import InlineBackend

    mpl.use("module://matplotlib_inline.backend_inline")
    from matplotlib_inline.backend_inline import configure_inline_support

    configure_inline_support(shell, "module://matplotlib_inline.backend_inline")
    settings = InlineBackend.instance(parent=shell)
    settings.print_figure_kwargs = {"bbox_inches": "tight", "metadata": {"Date": None}}
    set_matplotlib_formats("svg", **settings.print_figure_kwargs)
    mpl.rcParams.update(style)


def _settle() -> None:
    """Wait for what the cell asked JAX to print from inside compiled code."""
    jax = sys.modules.get("jax")
    if jax is not None:
        jax.effects_barrier()


def _failure(error: BaseException, number: int) -> dict[str, Any]:
    """An exception as data: its class, its message, and the reader's own lines."""
    kinds = [f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__]
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(_CELL_FILE)
    ]
    here = f"{_CELL_FILE}{number}>"
    lines = [frame.lineno for frame in frames if frame.filename == here]
    if isinstance(error, SyntaxError):
        lines.append(error.lineno)
    return {
        "kind": "exception",
        "name": type(error).__name__,
        "kinds": kinds,
        "message": str(error),
        "line": next((line for line in reversed(lines) if line), 1),
        "traceback": _short_traceback(error, frames),
    }


def _short_traceback(error: BaseException, frames: list[traceback.FrameSummary]) -> str:
    """The traceback as Python prints it, without the frames of libraries.

    Notes are left out: JAX's says only that it removed frames, as we do.
    """
    lines = ["Traceback (most recent call last):"] if frames else []
    for frame in frames:
        cell = frame.filename.strip("<>").capitalize()
        where = "" if frame.name == "<module>" else f", in {frame.name}"
        lines.append(f"  {cell}, line {frame.lineno}{where}")
        if frame.line:
            lines.append(f"    {frame.line.strip()}")
    only = traceback.TracebackException.from_exception(error)
    only.__notes__ = None  # type: ignore[attr-defined]
    text = "".join(only.format_exception_only())
    return "\n".join([*lines, text.rstrip("\n")])


def _record_opened_files(project: Path) -> set[str]:
    """Collect the project's files that the chapter opens, as it opens them."""
    opened: set[str] = set()
    root = str(project) + os.sep

    def hook(event: str, args: tuple) -> None:
        # A relative name is below the chapter's own workplace: not ours.
        if event == "open" and isinstance(args[0], str) and args[0].startswith(root):
            opened.add(args[0])

    sys.addaudithook(hook)
    return opened


def _facts(files: set[str]) -> dict[str, Any]:
    """Where the chapter ran and what it used: provenance and dependencies."""
    import jax

    devices = jax.devices()
    return {
        "platform": jax.default_backend(),
        "device_kind": devices[0].device_kind,
        "device_count": len(devices),
        "modules": sorted({name.partition(".")[0] for name in list(sys.modules)}),
        "files": sorted(files),
    }
