"""Records: what cells gave on another platform, each with where that was.

One JSON file a chapter, in a folder a platform, made to be read in a diff, with
its figures beside it. A record belongs to a program: the cell with everything it
depends on. When that changes, the record is stale and is no longer shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ..checking.comparison import same_output
from ..checking.pins import RELATIVE_TOLERANCE, pin_path, pinned_source, read_pins
from ..checking.text import pinned_text
from ..errors import PageError
from ..files import write_whole
from ..model import (
    Cell,
    CellResult,
    Chapter,
    Executed,
    Output,
    Provenance,
    plain_provenance,
)
from ..programs import Program
from ..running.fingerprint import digest

_SVG = "image/svg+xml"

#: What an output of each kind has, in nbformat's form.
_FIELDS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "stream": {"name": str, "text": str},
    "error": {"ename": str, "evalue": str, "traceback": (str, list)},
    "display_data": {"data": dict},
    "execute_result": {"data": dict},
}

#: An `Output` as a record's file has it: a text of several lines is a list of them,
#: and a figure is the name of a file.
Folded = dict[str, Any]


@dataclass(frozen=True)
class Record:
    """What one cell gave on another platform.

    Attributes:
        number: the cell, counted from 1.
        program: the digest of the cell's program.
        outputs: what it gave, in nbformat's form.
        provenance: platform, device kind and count, driver, versions, date.
        cpu: the text that a CPU gave with the same JAX; None where that is not known,
            or is another one each time.
    """

    number: int
    program: str
    outputs: list[Output]
    provenance: Provenance
    cpu: str | None = None

    @property
    def label(self) -> str:
        """The device, as the reader chooses it."""
        return self.provenance.device_kind


def slug(label: str) -> str:
    """A device's name as part of a path.

    >>> slug("NVIDIA H200")
    'nvidia-h200'
    """
    return re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")


def program_digest(
    chapter: Chapter, number: int, programs: Sequence[Program | None]
) -> str:
    """What a cell's output depends on: its program, without the first comment."""
    program = programs[number - 1]
    if program is None:
        return digest([cell.source for cell in chapter.cells[:number]])
    return digest(program.text.partition("\n")[2])


def records_of(
    executed: Executed,
    programs: Sequence[Program | None],
    on_cpu: Mapping[int, str],
    without: Collection[int] = (),
) -> list[Record]:
    """A record of each cell whose output here is not the CPU's.

    Cells marked as measured or depending on the device are always recorded.

    Args:
        executed: what this platform gave.
        programs: the chapter's programs, one a cell.
        on_cpu: the text that each cell gives on the CPU, by number, as far as known.
        without: the numbers of cells that are not to be recorded.
    """
    same = same_as(executed, on_cpu)
    return [
        Record(
            cell.number,
            program_digest(executed.chapter, cell.number, programs),
            list(result.outputs),
            executed.run.provenance,
            None if "measured" in cell.tags else on_cpu.get(cell.number),
        )
        for cell, result in executed
        if result.outputs
        and cell.number not in without
        and (cell.varies or cell.number not in same)
    ]


def same_as(executed: Executed, texts: Mapping[int, str]) -> set[int]:
    """The cells, by number, whose output has the text that is given for them."""
    return {
        cell.number
        for cell, result in executed
        if cell.number in texts and _is_same(texts[cell.number], result)
    }


def _is_same(text: str, result: CellResult) -> bool:
    return same_output(text, pinned_text(result.outputs), RELATIVE_TOLERANCE) is None


def pinned_texts(chapter: Chapter, pins: Path | None) -> dict[int, str]:
    """The text that is pinned of each cell, by its number, as far as it is."""
    path = pin_path(pins, chapter.docname) if pins else None
    if path is None or not path.exists():
        return {}
    known = {pin.source: pin.output for pin in read_pins(path.read_text("utf-8"))}
    texts = {cell.number: known.get(pinned_source(cell)) for cell in chapter.cells}
    return {n: _without_values(text) for n, text in texts.items() if text is not None}


def _without_values(pinned: str) -> str:
    """What is pinned of a cell's output alone, without the values in the text below."""
    lines = pinned.splitlines()
    return "\n".join(line for line in lines if not line.startswith("{value} "))


def write_records(records: list[Record], docname: str, folder: Path) -> None:
    """Write a chapter's records into one device's `folder`, in place of the old."""
    path = folder / f"{docname}.json"
    for old in (path, *_figures(path)):
        old.unlink(missing_ok=True)
    if not records:
        return
    cells = [
        {
            "number": record.number,
            "program": record.program,
            "outputs": [_unfold(o, path, record.number) for o in record.outputs],
            **({} if record.cpu is None else {"cpu": _lines(record.cpu)}),
        }
        for record in records
    ]
    facts = plain_provenance(records[0].provenance)
    text = {"provenance": dict(sorted(facts.items())), "cells": cells}
    write_whole(path, json.dumps(text, indent=1, ensure_ascii=False) + "\n")


