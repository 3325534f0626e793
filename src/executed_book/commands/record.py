"""`record`: writing what this platform gives, for the book built elsewhere."""

from __future__ import annotations

import dataclasses
import subprocess

from ..book import execute
from ..errors import BookError
from ..model import Executed
from ..platforms.records import records_of, slug, write_records
from ..running.progress import Progress
from ..settings import Settings


def record(settings: Settings, progress: Progress) -> None:
    """Execute the book here, and write a record of what is not as pinned.

    Chapters that say that they run on another platform leave no record.

    Raises:
        BookError: some chapters fail; those have no record, all others have. Or
            `conf.py` does not say where records are.
    """
    folder = settings.records
    if folder is None:
        raise BookError(
            "nowhere to keep records\n    → name a folder in conf.py:"
            ' executed_book_records = "../outputs/records"'
        )
    book = execute(dataclasses.replace(settings, records=None), progress)
    wrong = {error.path for error in book.errors}
    driver = _driver()
    count = 0
    for page in book.pages.values():
        executed = page.executed
        if executed.chapter.platform is not None or executed.chapter.path in wrong:
            continue
        here = _with_provenance(executed, driver)
        records = records_of(here, page.snippets.programs, settings.pins)
        count += len(records)
        device = slug(here.run.provenance.device_kind)
        write_records(records, executed.chapter.docname, folder / device)
    progress.note(f"{count} cells recorded below {folder}")
    if book.errors:
        said = "\n\n".join(map(str, book.errors))
        raise BookError(f"{said}\n\n{len(wrong)} chapters were not recorded")


def _with_provenance(executed: Executed, driver: str | None) -> Executed:
    run = executed.run
    is_gpu = run.provenance.platform == "gpu"
    provenance = dataclasses.replace(
        run.provenance,
        date=f"{run.date:%Y-%m-%d}",
        driver=driver if is_gpu else None,
    )
    return dataclasses.replace(
        executed, run=dataclasses.replace(run, provenance=provenance)
    )


def _driver() -> str | None:
    """The version of the NVIDIA driver, if there is one."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    lines = asked.stdout.splitlines()
    return lines[0] if lines else None
