"""The order in which the cells of an exercise are shown, and how they are taken away.

A page is executed with the solution before the check, so that the check passes. A
reader needs the check first: the solution comes after it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TypeVar

Part = TypeVar("Part")

#: The tags of the three cells of an exercise.
EXERCISE, SOLUTION, CHECK = "exercise", "solution", "exercise-check"


def checks_first(
    parts: Iterable[Part], tags_of: Callable[[Part], Collection[str]]
) -> Iterator[Part]:
    """Parts of a page with each solution behind the check that follows it.

    >>> list(checks_first(["text", "solution", "exercise-check"], lambda t: {t}))
    ['text', 'exercise-check', 'solution']
    """
    waiting: list[Part] = []
    for part in parts:
        tags = tags_of(part)
        if SOLUTION in tags:
            waiting.append(part)
            continue
        if CHECK in tags:
            yield part
            yield from waiting
        else:
            yield from waiting
            yield part
        waiting = []
    yield from waiting
