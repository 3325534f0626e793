"""What a chapter uses of its surroundings: files, folders, variables.

Python's audit events tell of what is opened, listed and started. Reading a variable and
asking whether a file exists have no event, so these are noted where they happen.
"""

import functools
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from .failures import CELL_FILE

#: How many frames lie between a cell and the lookup that `os.getenv` ends in, at most.
_FRAMES = 5


@dataclass
class Uses:
    """What a chapter has used so far, as paths, and variables as they were at first."""

    files: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    variables: dict[str, str | None] = field(default_factory=dict)


def note_uses(project: Path) -> Uses:
    """Collect what this process uses of a project from now on."""
    uses = Uses()
    root = str(project) + os.sep

    def place(path: Any, below: str = "") -> str:
        try:
            full = os.path.abspath(os.path.join(below, os.fsdecode(path)))  # noqa: PTH100, PTH118 (links stay as they are)
        except (TypeError, ValueError):  # a number of an open file, say
            return ""
        if f"{os.sep}{CELL_FILE}" in full:  # Python 3.11 looks for it, for a traceback
            return ""
        return full if f"{full}{os.sep}".startswith(root) else ""

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            if path := place(args[0]):
                uses.files.add(path)
        elif event in ("os.listdir", "os.scandir"):
            # Importing looks for modules wherever they could be.
            importing = "importlib" in sys._getframe(1).f_code.co_filename
            if not importing and (path := place(args[0] or ".")):
                uses.folders.add(path)
        elif event in ("subprocess.Popen", "os.system"):
            command, below = args[1:3] if len(args) > 1 else (args[0], None)
            named = (place(word, below or "") for word in _words(command))
            uses.files.update(filter(None, named))

    sys.addaudithook(hook)
    for name in ("stat", "lstat", "access"):
        _note_calls(name, lambda path: hook("open", (path,)))
    _note_variables(uses.variables)
    return uses


def _note_calls(name: str, note: Callable[[Any], None]) -> None:
    """Have a function of `os` that asks for a file note which one."""
    function = getattr(os, name)

    @functools.wraps(function)
    def noting(path: Any, *args: Any, **options: Any) -> Any:
        note(path)
        return function(path, *args, **options)

    setattr(os, name, noting)
    for able in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
        if function in able:
            able.add(noting)


def _words(command: Any) -> Iterator[str]:
    """The words of a command: of its parts, one of which may be for the shell."""
    parts = [command] if isinstance(command, str | bytes) else command
    for part in parts:
        text = os.fsdecode(part)
        try:
            yield from shlex.split(text)
        except ValueError:
            yield from text.split()


def _note_variables(read: dict[str, str | None]) -> None:
    """Note the variables that cells look up, as they were before any cell set one."""
    kind, first = type(os.environ), dict(os.environ)
    look_up, has, names = kind.__getitem__, kind.__contains__, kind.__iter__
    # Copying all of them, for a child say, looks each up once, and depends on none.
    copied: set[object] = set()

    def note(key: object) -> None:
        if not _is_asked_by_a_cell():
            return
        if key in copied:
            copied.remove(key)
        elif isinstance(key, str):
            read.setdefault(key, first.get(key))

    def noting(self: Any, key: str) -> str:
        note(key)
        return look_up(self, key)

    def noting_whether(self: Any, key: object) -> bool:
        note(key)
        return has(self, key)

    def noting_copies(self: Any) -> Iterator[str]:
        if _is_asked_by_a_cell():
            copied.update(names(self))
        return names(self)

    kind.__getitem__ = noting  # type: ignore[method-assign]
    kind.__contains__ = noting_whether  # type: ignore[method-assign]
    kind.__iter__ = noting_copies  # type: ignore[method-assign]


def _is_asked_by_a_cell() -> bool:
    frame: FrameType | None = sys._getframe(2)
    for _ in range(_FRAMES):
        if frame is None:
            return False
        if frame.f_code.co_filename.startswith(CELL_FILE):
            return True
        frame = frame.f_back
    return False
