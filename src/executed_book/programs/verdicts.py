"""What running the programs of a page by themselves gave: committed beside the pins.

A page's verdicts are one text file, a line a program. A build reads it and runs
nothing. A verdict holds for a text and for what it has to give; the numbers in this
are not part of the digest, since they differ from machine to machine in their last
places, and pins hold them.
"""

import functools
import re
from dataclasses import dataclass
from pathlib import Path

from ..checking.comparison import same_output
from ..errors import PageError
from ..files import digest, write_whole
from ..running.programs import Ran

#: What was found. "varies": it runs, and its output may be another each time.
HELD, VARIES, NEEDS_FILES, DIFFERS = "held", "varies", "needs files", "differs"

#: What a verdict's note says before the files with which a program holds.
BESIDE = "holds beside: "

#: How a file of verdicts begins.
_HEAD = "# Each program run by itself, with JAX "

#: How much of a failed program's stderr a message quotes (characters).
_LAST_WORDS = 2000

_FLOAT = re.compile(r"-?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?")
#: A memory address, which is another in each process.
_ADDRESS = re.compile(r"(?<=\bat )0x[0-9a-f]{6,}")
#: What IPython prints of the time that a cell took; its program runs without the magic.
_TIMED = re.compile(
    r"(?m)^(?:(?:CPU times|Wall time|Compiler *|Parser *): |The slowest run took "
    r"|.* per loop \(mean ).*\n?"
)
_LINE = re.compile(
    r"(?P<what>\S.*?) {2,}(?P<word>held|varies|needs files|differs) {2,}"
    r"(?P<key>[0-9a-f]{16})(?: \+ (?P<added>[\d: ]+) = (?P<text>[0-9a-f]{16}))?"
    r"(?: {2}# (?P<note>.*))?"
)


@dataclass(frozen=True)
class Promise:
    """A text that readers take away, and what it has to do when it is run alone.

    Attributes:
        text: its source.
        gives: what it prints, as its page shows it; None where that varies, or where it
            only has to run to its end.
        raises: what ends it, as its cell announces: a class, a colon, words.
    """

    text: str
    gives: str | None = None
    raises: str | None = None

    @functools.cached_property
    def key(self) -> str:
        """A name for the text and all that is expected of it.

        The comment that heads a text says where the book stands, and does nothing.
        """
        first, _, rest = self.text.partition("\n")
        text = rest if first.startswith("#") else self.text
        shape = self.gives and " ".join(_FLOAT.sub("_", _steady(self.gives)).split())
        # The last entry was an option once: the committed verdicts have it.
        return digest([text, shape, self.raises, False])[:16]

    def problem(self, ran: Ran) -> str | None:
        """What is wrong with what it did, in words; None if it does what it has to."""
        if self.raises is not None:
            return _not_raised(self.raises, ran)
        if ran.raised is not None or ran.status:
            return f"{ran.shown}\n{ran.stderr[-_LAST_WORDS:]}".rstrip()
        if self.gives is None:
            return None
        return same_output(_steady(self.gives), _steady(ran.shown))


def _steady(text: str) -> str:
    """A text without the memory addresses and the timings in it."""
    return _ADDRESS.sub("0x…", _TIMED.sub("", text))


def _not_raised(announced: str, ran: Ran) -> str | None:
    name, _, words = announced.partition(": ")
    raised = ran.raised or ""
    if words in raised and name.rpartition(".")[2] in raised.partition(":")[0]:
        return None
    return f"it should raise {announced!r}, and gave {ran.shown!r}"


@dataclass(frozen=True)
class Verdict:
    """What was found of one text.

    Attributes:
        word: in one of four words.
        added: statements that it needs and the slicer did not find, as (cell, line),
            both from 1; `text` is the digest of the text that has them.
        note: what could not be compared, or what is wrong.
    """

    word: str
    added: tuple[tuple[int, int], ...] = ()
    text: str = ""
    note: str = ""

    @property
    def is_good(self) -> bool:
        """Whether readers are offered the text."""
        return self.word in (HELD, VARIES) or bool(self.files)

    @property
    def files(self) -> list[str]:
        """The files of the page's folder that belong beside the text."""
        _, mark, names = self.note.partition(BESIDE)
        return names.split(", ") if mark and self.word == NEEDS_FILES else []


def are_verdicts(path: Path) -> bool:
    """Whether a file was written here; any other in the folder is somebody's own."""
    return path.read_text("utf-8", "replace").startswith(_HEAD)


class Verdicts:
    """The verdicts on the texts of one page, read from a file.

    Verdicts that were found with another version of JAX do not hold.
    """

    def __init__(self, path: Path, jax: str) -> None:
        self.path = path
        self._head = f"{_HEAD}{jax}: what it gave."
        self._lines: dict[str, tuple[str, Verdict]] = {}
        lines = path.read_text("utf-8", "replace").split("\n") if path.exists() else []
        for line in lines if lines[:1] == [self._head] else ():
            if match := _LINE.fullmatch(line):
                pairs = (pair.split(":") for pair in (match["added"] or "").split())
                added = tuple((int(cell), int(number)) for cell, number in pairs)
                about = added, match["text"] or "", match["note"] or ""
                verdict = Verdict(match["word"], *about)
                self._lines[match["key"]] = match["what"], verdict

    def find(self, promise: Promise) -> Verdict | None:
        """The verdict on a text; None if it has not been run."""
        entry = self._lines.get(promise.key)
        return None if entry is None else entry[1]

    def note(self, promise: Promise, what: str, verdict: Verdict) -> None:
        """Keep a verdict, at once: whoever stops the run loses nothing that is done."""
        self._lines[promise.key] = what, verdict
        self._write()

    def keep_only(self, promises: list[Promise]) -> None:
        """Forget what the page does not offer any more, and keep the page's order."""
        lines = {p.key: self._lines[p.key] for p in promises if p.key in self._lines}
        if list(lines) != list(self._lines):
            self._lines = lines
            self._write()

    def _write(self) -> None:
        if self.path.exists() and not are_verdicts(self.path):
            raise PageError(
                *(self.path, 1, "not a file of verdicts on programs"),
                "move it away, or name another folder in executed_book_programs",
            )
        lines = [_line(key, *entry) for key, entry in self._lines.items()]
        write_whole(self.path, "\n".join([self._head, *lines, ""]))


def _line(key: str, what: str, verdict: Verdict) -> str:
    line = f"{what:<9}  {verdict.word:<11}  {key}"
    if verdict.added:
        places = " ".join(f"{cell}:{number}" for cell, number in verdict.added)
        line += f" + {places} = {verdict.text}"
    note = verdict.note.strip().partition("\n")[0]
    return f"{line}  # {note}" if note else line
