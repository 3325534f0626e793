"""What a worker and the builder share: names of files, messages over a socket."""

from __future__ import annotations

import json
import os
import socket
from multiprocessing.connection import Connection
from typing import Any

#: Made before any cell runs, which may set `json.dumps` to something else.
as_json = json.JSONEncoder().encode

#: What a worker is to do is in this file in its folder.
JOB = "job.pickle"

#: What the worker writes below Python goes to these files in its folder.
BELOW = {1: "below-stdout", 2: "below-stderr"}

#: One message: `at` says which, and with it what else there is; see `worker`.
Message = dict[str, Any]


class Channel:
    """One end of a socket that carries messages.

    It belongs to the process that made it: a fork that goes on by itself says nothing.
    """

    def __init__(self, link: socket.socket) -> None:
        self._link, self._owner = Connection(link.detach()), os.getpid()
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
        self._link.send_bytes(as_json(message).encode("ascii"))

    def receive(self) -> Message | None:
        """Wait for one message; None when the other end is gone."""
        try:
            message: Message = json.loads(self._link.recv_bytes())
        except (EOFError, OSError):  # also where it was killed amid its words
            self.is_open = False
            return None
        return message

    def arrived(self) -> list[Message]:
        """What has come so far, without waiting for more; see `is_open`."""
        messages = []
        while self.is_open and self._link.poll():
            if (message := self.receive()) is not None:
                messages.append(message)
        return messages
