"""Exercises are unsolved as handed out, and their solutions pass."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from justafter.book._chapters import Cell, Chapter
from justafter.book._execute import Book
from justafter.book._forks import Run, run_programs
from justafter.book._programs import program
from justafter.book._slice import SourceCell
from justafter.book._snippets import source_cells


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
    chapter = book.chapter(docname)
    assert chapter is not None
    assert chapter.text.count(":class: exercise") >= 3


def unsolved(book: Book, chapter: Chapter) -> Iterator[tuple[str, str]]:
    """For each exercise its place, and a program that checks it as handed out."""
    cells = source_cells(chapter, book.runs[chapter.docname])
    for exercise, solution in pairs(chapter):
        place = f"docs/{chapter.docname}.md:{exercise.line}"
        assert "assert " in solution.source, f"{place}: the solution asserts nothing"
        check = SourceCell(checks(exercise.source, solution.source))
        yield (
            place,
            program([*cells[: exercise.number], check], exercise.number, "#").text,
        )


@pytest.fixture(scope="session")
def attempts(book: Book, compiled: dict[str, str]) -> dict[str, Run]:
    """All exercises as handed out, checked: each place with what happened."""
    found = [pair for chapter in book.chapters for pair in unsolved(book, chapter)]
    texts = [text for _, text in found]
    places = [place for place, _ in found]
    ran = run_programs(texts, jobs=2, environment=compiled)
    return dict(zip(places, ran, strict=True))


def test_exercises_do_not_pass_their_solutions_checks(
    attempts: dict[str, Run], docname: str
):
    for place, run in attempts.items():
        if place.startswith(f"docs/{docname}.md:"):
            assert run.status != 0, f"{place}: the exercise passes before it is solved"
            # A name that only the solution defines would fail for the wrong reason.
            assert "NameError" not in (run.raised or ""), f"{place}: {run.raised}"
