"""What can be wrong with a page or a build, said in one form, and words for that."""

import difflib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path


class BookError(Exception):
    """The book cannot be built. The message says why, and the way out."""


class PageError(BookError):
    """Something on one page is wrong: the file, the line, and the way out.

    `detail` is what helps to see it: a traceback, a difference, an output.
    """

    def __init__(
        self, path: Path, line: int, message: str, hint: str = "", detail: str = ""
    ) -> None:
        super().__init__(path, line, message, hint, detail)
        self.path, self.line = path, line
        self.message, self.hint, self.detail = message, hint, detail

    def __str__(self) -> str:
        lines = [f"{os.path.relpath(self.path)}:{self.line}: {self.message}"]
        lines += [f"    {line}" for line in self.detail.splitlines()]
        if self.hint:
            lines.append(f"    → {self.hint}")
        return "\n".join(lines)


def counted(number: int, noun: str) -> str:
    """How many there are, with an s where that is not one.

    >>> counted(1, "cell"), counted(0, "cell"), counted(1200, "cell")
    ('1 cell', '0 cells', '1200 cells')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A question to begin a hint with, if something known is called much alike.

    >>> did_you_mean("solutoin", ["check", "solution"])
    "did you mean 'solution'? "
    """
    near = difflib.get_close_matches(name, sorted(names), n=1)
    return f"did you mean {near[0]!r}? " if near else ""


def raise_all(errors: Sequence[BookError]) -> None:
    """Tell everything that is wrong at once.

    Raises:
        BookError: something is.
    """
    if errors:
        raise BookError("\n\n".join(map(str, errors)))
