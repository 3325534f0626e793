"""What running the programs of a chapter showed, kept for as long as it holds.

No analysis of code sees everything. So each program that a page offers is run once, in
a process of its own, and what it gave is compared with what the page shows. A verdict
is kept under the program's text and what it was to give; all verdicts of a chapter are
in one file, and hold as long as the versions and files that the chapter depends on.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..checking import comparison
from ..running.fingerprint import digest, file_digest

if TYPE_CHECKING:
    from ..running.programs import Ran
    from ..running.store import Store

#: How far numbers of a program may be from those on its page.
RTOL = 1e-4

#: What is told of a program that failed (characters of its stderr).
_LAST_WORDS = 2000


@dataclass(frozen=True)
class Promise:
    """A text that readers take away, and what it has to do when it is run alone.

    Attributes:
        text: its source.
        gives: what it prints, as its page shows it; None where that varies, or where it
            only has to run to its end.
        raises: what ends it, as its cell announces: a class, a colon, words.
        fresh: whether it sets what libraries read when they are imported.
        unsolved: whether it is an exercise with its checks, which have to fail.
    """

    text: str
    gives: str | None = None
    raises: str | None = None
    fresh: bool = False
    unsolved: bool = False

    @functools.cached_property
    def key(self) -> str:
        """A name for the text and all that is expected of it.

        The comment that heads a text says where the book stands, and does nothing.
        """
        first, _, rest = self.text.partition("\n")
        text = rest if first.startswith("#") else self.text
        return digest([text, self.gives, self.raises, self.unsolved])

    def problem(self, ran: Ran) -> str | None:
        """What is wrong with what it did, in words; None if it does what it has to."""
        if self.unsolved:
            return _solved(ran)
        if self.raises is not None:
            return _not_raised(self.raises, ran)
        if ran.raised is not None or ran.status:
            return f"{ran.shown}\n{ran.stderr[-_LAST_WORDS:]}".rstrip()
        if self.gives is None:
            return None
        difference = comparison.same_output(self.gives, ran.shown, rtol=RTOL)
        return None if difference is None else str(difference)


def _not_raised(announced: str, ran: Ran) -> str | None:
    name, _, words = announced.partition(": ")
    raised = ran.raised or ""
    if words in raised and name.rpartition(".")[2] in raised.partition(":")[0]:
        return None
    return f"it was to raise {announced!r}, and gave {ran.shown!r}"


def _solved(ran: Ran) -> str | None:
    if not ran.status:
        return "the exercise passes its checks before it is solved"
    # A name that only the solution defines would fail for the wrong reason.
    if "NameError" in (ran.raised or ""):
        return f"the exercise lacks a name that its checks need: {ran.raised}"
    return None


class Verdicts:
    """The verdicts on one chapter's texts.

    A verdict is a problem in words, or None; with a problem may be kept what readers
    get instead.
    """

    def __init__(
        self, store: Store, docname: str, environment: str, depends: dict[str, Any]
    ) -> None:
        self._store, self._docname, self._depends = store, docname, depends
        self._key = digest([docname, environment, _judging()])
        entry = store.load(docname, self._key) or {}
        self._known: dict[str, dict[str, Any]] = entry.get("verdicts", {})

    def has(self, promise: Promise) -> bool:
        """Whether this text has been run."""
        return promise.key in self._known

    def problem(self, promise: Promise) -> str | None:
        """What was wrong when it was run; KeyError if it was not."""
        said: str | None = self._known[promise.key]["problem"]
        return said

    def instead(self, promise: Promise) -> str | None:
        """The text that readers get in place of one that has a problem, if any."""
        text: str | None = self._known[promise.key].get("instead")
        return text

    def note(
        self, promise: Promise, problem: str | None, instead: str | None = None
    ) -> None:
        """Keep a verdict, at once: whoever stops the run loses nothing that is done."""
        verdict = {"problem": problem}
        if instead is not None:
            verdict["instead"] = instead
        self._known[promise.key] = verdict
        entry = {"verdicts": self._known, "depends": self._depends}
        self._store.save(self._docname, self._key, entry)


@functools.cache
def _judging() -> str:
    """A digest of the code that says whether a text keeps its promise."""
    files = (Path(__file__), Path(comparison.__file__))
    return digest([file_digest(path) for path in files])
