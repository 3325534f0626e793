"""The command line: `python -m executed_book build`."""

import os
import signal
import sys

_STOPPED = "stopped: the site is unchanged, and finished chapters are kept"


def _leave_at_once(number: int, frame: object) -> None:
    """End before anything was begun, in one line, without a traceback."""
    os.write(2, f"\n{_STOPPED}\n".encode())
    os._exit(128 + number)


# Importing takes a moment, and nothing has to be put right until it is done.
for _stop in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
    if _stop != signal.SIGHUP or signal.getsignal(_stop) != signal.SIG_IGN:
        signal.signal(_stop, _leave_at_once)  # `nohup` has us live on

# The folder that a build starts in holds pages, and is not where modules are: a file
# there may be called like one.
_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
try:
    _here = os.getcwd()  # noqa: PTH109
except OSError:
    sys.exit("\nthe current folder was removed\n    → change to the folder of the book")
sys.path[:] = [place for place in sys.path if place not in ("", _here, _HOME)]
sys.path.append(_HOME)

from .commands.line import main  # noqa: E402 (as soon as signals are set)

if __name__ == "__main__":
    sys.exit(main(stopped=_STOPPED))
