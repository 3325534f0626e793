"""Running one program as the main module of its process, as Python itself does."""

import atexit
import os
import sys
import threading
import types
from pathlib import Path
from typing import NoReturn

from .channel import as_json

FILE = "program.py"

#: Where the class and the message of what ended a program are written.
RAISED = "raised.json"


def run_program(text: str, folder: Path) -> NoReturn:
    """Run a program in the working folder, and end the process as Python would."""
    place = Path.cwd()
    (place / FILE).write_text(text, "utf-8")
    main = types.ModuleType("__main__")
    main.__file__ = str(place / FILE)
    sys.modules["__main__"] = main
    sys.argv, sys.path[0] = [FILE], str(place)
    _finish(_run(text, main, folder))


def _run(text: str, main: types.ModuleType, folder: Path) -> int:
    """Run the program; the exit status that Python would give."""
    try:
        code = compile(text, str(main.__file__), "exec", dont_inherit=True)
        exec(code, main.__dict__)
    except SystemExit as end:
        if end.code is not None and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as error:
        said = f"{type(error).__name__}: {error}"
        (folder / RAISED).write_text(as_json(said), "ascii")
        trace = error.__traceback__.tb_next if error.__traceback__ else None
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 1
    return 0


def _finish(status: int) -> NoReturn:
    """End the process in the ordinary order, but leave freeing memory to the system.

    Taking JAX's modules apart costs more than most programs do.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
