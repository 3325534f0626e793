"""What a worker and the builder share: names of files, messages over a socket."""

import json
import os
import socket
from typing import Any

#: Made before any cell runs, which may set `json.dumps` and `json.loads` to anything.
as_json, from_json = json.JSONEncoder().encode, json.JSONDecoder().decode

#: What a worker is to do is in this file in its folder.
JOB = "job.pickle"

#: What the worker writes below Python goes to these files in its folder.
BELOW = {1: "below-stdout", 2: "below-stderr"}

#: How much is read from the socket at once (bytes).
_AT_ONCE = 1 << 20

#: One message: `at` says which, and with it what else there is; see `worker`.
Message = dict[str, Any]


class Channel:
    """One end of a socket that carries messages, each a line of JSON.

    It belongs to the process that made it: a fork that goes on by itself says nothing.
    """

    def __init__(self, link: socket.socket) -> None:
        self._link, self._owner = link, os.getpid()
        self._begun = bytearray()  # a message whose end has not come
        self._whole: list[Message] = []
        #: Whether the other end may still speak.
        self.is_open = True

    def fileno(self) -> int:
        return self._link.fileno()

    def close(self) -> None:
        self._link.close()

    def send(self, **message: Any) -> None:
        """Send one message; in a fork of the owner, end that fork instead."""
        if os.getpid() != self._owner:
            os._exit(0)
        # Escaped, so that a surrogate in some text cannot stop the message.
        self._link.sendall(as_json(message).encode("ascii") + b"\n")

    def receive(self) -> Message | None:
        """Wait for one message; None when the other end is gone."""
        while self.is_open and not self._whole:
            self._read()
        return self._whole.pop(0) if self._whole else None

    def arrived(self) -> list[Message]:
        """The messages that have come whole, without waiting for more; see `is_open`.

        A worker may be stopped amid a message, so its rest is not waited for either.
        """
        while self.is_open and self._read(socket.MSG_DONTWAIT):
            pass
        messages, self._whole = self._whole, []
        return messages

    def _read(self, flags: int = 0) -> bool:
        """Take what has come; False if that was nothing."""
        try:
            data = self._link.recv(_AT_ONCE, flags)
        except BlockingIOError:
            return False
        except OSError:  # also where it was killed amid its words
            data = b""
        self.is_open = bool(data)
        self._begun += data
        if b"\n" in data:
            *lines, self._begun = self._begun.split(b"\n")
            self._whole += [from_json(line.decode("ascii")) for line in lines]
        return self.is_open
