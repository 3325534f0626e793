"""What a chapter is, and what executing it gave: plain data that travels.

A `Chapter` is the content of a file; a `Run` is the result of executing it. `Executed`
pairs each cell with its result, once, and is what everything later looks at.
"""

import dataclasses
import datetime
import functools
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from .errors import PageError

#: One output of a cell in nbformat's form: a stream, a value, a figure, an error. Its
#: `output_type` says which, and so what else it has.
Output = dict[str, Any]


@dataclass(frozen=True)
class Value:
    """An expression in running text, evaluated after the cell above it."""

    role: str
    expression: str
    line: int


@dataclass(frozen=True)
class Cell:
    """One code cell: its source, its options, and where it stands on the page.

    `line` is the file's line (from 1) of the first line of the source; `may_raise` says
    that it may fail without an announcement, `is_skipped` that it is shown and not run;
    `check` is the name by which sentences call it; `needs` are the names, and the
    checks of earlier cells, that its program needs, whatever its source says; `options`
    are the options as they stand on the page, for MyST-NB.
    """

    number: int
    source: str
    line: int
    tags: frozenset[str] = frozenset()
    raises: str | None = None
    warns: str | None = None
    alt: str | None = None
    check: str | None = None
    needs: tuple[str, ...] = ()
    may_raise: bool = False
    is_skipped: bool = False
    values: tuple[Value, ...] = ()
    options: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def is_check(self) -> bool:
        """Whether it tests what the text says."""
        return self.check is not None or "check" in self.tags

    @property
    def varies(self) -> bool:
        """Whether the output may differ between runs or devices."""
        return bool(self.tags & {"measured", "device"})


@dataclass(frozen=True)
class Sentence:
    """A sentence of running text, and the checks that would fail if it were false.

    `exempt` is what it is instead of a claim: "definition", "instruction" or "title".
    `is_universal` says that it speaks of all of something; `claim` is the line where a
    claim begins that needs a check, for a sentence of one: see the option `claims`.
    `vouched` are the checks that the last sentence of its paragraph, or else of its
    claim, names: they hold it too, if it names none.
    """

    text: str
    line: int
    checks: tuple[str, ...] = ()
    exempt: str | None = None
    is_universal: bool = False
    claim: int | None = None
    vouched: tuple[str, ...] = ()

    @property
    def is_bound(self) -> bool:
        """Whether a check holds it, its own or one that vouches for it."""
        return bool(self.checks or self.vouched)


@dataclass(frozen=True)
class Prose:
    """A stretch of a page that is not code; `kind` is nbformat's name for it."""

    text: str
    line: int
    kind: str = "markdown"
    options: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Chapter:
    """One page that executes: its cells and the text between them, in order.

    `limit` is how long a cell may take (seconds); `platform` is where the chapter runs,
    whatever device builds the book, or None for the default; `reads` is what its child
    processes read, from its folder, or None where it does not say.
    """

    docname: str
    path: Path
    text: str
    parts: tuple[Prose | Cell, ...]
    limit: float | None = None
    platform: str | None = None
    reads: tuple[str, ...] | None = None
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)
    sentences: tuple[Sentence, ...] = ()

    @functools.cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The code cells."""
        return tuple(part for part in self.parts if isinstance(part, Cell))

    def with_cells(self, numbers: Container[int], **changes: Any) -> Self:
        """The chapter with these fields of these cells replaced."""
        parts = (
            dataclasses.replace(part, **changes)
            if isinstance(part, Cell) and part.number in numbers
            else part
            for part in self.parts
        )
        return dataclasses.replace(self, parts=tuple(parts))

    def wrong(
        self, cell: Cell, what: str, hint: str = "", detail: str = "", line: int = 1
    ) -> PageError:
        """What is wrong with a cell, at one of its lines (from 1)."""
        message = f"cell {cell.number} {what}"
        return PageError(self.path, cell.line + line - 1, message, hint, detail)

    @property
    def title(self) -> str:
        """Its first heading, or its name if it has none."""
        texts = (part.text for part in self.parts if isinstance(part, Prose))
        heading = re.search(r"^# +(.+)$", "\n".join(texts), re.MULTILINE)
        return heading[1].strip() if heading else self.docname


@dataclass(frozen=True)
class Failure:
    """The exception that ended a cell.

    `kinds` are the full names of its class and of that class's bases; `line` is the
    cell's line (from 1) that it came from; `traceback` is short and without paths.
    """

    name: str
    kinds: tuple[str, ...]
    message: str
    line: int
    traceback: str


@dataclass(frozen=True)
class ValueResult:
    """The text of a value in running text, or why there is none."""

    text: str = ""
    error: str | None = None


@dataclass(frozen=True)
class CellResult:
    """What one cell gave: outputs, seconds, its failure, the values after it.

    `log` is what the runtime wrote to stderr meanwhile, which is no output of the cell.
    Of a check, `reached` are the lines of the assertions that ran, and `missed` those
    of the others.
    """

    outputs: tuple[Output, ...] = ()
    seconds: float = 0.0
    failure: Failure | None = None
    values: tuple[ValueResult, ...] = ()
    log: str = ""
    reached: tuple[int, ...] = ()
    missed: tuple[int, ...] = ()


@dataclass(frozen=True)
class Provenance:
    """Where something ran. The instruments call the same facts by the same names.

    `jax` and `jaxlib` are empty where JAX was not imported.
    """

    platform: str
    device_kind: str
    device_count: int
    jax: str
    jaxlib: str
    python: str
    driver: str | None = None
    date: str | None = None

    @property
    def versions(self) -> str:
        """What ran, in words."""
        python = f"Python {self.python}"
        return f"JAX {self.jax}, {python}" if self.jax else python


@dataclass(frozen=True)
class Run:
    """What executing a chapter gave. `executed` is when (seconds since 1970)."""

    docname: str
    executed: int
    provenance: Provenance
    results: tuple[CellResult, ...]
    seal: str = ""

    @property
    def seconds(self) -> float:
        """How long its cells took."""
        return sum(result.seconds for result in self.results)

    @property
    def date(self) -> datetime.datetime:
        """When it was executed, in UTC."""
        return datetime.datetime.fromtimestamp(self.executed, datetime.UTC)


@dataclass(frozen=True)
class Executed:
    """A chapter with its run: each cell beside what it gave.

    A chapter whose process ended early has results for its first cells only.
    """

    chapter: Chapter
    run: Run

    def __iter__(self) -> Iterator[tuple[Cell, CellResult]]:
        return zip(self.chapter.cells, self.run.results, strict=False)


def to_plain(item: Any) -> Any:
    """A dataclass as plain data, for JSON."""
    return dataclasses.asdict(item)


def result_from(plain: dict[str, Any]) -> CellResult:
    """The inverse of `to_plain` for what a cell gave."""
    failure = plain["failure"]
    if failure is not None:
        failure = Failure(**{**failure, "kinds": tuple(failure["kinds"])})
    made = {
        "outputs": tuple(plain["outputs"]),
        "failure": failure,
        "values": tuple(ValueResult(**value) for value in plain["values"]),
        "reached": tuple(plain["reached"]),
        "missed": tuple(plain["missed"]),
    }
    return CellResult(**{**plain, **made})


def run_from(plain: dict[str, Any], seal: str = "") -> Run:
    """The inverse of `to_plain` for a run; `seal` is that of its content.

    Raises:
        KeyError, TypeError: it is not a run.
    """
    made = {
        "provenance": Provenance(**plain["provenance"]),
        "results": tuple(map(result_from, plain["results"])),
        "seal": seal,
    }
    return Run(**{**plain, **made})
