"""The text of a cell's outputs: what is pinned, what a program prints, what is shown.

One place, so that what differs between the three is seen side by side.
"""

import re
from collections.abc import Iterable, Iterator

from ..model import CellResult, Output

_CELL_NAME = re.compile(r"<cell \d+>")

#: What Python from 3.13 on adds where an argument's name is nearly right.
_SUGGESTION = re.compile(r"\. Did you mean '\w+'\?$")


def pinned_text(outputs: Iterable[Output]) -> str:
    """The text that is pinned: everything in its order; of a figure, its kind.

    Names of cells are left without their number: it changes when a cell is added above.
    """
    return _CELL_NAME.sub("<cell>", "\n".join(map(_pinned, outputs)))


def _pinned(item: Output) -> str:
    match item["output_type"]:
        case "stream":
            return _plain(item["text"])
        case "error":
            return error_text(item)
    images = [kind for kind in item["data"] if kind.startswith("image/")]
    return f"[{images[0]}]" if images else _plain(item["data"].get("text/plain", ""))


def printed_text(outputs: Iterable[Output]) -> str:
    """The text that a program of the cell prints on stdout, or is ended by.

    What went to standard output comes first, then the value; a failure is its class and
    message. Standard error and pictures do not count.

    >>> printed_text([{"output_type": "stream", "name": "stdout", "text": "tracing\\n"},
    ...     {"output_type": "execute_result", "data": {"text/plain": "3"}}])
    'tracing\\n3'
    """
    streams, values = [], []
    for item in outputs:
        match item["output_type"]:
            case "stream" if item["name"] == "stdout":
                streams.append(item["text"])
            case "execute_result":
                values.append(item["data"].get("text/plain", ""))
            case "error":
                values.append(error_text(item))
    return "\n".join(_plain(part) for part in ["".join(streams), *values] if part)


def shown_texts(result: CellResult) -> Iterator[str]:
    """Every text that a cell puts on a page, in whatever format."""
    for item in result.outputs:
        match item["output_type"]:
            case "stream":
                yield item["text"]
            case "error":
                yield "\n".join(item["traceback"])
            case _:
                for kind, data in item["data"].items():
                    if kind.startswith("text/"):
                        yield data
    for value in result.values:
        yield value.text


def stderr_text(result: CellResult) -> str:
    """What a cell wrote to stderr."""
    streams = (item for item in result.outputs if item.get("name") == "stderr")
    return "".join(item["text"] for item in streams)


def has_figure(result: CellResult) -> bool:
    """Whether a cell shows a picture."""
    kinds = (kind for item in result.outputs for kind in item.get("data", ()))
    return any(kind.startswith("image/") for kind in kinds)


def error_text(item: Output) -> str:
    """The class and the message of an error, without what Python suggests.

    >>> message = "f() got an unexpected keyword argument 'at'. Did you mean 'act'?"
    >>> error_text({"ename": "TypeError", "evalue": message})
    "TypeError: f() got an unexpected keyword argument 'at'"
    """
    return _SUGGESTION.sub("", _plain(f"{item['ename']}: {item['evalue']}"))


def _plain(text: str) -> str:
    return text.rstrip("\n")
