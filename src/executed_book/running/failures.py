"""Exceptions as plain data: the class, the message, and the reader's own lines."""

import traceback

from ..model import Failure

#: How the code of a cell is called in tracebacks: `<cell 3>`.
CELL_FILE = "<cell "


def cell_file(number: int) -> str:
    """The file name of a cell's code."""
    return f"{CELL_FILE}{number}>"


def failure_of(error: BaseException, number: int, last_line: int = 1) -> Failure:
    """An exception of cell `number` as data.

    Args:
        error: what was raised.
        number: the cell's number.
        last_line: the line to name if the error came after the cell's own code, while
            its value was displayed.
    """
    kinds = (f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(CELL_FILE)
    ]
    here = cell_file(number)
    lines = [frame.lineno for frame in frames if frame.filename == here]
    if isinstance(error, SyntaxError) and error.filename in (here, None):
        lines.append(error.lineno)
    return Failure(
        name=type(error).__name__,
        kinds=tuple(kinds),
        message=_printable(_message(error)),
        line=next((line for line in reversed(lines) if line), last_line),
        traceback=_printable(_short_traceback(error, frames)),
    )


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:
        return f"<its message cannot be shown: {type(broken).__name__}>"


def _printable(text: str) -> str:
    """The text as Python prints it on stderr, where no character is refused."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


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
    only.__notes__ = None
    text = "".join(only.format_exception_only())
    return "\n".join([*lines, text.rstrip("\n")])
