"""A job is the same on the other side of its file."""

from __future__ import annotations

import pytest

from executed_book.running.jobs import (
    CellJob,
    ChapterJob,
    ProgramJob,
    read_job,
    write_job,
)

CHAPTER = ChapterJob(
    docname="a/b",
    cells=(CellJob("print('é')", True, True, ("x", "y:.1f")), CellJob("")),
    leading=("z",),
    output_limit=7,
    project="/p",
    place="/p/docs",
    figures="svg",
    style={"figure.figsize": [6.0, 3.0], "savefig.bbox": None},
    platform="cpu",
)


@pytest.mark.parametrize(
    "job", [CHAPTER, ChapterJob("a", ()), ProgramJob("print(1)\n"), ProgramJob("")]
)
def test_what_is_read_is_what_was_written(tmp_path, job):
    write_job(job, tmp_path)
    assert read_job(tmp_path) == job
