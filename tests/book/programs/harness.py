"""Runs small pages as the book does, and their programs alone, and compares the two.

A file of pages is text: a line `## name` begins a page, and a line `# %%` a cell, which
may announce its failure (`# %% raises ValueError: words`) or give its tags (`# %% tags
figure`).
"""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from executed_book.checking.comparison import same_output
from executed_book.checking.text import printed_text
from executed_book.model import Cell, CellResult, Executed, Run
from executed_book.programs import NoFaithfulProgram, Program, sets_environment
from executed_book.programs.snippets import programs_by_cell, raised
from executed_book.programs.verdicts import Promise
from executed_book.running.chapters import ChapterTask
from executed_book.running.pool import Pool
from executed_book.running.programs import Ran
from executed_book.running.progress import Progress
from executed_book.running.workers import open_workers
from executed_book.settings import Settings

from ..made import chapter
from .running import compiled, run_programs


@dataclass(frozen=True)
class Judged:
    """What became of one cell's program, and why.

    It is `right`; or `lengthened`, which is right after all cells above were added; or
    `caught` or `refused`, and then readers are not offered it.
    """

    page: str
    cell: int
    kind: str
    why: str = ""
    text: str = ""


KINDS = ("right", "lengthened", "refused", "caught")


def read_pages(path: Path) -> dict[str, list[Cell]]:
    """The pages of a file, by name."""
    parts = re.split(r"(?m)^## (.+)\n", path.read_text("utf-8"))[1:]
    return {
        name: read_cells(text)
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


def read_cells(text: str) -> list[Cell]:
    """The cells of one page."""
    parts = re.split(r"(?m)^# %%(.*)\n", text)[1:]
    return [
        Cell(
            number,
            code.rstrip("\n"),
            10 * number,
            frozenset(option.partition("tags ")[2].split()),
            raises=option.partition("raises ")[2] or None,
        )
        for number, (option, code) in enumerate(
            zip(parts[::2], parts[1::2], strict=True), 1
        )
    ]


def execute(pages: Mapping[str, Sequence[Cell]]) -> dict[str, Executed]:
    """What each page gives when it is run from its first cell."""
    runs: dict[str, Run] = {}
    chapters = [chapter(*cells, docname=name) for name, cells in pages.items()]
    progress = Progress(io.StringIO())
    with (
        tempfile.TemporaryDirectory() as folder,
        progress.chapters(chapters, set(pages)),
        open_workers(compiled()) as workers,
    ):
        settings = Settings(Path(folder), Path(folder), folder="empty")
        tasks = [
            ChapterTask(
                *(one, settings, progress),
                lambda ran, finished: runs.update({ran.docname: finished.run}),
            )
            for one in chapters
        ]
        Pool(workers, 2).run(tasks)
    if wrong := [str(error) for task in tasks for error in task.errors]:
        raise RuntimeError("\n".join(wrong))
    return {one.docname: Executed(one, runs[one.docname]) for one in chapters}


def judge(executed: Mapping[str, Executed]) -> list[Judged]:
    """A verdict on the program of every cell of every page."""
    found: list[Judged] = []
    made: list[tuple[str, int, Program]] = []
    longer: dict[tuple[str, int], Program] = {}
    for name, page in executed.items():
        programs = programs_by_cell(page)
        for k, (cell, result) in enumerate(page):
            if (cell.raises is not None) != (result.failure is not None):
                raise ValueError(f"page {name!r}, cell {k}: {result.failure}")
            try:
                made.append((name, k, programs.of(k)))
                longer[name, k] = programs.of(k, programs.above(k))
            except NoFaithfulProgram as refusal:
                found.append(Judged(name, k, "refused", str(refusal)))
    short = list(compared(executed, made))
    found += [one for one in short if one.kind == "right"]
    again = [(v.page, v.cell) for v in short if v.kind != "right"]
    whole = [(*key, longer[key]) for key in again if key in longer]
    for one in compared(executed, whole):
        kind = "lengthened" if one.kind == "right" else "caught"
        found.append(replace(one, kind=kind))
    order = {name: i for i, name in enumerate(executed)}
    return sorted(found, key=lambda v: (order[v.page], v.cell))


def compared(
    executed: Mapping[str, Executed], made: Sequence[tuple[str, int, Program]]
) -> Iterator[Judged]:
    fresh = [i for i, (_, _, p) in enumerate(made) if sets_environment(p.text)]
    runs = run_programs([p.text for _, _, p in made], fresh=fresh)
    for (name, k, p), run in zip(made, runs, strict=True):
        problem = difference(*list(executed[name])[k], p.text, run)
        why = f"{problem}\n{run.stderr[-400:]}" if problem else ""
        yield Judged(name, k, "wrong" if problem else "right", why, p.text)


def difference(cell: Cell, result: CellResult, text: str, run: Ran) -> str | None:
    """What a program's run shows other than its page, or None."""
    gives = None if "%time" in cell.source else printed_text(result.outputs)
    problem = Promise(text, gives, raised(cell, result)).problem(run)
    if problem or result.failure is None or result.failure.name == "SyntaxError":
        return problem
    before = [item for item in result.outputs if item["output_type"] != "error"]
    found = same_output(printed_text(before), run.stdout)
    return str(found) if found else None


def counts(verdicts: Iterable[Judged]) -> str:
    """How many programs, and how many pages, are right, lengthened and so on."""
    listed = list(verdicts)
    worst: dict[str, str] = {}
    rank = {kind: i for i, kind in enumerate(KINDS)}
    for v in listed:
        worst[v.page] = max(worst.get(v.page, "right"), v.kind, key=rank.__getitem__)
    kinds = KINDS
    of = {k: sum(v.kind == k for v in listed) for k in kinds}
    pages = {k: sum(w == k for w in worst.values()) for k in kinds}
    return (
        f"programs: {', '.join(f'{of[k]} {k}' for k in kinds)}; "
        f"pages: {', '.join(f'{pages[k]} {k}' for k in kinds)}"
    )
