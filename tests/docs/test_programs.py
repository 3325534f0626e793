"""Every program of every page runs alone and gives what its page shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from executed_book.book import Book
from executed_book.checking.comparison import same_output
from executed_book.checking.text import printed_text
from executed_book.model import Cell
from executed_book.programs import Program, SourceCell, program
from executed_book.programs.snippets import chapter_script
from executed_book.running.programs import Ran, run_programs

#: A program that runs longer than this hangs (seconds).
LIMIT = 300.0


@dataclass(frozen=True)
class Case:
    """A cell's program, and the text that its page shows."""

    docname: str
    cell: Cell
    program: Program
    expected: str


def cases(book: Book) -> Iterator[Case]:
    for docname, page in book.pages.items():
        programs = page.snippets.programs
        for (cell, result), made in zip(page.executed, programs, strict=True):
            if made is not None:
                yield Case(docname, cell, made, printed_text(result.outputs))


@pytest.fixture(scope="session")
def runs(book: Book, compiled: dict[str, str]) -> list[tuple[Case, Ran]]:
    """All programs, run in pairs.

    One that fails is run once more, alone and compiling everything itself: a bound on
    a time can be missed when something else takes the machine for a moment.
    """
    group = list(cases(book))
    ran = list(zip(group, run_cases(group, 2, compiled), strict=True))
    again = [case for case, run in ran if problem(case, run)]
    repaired = dict(zip(map(id, again), run_cases(again, 1), strict=True))
    return [(case, repaired.get(id(case), run)) for case, run in ran]


def run_cases(
    group: list[Case], jobs: int, variables: dict[str, str] | None = None
) -> list[Ran]:
    fresh = [i for i, case in enumerate(group) if case.program.sets_environment]
    texts = [case.program.text for case in group]
    return run_programs(
        texts, fresh=fresh, jobs=jobs, timeout=LIMIT, environment=variables
    )


def problem(case: Case, run: Ran) -> str | None:
    """What is wrong with a program's run, in words."""
    announced = case.cell.raises
    if announced is not None:
        name, _, words = announced.partition(": ")
        raised = run.raised or ""
        if words in raised and name.rpartition(".")[2] in raised.partition(":")[0]:
            return None
        return f"announced {announced!r}, gave {run.shown!r}"
    if run.raised is not None or run.status:
        return f"{run.shown}\n{run.stderr[-2000:]}"
    if case.cell.varies:
        return None
    difference = same_output(case.expected, run.shown, rtol=1e-4)
    return None if difference is None else str(difference)


def test_programs_of(docname: str, runs: list[tuple[Case, Ran]]):
    problems = []
    for case, run in runs:
        if case.docname == docname and (said := problem(case, run)):
            place = f"docs/{docname}.md:{case.cell.line}: cell {case.cell.number}"
            problems.append(f"{place}\n{said}\n--- the program\n{case.program.text}")
    assert not problems, "\n\n".join(problems)


def test_nearly_every_cell_has_a_program(book: Book, record_property):
    cells = [cell for chapter in book.chapters for cell in chapter.cells]
    without = [cell for cell in cells if cell.no_program]
    record_property("cells", len(cells))
    record_property("programs", len(cells) - len(without))
    assert len(without) <= 0.02 * len(cells)


def test_chapters_run_as_scripts(book: Book, compiled: dict[str, str]):
    scripts = {
        docname: chapter_script(executed) for docname, executed in book.executed.items()
    }
    failed = failing(scripts, jobs=2, variables=compiled)
    # In pairs they disturb each other's timings: those that fail run again, alone.
    failed = failing({name: scripts[name] for name in failed}, jobs=1)
    assert not failed, "\n\n".join(f"{name}: {said}" for name, said in failed.items())


def failing(
    scripts: dict[str, str], jobs: int, variables: dict[str, str] | None = None
) -> dict[str, str]:
    """The scripts that fail, each with what it said."""
    fresh = [i for i, text in enumerate(scripts.values()) if "os.environ[" in text]
    ran = run_programs(
        [*scripts.values()], fresh, jobs=jobs, timeout=LIMIT, environment=variables
    )
    return {
        name: f"{run.shown}\n{run.stderr[-2000:]}"
        for name, run in zip(scripts, ran, strict=True)
        if run.status or run.raised
    }


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("b = a + 1\n", "", "NameError: name 'b' is not defined"),
        ("a = 1\n", "a = 2\n", "expected | 2"),
    ],
)
def test_a_wrong_slice_is_found(old: str, new: str, words: str):
    """A program without a statement it needs, or with another, is told."""
    cells = [SourceCell("a = 1"), SourceCell("b = a + 1"), SourceCell("print(b)")]
    right = program(cells, 2, "# here")
    wrong = Program(right.text.replace(old, new), right.cell)
    assert wrong.text != right.text
    cell = Cell(number=3, source="print(b)", line=1)
    found = [
        problem(Case("page", cell, made, expected="2"), ran)
        for made, ran in zip(
            (right, wrong), run_programs([right.text, wrong.text]), strict=True
        )
    ]
    assert found[0] is None
    assert found[1] is not None
    assert words in found[1]