def _figures(path: Path, number: str = r"\d+") -> list[Path]:
    """The figures of a record; those of a chapter whose name begins alike are not."""
    name = re.compile(rf"{re.escape(path.stem)}-{number}-\d+\.svg")
    return [file for file in path.parent.glob("*.svg") if name.fullmatch(file.name)]


def _unfold(output: Output, path: Path, number: int) -> Folded:
    """An output with its figures in files and its text as lines."""
    made: Folded = {k: _lines(v) for k, v in output.items() if k != "metadata"}
    if "data" in output:
        data = {kind: _lines(value) for kind, value in output["data"].items()}
        if _SVG in data:
            figures = len(_figures(path, str(number)))
            figure = path.with_name(f"{path.stem}-{number}-{figures + 1}.svg")
            write_whole(figure, output["data"][_SVG])
            data[_SVG] = {"file": figure.name}
        made["data"] = data
    return made


def _lines(value: Any) -> Any:
    if isinstance(value, str) and "\n" in value.rstrip("\n"):
        return value.splitlines(keepends=True)
    return value


def read_records(folder: Path) -> tuple[dict[str, list[Record]], list[PageError]]:
    """Every record below `folder`, by chapter, and the files there that are none."""
    found: dict[str, list[Record]] = {}
    errors = []
    for path in sorted(folder.glob("*/**/*.json")):
        docname = "/".join(path.relative_to(folder).with_suffix("").parts[1:])
        try:
            records = _read(path)
        except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
            errors.append(
                PageError(
                    path,
                    getattr(error, "lineno", 1),
                    f"not a record ({type(error).__name__}: {error})",
                    "delete it, or write it again with"
                    " 'python -m executed_book record'",
                )
            )
        else:
            found.setdefault(docname, []).extend(records)
    return found, errors


def _read(path: Path) -> list[Record]:
    plain = json.loads(path.read_text("utf-8"))
    provenance = Provenance(**plain["provenance"])
    if not isinstance(provenance.device_kind, str) or not provenance.device_kind:
        raise ValueError("device_kind is empty")
    return [
        Record(
            int(cell["number"]),
            str(cell["program"]),
            [_fold(output, path) for output in cell["outputs"]],
            provenance,
            _joined(cell.get("cpu")),
        )
        for cell in plain["cells"]
    ]


def _fold(output: Folded, path: Path) -> Output:
    """The inverse of `_unfold`.

    Raises:
        KeyError, ValueError: it is not an output in nbformat's form.
    """
    made: Folded = {key: _joined(value) for key, value in output.items()}
    kind = output["output_type"]
    for field in _FIELDS[kind]:
        if not isinstance(made[field], _FIELDS[kind][field]):
            raise ValueError(f"{field} of a {kind} is {made[field]!r}")
    if kind == "error" and isinstance(made["traceback"], str):
        made["traceback"] = made["traceback"].splitlines()
    if "data" in made:
        made["metadata"] = {}
        made["data"] = {
            kind: path.with_name(value["file"]).read_text("utf-8")
            if isinstance(value, dict)
            else _joined(value)
            for kind, value in output["data"].items()
        }
    return cast("Output", made)


def _joined(value: Any) -> Any:
    is_lines = isinstance(value, list) and all(isinstance(v, str) for v in value)
    return "".join(value) if is_lines else value


def current(
    executed: Executed, programs: Sequence[Program | None], records: list[Record]
) -> tuple[dict[int, list[Record]], list[Record], list[Record]]:
    """The records that hold of a chapter, by cell; the stale ones; the misleading ones.

    A record of the kind of device that the page itself ran on is left out. One is
    misleading that was made with another JAX, where the CPU gave another output too, or
    nobody knows which: beside the page's own, the device would seem to be the reason.
    """
    chapter = executed.chapter
    digests = {
        program_digest(chapter, cell.number, programs): cell.number
        for cell in chapter.cells
    }
    cells = {cell.number: (cell, result) for cell, result in executed}
    here = executed.run.provenance
    holding: dict[int, list[Record]] = {}
    stale, misleading = [], []
    for record in records:
        number = digests.get(record.program)
        if number is None:
            stale.append(record)
        elif here.platform == "cpu" and not _is_comparable(
            record, here, *cells[number]
        ):
            misleading.append(record)
        elif record.label != here.device_kind:
            holding.setdefault(number, []).append(record)
    return holding, stale, misleading


def _is_comparable(
    record: Record, page: Provenance, cell: Cell, on_cpu: CellResult
) -> bool:
    """Whether only the device can be why a record is another than the page's output."""
    if record.cpu is not None:
        return _is_same(record.cpu, on_cpu)
    return cell.varies or record.provenance.jax == page.jax
