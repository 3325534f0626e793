"""What a worker is asked to do, written into the worker's own folder."""

from __future__ import annotations

import pickle
from pathlib import Path

from ..model import Chapter
from ..settings import Settings

#: A chapter to run cell by cell, or the text of a program to run as a whole.
Job = tuple[Chapter, Settings] | str

_FILE = "job.pickle"


def write_job(job: Job, folder: Path) -> None:
    """Put a job where its worker finds it."""
    (folder / _FILE).write_bytes(pickle.dumps(job))


def read_job(folder: Path) -> Job:
    """The inverse of `write_job`."""
    job: Job = pickle.loads((folder / _FILE).read_bytes())
    return job
