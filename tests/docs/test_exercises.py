"""Exercises are unsolved as handed out, and their solutions pass."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from executed_book.book import Book
from executed_book.model import Cell, Chapter, Executed
from executed_book.programs import SourceCell, program
from executed_book.programs.snippets import source_cells
from executed_book.running.programs import Ran, run_programs


def pairs(chapter: Chapter) -> list[tuple[Cell, Cell]]:
    """Each exercise cell with the solution that follows it."""
    found = []
    for cell, following in zip(chapter.cells, chapter.cells[1:], strict=False):
        if "exercise" in cell.tags:
            assert "solution" in following.tags, (
                f"docs/{chapter.docname}.md:{cell.line}: an exercise cell is followed"
                " by its solution cell"
            )
            found.append((cell, following))
    return found


def checks(exercise: str, solution: str) -> str:
    """The solution without what the exercise hands out: its checks and their setup."""
    handed_out = set().union(*map(bound, ast.parse(exercise).body))
    tree = ast.parse(solution)
    tree.body = [node for node in tree.body if not _replaces(node, handed_out)]
    return ast.unparse(tree)


def _replaces(node: ast.stmt, handed_out: set[str]) -> bool:
    """Whether a statement only makes anew what the exercise already made."""
    names = bound(node)
    asserts = any(isinstance(part, ast.Assert) for part in ast.walk(node))
    return bool(names) and names <= handed_out and not asserts


def bound(node: ast.AST) -> set[str]:
    """The names that a statement binds in its own scope."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    names = {node.id} if _is_store(node) else set()
    return names.union(*map(bound, ast.iter_child_nodes(node)))


def _is_store(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def test_each_chapter_has_three_exercises(book: Book, docname: str):
    if docname in ("index", "cheat-sheet") or docname.startswith("errors/"):
        pytest.skip("a page to look things up in is no lesson")
    assert book.executed[docname].chapter.text.count(":class: exercise") >= 3


def unsolved(executed: Executed) -> Iterator[tuple[str, str]]:
    """For each exercise its place, and a program that checks it as handed out."""
    chapter, cells = executed.chapter, source_cells(executed)
    for exercise, solution in pairs(chapter):
        place = f"docs/{chapter.docname}.md:{exercise.line}"
        assert "assert " in solution.source, f"{place}: the solution asserts nothing"
        check = SourceCell(checks(exercise.source, solution.source))
        yield (
            place,
            program([*cells[: exercise.number], check], exercise.number, "#").text,
        )


@pytest.fixture(scope="session")
def attempts(book: Book, compiled: dict[str, str]) -> dict[str, Ran]:
    """All exercises as handed out, checked: each place with what happened."""
    found = [pair for executed in book.executed.values() for pair in unsolved(executed)]
    texts = [text for _, text in found]
    places = [place for place, _ in found]
    ran = run_programs(texts, jobs=2, environment=compiled)
    return dict(zip(places, ran, strict=True))


def test_exercises_do_not_pass_their_solutions_checks(
    attempts: dict[str, Ran], docname: str
):
    for place, run in attempts.items():
        if place.startswith(f"docs/{docname}.md:"):
            assert run.status != 0, f"{place}: the exercise passes before it is solved"
            # A name that only the solution defines would fail for the wrong reason.
            assert "NameError" not in (run.raised or ""), f"{place}: {run.raised}"
