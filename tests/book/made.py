"""Chapters and runs made by hand, for tests that call one function."""

from pathlib import Path
from typing import Any

from executed_book.model import (
    Cell,
    CellResult,
    Chapter,
    Executed,
    Failure,
    Output,
    Provenance,
    Run,
)

CPU = Provenance("cpu", "cpu", 1, "0.12.0", "0.12.0", "3.13.1")
GPU = Provenance(
    "gpu", "NVIDIA H200", 1, "0.12.0", "0.12.0", "3.12.3", "570.1", "2001-02-03"
)


def chapter(*cells: Cell | str, **fields: Any) -> Chapter:
    """A chapter of these cells; the nth begins on line 10 n."""
    made = tuple(
        Cell(number, cell, 10 * number) if isinstance(cell, str) else cell
        for number, cell in enumerate(cells, 1)
    )
    given = {"docname": "one", "path": Path("docs/one.md"), "text": "", "parts": made}
    return Chapter(**{**given, **fields})


def executed(made, *results, provenance=CPU, **fields) -> Executed:
    """A chapter with what its cells gave, at the beginning of 1970."""
    run = Run(made.docname, 0, provenance, results, **fields)
    return Executed(made, run)


def printed(text: str, name: str = "stdout") -> Output:
    return {"output_type": "stream", "name": name, "text": text}


def shown(text: str, **formats: str) -> Output:
    """A value with its text; other formats by their name after `text/`."""
    data = {f"text/{kind}": content for kind, content in formats.items()}
    return {
        "output_type": "execute_result",
        "data": {"text/plain": text, **data},
        "metadata": {},
    }


def figure(svg: str = "<svg/>") -> Output:
    return {
        "output_type": "display_data",
        "data": {"image/svg+xml": svg, "text/plain": "<Figure>"},
        "metadata": {},
    }


def gave(*outputs: Output, **fields: Any) -> CellResult:
    return CellResult(outputs, **fields)


def raised(kind: str = "ValueError", message: str = "bad", line: int = 1) -> CellResult:
    traceback = f"Traceback\n{kind}: {message}"
    failure = Failure(kind, (f"builtins.{kind}",), message, line, traceback)
    return CellResult(failure=failure)
