"""What a worker is asked to do: plain data, written into the worker's own folder."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from pathlib import Path

from ..figures import Style

_FILE = "job.pickle"


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
    (folder / _FILE).write_bytes(pickle.dumps(job))


def read_job(folder: Path) -> Job:
    """The inverse of `write_job`."""
    job: Job = pickle.loads((folder / _FILE).read_bytes())
    return job
