"""Collecting what a cell shows, in nbformat's form, up to a limit."""

import base64
import io
from typing import Any, BinaryIO, TextIO, cast

from ..model import Failure, Output
from .channel import as_json


class OutputLimit(BaseException):
    """A cell gave more than it may. Not an Exception: cells catch those."""


class Outputs:
    """The outputs of the running cell, in the order in which they came.

    Text is kept in pieces until it is asked for, so that many small prints cost no more
    than one large one.
    """

    def __init__(self, limit: int) -> None:
        self.limit, self.image_limit = limit, 50 * limit
        self.clear()

    def clear(self) -> None:
        """Forget what the last cell gave."""
        self._items: list[Output] = []
        self._pieces: list[str] = []
        self._by_id: dict[str, Output] = {}
        self._is_stale = False
        self.size = self.image_size = 0
        #: What the cell gave too much of, in words.
        self.over = ""

    def items(self) -> list[Output]:
        """The outputs so far."""
        self._join()
        return self._items

    def forget(self, wait: bool = False) -> None:
        """Drop what has been shown; with `wait`, once there is something new to show.

        What was printed still counts toward the limit.
        """
        self._is_stale = wait
        if not wait:
            self._items.clear()
            self._pieces.clear()

    def stream(self, name: str, text: str) -> None:
        """Add text that was written to stdout or stderr."""
        if not text:
            return
        if self._is_stale:
            self.forget()
        self._grow(len(text))
        last = self._items[-1] if self._items else {}
        if last.get("output_type") != "stream" or last["name"] != name:
            self._join()
            self._items.append({"output_type": "stream", "name": name, "text": ""})
        self._pieces.append(text)

    def rich(
        self,
        kind: str,
        data: dict[str, Any],
        metadata: dict[str, Any],
        count: int = 0,
        name: str | None = None,
        update: bool = False,
    ) -> None:
        """Add a value or a display: one thing in several formats.

        With `update`, it replaces the output that was called `name`.

        Raises:
            TypeError, ValueError: something that no notebook can hold.
            RuntimeError: the one to update is not an output of this cell.
            UnicodeEncodeError: text that cannot be printed either.
        """
        data = {mime: _plain(value) for mime, value in data.items()}
        as_json([data, metadata])  # raises what it cannot hold
        if update:
            if name not in self._by_id:
                raise RuntimeError("a display is updated in the cell that shows it")
            self._by_id[name]["data"] = data
            self._by_id[name]["metadata"] = metadata
            return
        if self._is_stale:
            self.forget()
        # An image is looked at and not read, so it has a limit of its own.
        text = images = 0
        for mime, value in data.items():
            if mime.startswith("image/"):
                images += len(str(value))
            else:
                text += len(str(value))
        self._grow(text, images)
        self._join()
        item: Output = {"output_type": kind, "data": data, "metadata": metadata}
        if kind == "execute_result":
            item["execution_count"] = count
        self._items.append(item)
        if name is not None:
            self._by_id[name] = item

    def failure(self, failure: Failure) -> None:
        """Add what was raised."""
        if self._is_stale:
            self.forget()
        self._join()
        self._items.append(
            {
                "output_type": "error",
                "ename": failure.name,
                "evalue": failure.message,
                "traceback": failure.traceback.splitlines(),
            }
        )

    def _grow(self, text: int, images: int = 0) -> None:
        self.size += text
        self.image_size += images
        if self.size > self.limit:
            self.over = f"printed over {self.limit:,} characters"
        elif self.image_size > self.image_limit:
            self.over = f"showed over {self.image_limit:,} bytes of images"
        if self.over:
            self._pieces.clear()
            raise OutputLimit

    def _join(self) -> None:
        if self._pieces:
            self._items[-1]["text"] += "".join(self._pieces)
            self._pieces.clear()


def _plain(value: Any) -> Any:
    """A format's data as JSON holds it, with bytes in base64 as in notebooks."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, str):
        value.encode("utf-8")
    return value


class _Raw(io.RawIOBase):
    """The bytes below a text stream; they end up in the running cell's outputs."""

    def __init__(self, kind: str, outputs: Outputs, descriptor: int) -> None:
        super().__init__()
        self._kind, self._outputs, self._descriptor = kind, outputs, descriptor

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def write(self, data: Any) -> int:
        text = bytes(data).decode("utf-8", "replace")
        self._outputs.stream(self._kind, text)
        return len(data)


def text_stream(kind: str, outputs: Outputs, descriptor: int) -> TextIO:
    """A text stream like Python's own stdout or stderr that collects what is written.

    What stdout refuses to encode, it refuses as well.
    """
    errors = "strict" if kind == "stdout" else "backslashreplace"
    raw = _Raw(kind, outputs, descriptor)
    bytes_below = cast("BinaryIO", raw)
    # Nothing is held back, so that what goes to both streams stays in its order.
    return io.TextIOWrapper(
        bytes_below, "utf-8", errors, newline="\n", write_through=True
    )
