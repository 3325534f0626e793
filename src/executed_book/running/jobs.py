"""What a worker is asked to do: plain data, written into the worker's own folder."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ..figures import Style

_FILE = "job.json"


@dataclass(frozen=True)
class CellJob:
    """One cell to run, unless it is skipped, and what to evaluate after it."""

    source: str
    measured: bool = False
    skipped: bool = False
    expressions: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChapterJob:
    """A chapter to run cell by cell.

    `leading` are the expressions above the first cell; `figures` is the format of
    figures and `style` are Matplotlib's settings for them; `place` is the folder to run
    in, None for a new one; `project` is the folder whose files a run depends on.
    """

    docname: str
    cells: tuple[CellJob, ...]
    leading: tuple[str, ...] = ()
    output_limit: int = 1_000_000
    image_limit: int = 50_000_000
    project: str = "/"
    place: str | None = None
    figures: str = "png"
    style: Style = field(default_factory=dict)
    platform: str | None = None


@dataclass(frozen=True)
class ProgramJob:
    """A whole program to run as `python program.py` does."""

    text: str


Job = ChapterJob | ProgramJob


def write_job(job: Job, folder: Path) -> None:
    """Put a job where its worker finds it."""
    kind = type(job).__name__
    text = json.dumps({"kind": kind, **asdict(job)})
    (folder / _FILE).write_text(text, "utf-8")


def read_job(folder: Path) -> Job:
    """The inverse of `write_job`."""
    plain = json.loads((folder / _FILE).read_text("utf-8"))
    if plain.pop("kind") == ProgramJob.__name__:
        return ProgramJob(**plain)
    cells = tuple(
        CellJob(**{**c, "expressions": tuple(c["expressions"])})
        for c in plain.pop("cells")
    )
    return ChapterJob(cells=cells, leading=tuple(plain.pop("leading")), **plain)
