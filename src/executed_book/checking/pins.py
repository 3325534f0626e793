"""Pins: the text of every deterministic output, kept in the repository.

One file a chapter, made to be read in a diff: each cell's source as at a
prompt, and below it, behind bars, what it gave. A build compares; accepting
new outputs is a step of its own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from ..errors import PageError
from ..model import Cell, Chapter, Executed, Provenance, Value, ValueResult
from .comparison import same_output
from .text import pinned_text

#: How far apart two numbers in pinned text may be: another CPU rounds otherwise.
RELATIVE_TOLERANCE = 1e-4

#: How a pin file begins.
_HEAD = "# JAX "


@dataclass(frozen=True)
class Pin:
    """One cell and what it gave; `output` is None where it may vary."""

    source: str
    output: str | None


def pin_path(folder: Path, docname: str) -> Path:
    """The file with the pins of a chapter."""
    return folder / f"{docname}.txt"


def pins_of(executed: Executed) -> list[Pin]:
    """What a run would pin: a block for the leading text and one for each cell."""
    pins = []
    if executed.chapter.leading:
        pins.append(Pin("", "\n".join(_values(executed.leading))))
    for cell, result in executed:
        lines = [*_values(zip(cell.values, result.values, strict=True))]
        if not cell.varies:
            lines = [*pinned_text(result.outputs).splitlines(), *lines]
        empty = cell.varies and not lines
        pins.append(Pin(pinned_source(cell), None if empty else "\n".join(lines)))
    return pins


def pinned_source(cell: Cell) -> str:
    """A cell's source as a file of pins holds it: no line ends with white space."""
    return "\n".join(line.rstrip() for line in cell.source.strip().splitlines())


def _values(values: Iterable[tuple[Value, ValueResult]]) -> Iterator[str]:
    for value, result in values:
        if value.role == "value":
            yield f"{{value}} {value.expression} = {result.text}"


def write_pins(pins: list[Pin], provenance: Provenance) -> str:
    """The text of a pin file."""
    head = f"{_HEAD}{provenance.jax}, {provenance.platform}\n"
    return "\n".join([head, *(_block(pin) for pin in pins)])


def pinned_with(path: Path) -> str | None:
    """The version of JAX that a file of pins was made with; None without one."""
    try:
        first = path.read_text("utf-8").partition("\n")[0]
    except (OSError, ValueError):
        return None
    found = re.match(rf"{re.escape(_HEAD)}([^,]+),", first)
    return found[1] if found else None


def is_pin_file(path: Path) -> bool:
    """Whether a file was written by `write_pins`."""
    try:
        with path.open("rb") as file:
            return file.read(len(_HEAD)) == _HEAD.encode()
    except OSError:
        return False


def _block(pin: Pin) -> str:
    source = pin.source.splitlines() or [""]
    lines = [f">>> {source[0]}", *(f"... {line}" for line in source[1:])]
    if pin.output is None:
        lines.append("~")
    elif pin.output:
        lines += [f"| {line}" for line in pin.output.splitlines()]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def read_pins(text: str) -> list[Pin]:
    """The pins of a file, in order. The inverse of `write_pins`."""
    pins = []
    for block in re.split(r"\n(?=>>>)", text)[1:]:
        lines = block.rstrip("\n").splitlines()
        source = [line[4:] for line in lines if line.startswith((">>>", "..."))]
        output = [line[2:] for line in lines if line.startswith("|")]
        varies = lines[-1] == "~"
        pins.append(Pin("\n".join(source), None if varies else "\n".join(output)))
    return pins


def check_pins(
    executed: Executed, folder: Path, spoilt: Collection[int] = ()
) -> Iterator[PageError]:
    """Every output of a run that is not the pinned one, at the cell's line.

    Cells whose numbers are in `spoilt` failed, which is told elsewhere.
    """
    chapter = executed.chapter
    path = pin_path(folder, chapter.docname)
    if not path.exists():
        yield PageError(
            chapter.path,
            1,
            "the chapter's outputs are not pinned",
            "read them on the page, then accept them with"
            " 'python -m executed_book pin'",
        )
        return
    try:
        pinned = read_pins(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        yield PageError(
            path,
            1,
            f"not a file of pins: {error}",
            "write it anew with 'python -m executed_book pin'",
        )
        return
    now = pins_of(executed)
    cells: list[Cell | None] = [*([None] if chapter.leading else []), *chapter.cells]
    matcher = SequenceMatcher(
        None, [pin.source for pin in pinned], [pin.source for pin in now], False
    )
    unmatched = False
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        if kind == "equal":
            for pin, new, cell in zip(
                pinned[i:i_end], now[j:j_end], cells[j:j_end], strict=True
            ):
                if cell is None or cell.number not in spoilt:
                    yield from _compared(chapter, cell, pin, new)
            continue
        for cell in cells[j:j_end]:
            unmatched = True
            yield PageError(
                chapter.path,
                cell.line if cell else 1,
                f"cell {cell.number if cell else 0} is new or has changed"
                " since its output was pinned",
                "read its output on the page, then accept it with"
                " 'python -m executed_book pin'",
            )
        is_whole = len(chapter.cells) == len(executed.run.results)
        if j == j_end and is_whole and not unmatched:
            yield PageError(
                chapter.path,
                1,
                f"{i_end - i} pinned cells are no longer on the page",
                "accept that with 'python -m executed_book pin'",
                pinned[i].source,
            )


def _compared(
    chapter: Chapter, cell: Cell | None, pin: Pin, new: Pin
) -> Iterator[PageError]:
    if pin.output is None or new.output is None:
        same = pin.output is new.output
        detail = "one of them is marked as varying, the other is not"
    else:
        difference = same_output(pin.output, new.output, RELATIVE_TOLERANCE)
        same, detail = difference is None, str(difference)
    if not same:
        yield PageError(
            chapter.path,
            cell.line if cell else 1,
            f"cell {cell.number if cell else 0} does not give what is pinned",
            "mend the cell; or if the new output is right, accept it with"
            " 'python -m executed_book pin'",
            detail,
        )
