"""The command line: `python -m justafter.book build`."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import NoReturn

_STOPPED = "stopped: the site is as it was, and what ran is kept"


def _leave_at_once(number: int, frame: FrameType | None) -> NoReturn:
    """End before anything was begun, in one line, without a traceback."""
    import os

    os.write(2, f"\n{_STOPPED}\n".encode())
    os._exit(128 + number)


# Importing takes most of a second, and nothing has to be put right until it is done.
signal.signal(signal.SIGINT, _leave_at_once)
signal.signal(signal.SIGTERM, _leave_at_once)

from .commands.line import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(stopped=_STOPPED))
