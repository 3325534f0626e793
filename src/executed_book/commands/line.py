"""The command line: what it understands, and how it says what went wrong."""

import argparse
import importlib
import os
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from ..errors import BookError
from ..running.processes import STOPPING
from ..running.progress import Progress
from ..settings import Settings


class _Stopped(BaseException):
    """A signal asked us to end. Not an Exception: nothing is to catch it on the way."""

    def __init__(self, number: int) -> None:
        self.number = number


def main(arguments: list[str] | None = None, stopped: str = "stopped") -> int:
    """Run one command; 0 if all went well, 1 if the book has a problem."""
    options = _parser().parse_args(arguments)
    progress = Progress()
    for number in STOPPING:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _stop)  # `nohup` has us live on
    sys.unraisablehook = _dropped
    try:
        options.run(options, progress)
    except BookError as error:
        _say(f"{error}")
    except (_Stopped, KeyboardInterrupt) as stop:
        _ignore_signals()
        _say(stopped)
        return 128 + getattr(stop, "number", signal.SIGINT)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        _say(f"I/O error: {error.strerror or error}{where}")
    except Exception as error:
        _say(_defect(error))
    else:
        return 0
    return 1


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    _ignore_signals()  # once is enough, and ending takes a moment
    raise _Stopped(number)


def _dropped(what: "sys.UnraisableHookArgs") -> None:
    """Stop a moment later if Python could not raise it where the signal came.

    That is so in callbacks of weak references, of which importing has many, and in
    `__del__`.
    """
    stop = what.exc_value
    if isinstance(stop, _Stopped):
        signal.signal(signal.SIGALRM, lambda _, frame: _stop(stop.number, frame))
        signal.setitimer(signal.ITIMER_REAL, 0.01)
    else:
        sys.__unraisablehook__(what)


def _ignore_signals() -> None:
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)


def _say(text: str) -> None:
    sys.stdout.flush()
    print(f"\n{text}", file=sys.stderr)


def _defect(error: Exception) -> str:
    """What is said where only a mistake of ours, or a missing package, is the cause."""
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing is not None and not missing.startswith("executed_book"):
        return (
            f"the builder needs {missing!r}, which is not installed here\n"
            f"    → python -m pip install executed-book brings all that it needs"
        )
    traceback.print_exc()
    return "the builder itself failed: nothing was published; please report the above"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m executed_book")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, (run, text) in _COMMANDS.items():
        command = commands.add_parser(name, help=text)
        command.set_defaults(run=run, command=name)
        add = command.add_argument
        add("--source", type=Path, default=Path("docs"), help="the pages' folder")
        add("--config", type=Path, default=Path("conf"), help="the folder of conf.py")
        add("--cache", type=Path, help="where runs are kept")
        several: dict[str, Any] = {"action": "append", "default": [], "type": _override}
        add("-D", metavar="NAME=VALUE", help="in place of what conf.py says", **several)
        add("--jobs", type=_count, help="chapters at once")
        if name == "build":
            add("--output", type=Path, default=Path("_build/html"), help="the site")
        elif name != "releases":
            add("--only", nargs="+", action="extend", metavar="CHAPTER", help="by name")
    return parser


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def _override(text: str) -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not mark:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _settings(options: argparse.Namespace) -> Settings:
    from .configuration import read_settings

    more: dict[str, Any] = {}
    if options.jobs is not None:
        more["jobs"] = options.jobs
    if options.cache is not None:
        more["cache"] = options.cache.resolve()
    if getattr(options, "only", None):
        more["only"] = frozenset(options.only)
    source, config = options.source.resolve(), options.config.resolve()
    return read_settings(config, source, dict(options.D), **more)


def _build(options: argparse.Namespace, progress: Progress) -> None:
    from .build import build

    # The folder itself must not be resolved: a link is refused.
    output = Path.cwd() / options.output
    config, overrides = options.config.resolve(), dict(options.D)
    build(_settings(options), config, output, progress, overrides)


def _execute(options: argparse.Namespace, progress: Progress) -> None:
    from ..book import execute
    from ..errors import raise_all

    raise_all(execute(_settings(options), progress).errors)


def _claims(options: argparse.Namespace, progress: Progress) -> None:
    from ..book import execute
    from ..checking.receipts import in_words

    book = execute(_settings(options), progress)
    for error in book.unbound:
        print(f"{os.path.relpath(error.path)}:{error.line}: {error.message}")
    print(in_words(book.counts))


def _run(options: argparse.Namespace, progress: Progress) -> None:
    """Run a command whose module and function are called as it is."""
    name = options.command
    module = importlib.import_module(f"executed_book.commands.{name}")
    getattr(module, name)(_settings(options), progress)


#: Each command with what it does.
_COMMANDS = {
    "build": (_build, "execute the book and publish the site"),
    "execute": (_execute, "execute the book, render nothing"),
    "claims": (_claims, "list the claims that name no check"),
    "verify": (_run, "run each program that has no verdict yet, by itself"),
    "pin": (_run, "accept the outputs as they are now"),
    "record": (_run, "write what this platform gives"),
    "releases": (_run, "write the page of what other releases of JAX change"),
}
