"""Messages between the builder and a worker: one line of JSON each, over a socket."""

from __future__ import annotations

import json
import os
import socket
from typing import Any

#: Made before any cell runs, which may set `json.dumps` to something else.
as_json = json.JSONEncoder().encode

#: One message: `at` says which, and with it what else there is; see `worker`.
Message = dict[str, Any]


class Channel:
    """One end of a socket that carries messages.

    It belongs to the process that made it: a fork that goes on by itself says nothing.
    """

    def __init__(self, link: socket.socket) -> None:
        self._socket, self._owner = link, os.getpid()
        self._buffer = bytearray()
        #: Whether the other end may still speak.
        self.is_open = True

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def send(self, **message: Any) -> None:
        """Send one message; in a fork of the owner, end that fork instead."""
        if os.getpid() != self._owner:
            os._exit(0)
        # Escaped, so that a surrogate in some text cannot stop the message.
        self._socket.sendall(as_json(message).encode("ascii") + b"\n")

    def receive(self) -> Message | None:
        """Wait for one message; None when the other end is gone."""
        while (message := self._take()) is None:
            if not self._read():
                return None
        return message

    def arrived(self) -> list[Message]:
        """What has come so far, without waiting; see `is_open`."""
        self._socket.setblocking(False)
        try:
            while self._read():
                pass
        except BlockingIOError:
            pass
        finally:
            self._socket.setblocking(True)
        messages = []
        while (message := self._take()) is not None:
            messages.append(message)
        return messages

    def _read(self) -> bool:
        try:
            data = self._socket.recv(1 << 16)
        except ConnectionError:
            data = b""
        self._buffer += data
        self.is_open = bool(data)
        return self.is_open

    def _take(self) -> Message | None:
        end = self._buffer.find(b"\n")
        if end < 0:
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        message: Message = json.loads(line)
        return message
