"""Exercises are unsolved as handed out, and their solutions pass."""

import ast
from collections.abc import Iterator
from dataclasses import replace

from executed_book.model import Cell, Chapter, Executed
from executed_book.programs.cells import SourceCell
from executed_book.programs.slicing import Page
from executed_book.programs.snippets import source_cells
from executed_book.programs.text import Programs
from executed_book.programs.verdicts import Promise, Verdicts
from executed_book.programs.verify import Offer, verify_offers
from executed_book.running.programs import Ran
from executed_book.running.progress import Progress

from .conftest import LONG, chapters


def pairs(chapter: Chapter) -> list[tuple[Cell, Cell]]:
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


def test_each_exercise_has_a_solution_that_checks_it():
    for chapter in chapters():
        for exercise, solution in pairs(chapter):
            place = f"docs/{chapter.docname}.md:{exercise.line}"
            said = f"{place}: the solution asserts nothing"
            assert "assert " in solution.source, said


class Unsolved(Promise):
    """An exercise with the checks of its solution, which have to fail."""

    def problem(self, ran: Ran) -> str | None:
        if not ran.status:
            return "the exercise passes its checks before it is solved"
        # A name that only the solution defines would fail for the wrong reason.
        if "NameError" in (ran.raised or ""):
            return f"the exercise lacks a name that its checks need: {ran.raised}"
        return None


def test_an_unsolved_exercise_fails():
    problem = Unsolved("").problem
    assert problem(Ran("", "", "AssertionError", 1)) is None
    assert problem(Ran("", "", None, 0)) is not None
    assert problem(Ran("", "", "NameError: x", 1)) is not None


def unsolved(executed: Executed, verdicts: Verdicts) -> Iterator[Offer]:
    chapter, cells = executed.chapter, source_cells(executed)
    for exercise, solution in pairs(chapter):
        check = SourceCell(checks(exercise.source, solution.source))
        page = Page([*cells[: exercise.number], check])
        programs = Programs(page, "#")
        needed = [page.statements[i].cell for i in page.needed(exercise.number)]
        used = {exercise.number - 1, *needed}
        if sum(executed.run.results[cell].seconds for cell in used) <= LONG:
            checked = replace(exercise, number=exercise.number + 1)
            promise = Unsolved(programs.of(exercise.number))
            # It has to fail as it is, so nothing from above is added to it.
            makers = (lambda added: None), tuple
            yield Offer(chapter, checked, promise, verdicts, *makers)


def test_exercises_do_not_pass_their_solutions_checks(made, kept):
    attempts = [
        offer
        for executed in made.executed.values()
        for offer in unsolved(executed, kept("exercises", executed))
    ]
    verify_offers(attempts, 2, Progress())
    assert attempts
    problems = [str(offer.error) for offer in attempts if offer.error]
    assert not problems, "\n\n".join(problems)
