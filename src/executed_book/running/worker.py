"""The process that does one job: a chapter cell by cell, or a program as a whole.

It is forked from a process that has imported JAX but started no backend, or started
afresh where the job asks for that. Nothing here talks to Sphinx; what goes back to the
builder is plain data.

A worker of a chapter says what it is about to do, so that the builder knows how long to
wait: `{"at": "cell", "number": 3}`. Before each cell it asks for the machine
(`{"at": "turn"}`) and waits for one message.
"""

import dataclasses
import os
import pickle
import socket
import sys
import traceback
from pathlib import Path
from typing import Any

from ..model import CellResult, Chapter, to_plain
from ..settings import Settings
from .channel import BELOW, JOB, Channel
from .outputs import OutputLimit, Outputs
from .processes import die_with_parent
from .stderr import told_apart
from .surroundings import Uses, note_uses

#: Variables with these prefixes are read when the library is imported.
READ_AT_IMPORT = ("JAX_", "MPL", "OMP_", "OPENBLAS_", "MKL_", "NPY_", "TF_")

#: What a process says that should have ended inside a cell.
_FORKED = "a forked process went on past the end of the cell; end it with os._exit\n"


def work(folder: Path, channel: int) -> None:
    """Do the job in `folder`, speak over `channel`, and end this process."""
    job: tuple[Chapter, Settings] | str
    job = pickle.loads((folder / JOB).read_bytes())
    place = folder / "work"
    place.mkdir()
    if not isinstance(job, str) and job[1].folder == "page":
        place = job[0].path.parent
    os.chdir(place)
    os.environ["IPYTHONDIR"] = str(folder)  # no profile of the user's is read
    # As at a prompt: modules beside the page are found, and there are no arguments.
    sys.argv = [""]
    if sys.path[:1] != [""]:
        sys.path.insert(0, "")
    link = Channel(socket.socket(fileno=channel))
    if isinstance(job, str):
        from .script import run_program

        link.send(at="program", pid=os.getpid())
        run_program(job, folder)
    try:
        _Chapter(*job, folder, link).run()
    except BaseException:
        # Our own fault, or a chapter that broke the shell itself: say so above, since
        # nobody sees this process's stderr.
        link.send(at="broken", text=traceback.format_exc())
    # JAX's threads and the chapter's own must not outlive the chapter.
    os._exit(0)


#: What a cell gives that is not run.
_NOTHING = to_plain(CellResult())


class _Chapter:
    """A chapter while it runs."""

    def __init__(
        self, chapter: Chapter, settings: Settings, folder: Path, link: Channel
    ) -> None:
        self._chapter, self._link = chapter, link
        self._owner = os.getpid()
        self._below = {n: (folder / name).open("r+b") for n, name in BELOW.items()}
        if chapter.platform:
            _choose_platform(chapter.platform)
        from .shell import Shell

        outputs = Outputs(settings.output_limit)
        figures = "png" if settings.figures == "png" else "svg"
        self._shell = Shell(chapter.docname, outputs, figures, settings.figure_style)
        if not (folder / "fresh").exists():
            _note_late_settings(link)
        self._uses = note_uses(settings.project)
        _forget_this_package()

    def run(self) -> None:
        """Run all cells; a cell that fails does not end the chapter."""
        self._link.send(at="begin", pid=self._owner)
        for cell in self._chapter.cells:
            number = cell.number
            if cell.is_skipped:
                self._link.send(at="result", number=number, result=_NOTHING)
                continue
            self._link.send(at="turn", measured="measured" in cell.tags)
            if self._link.receive() is None:
                return
            self._link.send(at="cell", number=number)
            seconds, failure = self._shell.run(number, cell.source, cell.is_check)
            self._end_forks()
            log = self._collect_below()
            result = self._shell.result(seconds, failure, ())
            self._link.send(at="values", number=number)
            values = tuple(self._shell.evaluate(v.expression) for v in cell.values)
            result = dataclasses.replace(result, values=values, log=log)
            self._link.send(at="result", number=number, result=to_plain(result))
        self._link.send(at="end")
        self._link.send(at="done", **_facts(self._uses))

    def _end_forks(self) -> None:
        """End a process that the cell forked and that came back here."""
        if os.getpid() != self._owner:
            os.write(2, _FORKED.encode())
            os._exit(0)

    def _collect_below(self) -> str:
        """Take what was written below Python, by C++ or by child processes.

        Returns what the runtime logged, which is not part of the cell's output.
        """
        log = ""
        for number, name in ((1, "stdout"), (2, "stderr")):
            file = self._below[number]
            file.seek(0)
            data = file.read(self._shell.outputs.limit + 1)
            file.truncate(0)
            text = data.decode("utf-8", "replace")
            if name == "stderr":
                text, log = told_apart(text)
            try:
                self._shell.outputs.stream(name, text)
            except OutputLimit:
                break
        return log


def _choose_platform(platform: str) -> None:
    """Run on this platform, whether or not JAX has been imported already."""
    os.environ["JAX_PLATFORMS"] = platform
    if "jax" in sys.modules:
        import jax

        jax.config.update("jax_platforms", platform)


def _forget_this_package() -> None:
    """Let a cell that imports this package read it anew, so that it is noted."""
    package = __name__.partition(".")[0]
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]


def _note_late_settings(link: Channel) -> None:
    """Ask to start afresh when a cell sets what a library reads when imported.

    This process has imported the library already, and the reader's has not.
    """
    owner = os.getpid()

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event in ("os.putenv", "os.unsetenv") and os.getpid() == owner:
            name = os.fsdecode(args[0])
            if name.startswith(READ_AT_IMPORT):
                link.send(at="afresh", name=name)
                os._exit(0)

    sys.addaudithook(hook)


def _facts(uses: Uses) -> dict[str, Any]:
    """Where the chapter ran and what it used: provenance and dependencies."""
    modules = sorted({name.partition(".")[0] for name in list(sys.modules)})
    platform, kind, count = "cpu", "cpu", 1
    if "jax" in modules:
        import jax

        # Starts the backend where no cell did: what it would have run on is asked for.
        devices = jax.devices()
        kind, count = devices[0].device_kind, len(devices)
        platform = jax.default_backend()
    return {
        "platform": platform,
        "device_kind": kind,
        "device_count": count,
        "modules": modules,
        "uses": {
            "files": sorted(uses.files),
            "folders": sorted(uses.folders),
            "variables": uses.variables,
        },
    }


def main() -> None:
    """Work in a process started afresh; arguments: the folder, the channel's number."""
    die_with_parent()
    work(Path(sys.argv[1]), int(sys.argv[2]))
