"""Exporting what this platform gives as records for the book built elsewhere."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path
from typing import Any

from ._errors import BookError
from ._execute import date_of, execute
from ._progress import Progress
from ._records import records_of, slug, write_records
from ._settings import Settings


def export(settings: Settings, folder: Path, progress: Progress) -> None:
    """Execute the book here, and write a record of what is not as pinned.

    Chapters that say that they run on another platform leave no record.

    Raises:
        BookError: some chapters fail; those have no record, all others have.
    """
    book = execute(dataclasses.replace(settings, pins=None), progress)
    failed = {error.path for error in book.errors}
    driver = _driver()
    count = 0
    for chapter in book.chapters:
        if chapter.platform is not None or chapter.path in failed:
            continue
        run = book.runs[chapter.docname]
        run = {**run, "provenance": _provenance(run, driver)}
        programs = book.snippets[chapter.docname].programs
        records = records_of(chapter, run, programs, settings.pins)
        count += len(records)
        device = slug(run["provenance"]["device_kind"])
        write_records(records, chapter.docname, folder / device)
    progress.note(f"{count} cells recorded below {folder}")
    if book.errors:
        said = "\n\n".join(map(str, book.errors))
        raise BookError(f"{said}\n\n{len(failed)} chapters were not recorded")


def _provenance(run: dict[str, Any], driver: str | None) -> dict[str, Any]:
    facts = {**run["provenance"], "date": f"{date_of(run):%Y-%m-%d}"}
    if driver and facts["platform"] == "gpu":
        facts["driver"] = driver
    return dict(sorted(facts.items()))


def _driver() -> str | None:
    """The version of the NVIDIA driver, if there is one."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return (asked.stdout.splitlines() or [None])[0]
