"""Exercises are unsolved as handed out, and their solutions pass."""

import io
import tokenize
from collections.abc import Iterator
from dataclasses import replace

import pytest

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


def exercises(chapter: Chapter) -> list[tuple[Cell, Cell]]:
    """Each exercise with the cell that checks an answer to it."""
    found = []
    cells = [*chapter.cells, None, None]
    for cell, *following in zip(cells, cells[1:], cells[2:], strict=False):
        if cell is not None and "exercise" in cell.tags:
            tags = [after.tags if after is not None else () for after in following]
            is_whole = "solution" in tags[0] and "exercise-check" in tags[1]
            assert is_whole, (
                f"docs/{chapter.docname}.md:{cell.line}: an exercise is followed by"
                " its solution and its exercise-check"
            )
            found.append((cell, following[1]))
    return found


def test_each_exercise_has_a_solution_and_a_check():
    for chapter in chapters():
        found = exercises(chapter)
        for tag in ("solution", "exercise-check"):
            assert sum(tag in cell.tags for cell in chapter.cells) == len(found), (
                f"docs/{chapter.docname}.md: a {tag} without its exercise"
            )
        for exercise, check in found:
            place = f"docs/{chapter.docname}.md:{exercise.line}"
            assert "assert " in check.source, f"{place}: its check asserts nothing"


#: A reason takes at least a subject, a verb and what it is about (words).
A_REASON = 4


def words_of_comments(source: str) -> int:
    """How many words the comments of some code have."""
    read = io.StringIO(source).readline
    comments = [
        t.string for t in tokenize.generate_tokens(read) if t.type == tokenize.COMMENT
    ]
    return sum(len(comment.strip("# ").split()) for comment in comments)


def test_comments_are_counted_and_strings_are_not():
    assert words_of_comments("x = 3  # one, two\n# and three\n'# no'") == 4
    assert words_of_comments("x = '# a b c d e'") == 0


@pytest.mark.parametrize("chapter", chapters(), ids=lambda chapter: chapter.docname)
def test_each_solution_says_why(chapter):
    silent = [
        f"docs/{chapter.docname}.md:{cell.line}"
        for cell in chapter.cells
        if "solution" in cell.tags and words_of_comments(cell.source) < A_REASON
    ]
    assert not silent, f"a comment has to give the reason: {', '.join(silent)}"


class Unsolved(Promise):
    """An exercise with its check, which has to fail."""

    def problem(self, ran: Ran) -> str | None:
        if not ran.status:
            return "the exercise passes its check before it is solved"
        # A name that only the solution defines would fail for the wrong reason.
        if "NameError" in (ran.raised or ""):
            return f"the exercise lacks a name that its check needs: {ran.raised}"
        return None


def test_an_unsolved_exercise_fails():
    problem = Unsolved("").problem
    assert problem(Ran("", "", "AssertionError", 1)) is None
    assert problem(Ran("", "", None, 0)) is not None
    assert problem(Ran("", "", "NameError: x", 1)) is not None


def unsolved(executed: Executed, verdicts: Verdicts) -> Iterator[Offer]:
    chapter, cells = executed.chapter, source_cells(executed)
    for exercise, check in exercises(chapter):
        page = Page([*cells[: exercise.number], SourceCell(check.source)])
        programs = Programs(page, "#")
        needed = [page.statements[i].cell for i in page.needed(exercise.number)]
        used = {exercise.number - 1, *needed}
        if sum(executed.run.results[cell].seconds for cell in used) <= LONG:
            checked = replace(exercise, number=exercise.number + 1)
            promise = Unsolved(programs.of(exercise.number))
            # It has to fail as it is, so nothing from above is added to it.
            makers = (lambda added: None), tuple
            yield Offer(chapter, checked, promise, verdicts, *makers)


def test_exercises_do_not_pass_their_checks(made, kept):
    attempts = [
        offer
        for executed in made.executed.values()
        for offer in unsolved(executed, kept("exercises", executed))
    ]
    verify_offers(attempts, 2, Progress())
    assert attempts
    problems = [str(offer.error) for offer in attempts if offer.error]
    assert not problems, "\n\n".join(problems)
