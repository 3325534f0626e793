"""`releases`: the page that shows what changes with other releases of JAX.

It is written from what is stored below `outputs/cells`: the difference of each page's
accepted outputs and of what `record` stored of it on a CPU with another release.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from ..checking.comparison import same_output
from ..checking.elsewhere import same_cells
from ..checking.stored import (
    RELATIVE_TOLERANCE,
    StoredCell,
    accepted_path,
    newest_first,
    read_outputs,
)
from ..errors import BookError
from ..files import write_whole
from ..model import Chapter, Provenance
from ..plurals import counted
from ..reading.pages import read_pages
from ..running.progress import Progress
from ..settings import Settings

_TITLE = "# What changed between JAX releases"

_INTRO = """\
Cells of this book were also executed on the releases below, in an environment of
their own; how many of them are still as they were then is said below the release. This
page shows the outputs that are not those of their pages, side by side, and the cells
that broke. A difference that several cells share is shown once, after these. Outputs
that vary from run to run are left out. The page is generated from these runs.
"""

#: A difference that at least so many cells share is shown once for all of them.
_SEVERAL = 3

#: What was written, and what is written instead.
Substitution = tuple[str, str]


@dataclass(frozen=True)
class Change:
    """One cell that gives another output; `new` is the book's, `old` the other's."""

    docname: str
    number: int
    source: str
    new: str
    old: str
    broke: bool = False


@dataclass
class Release:
    """What changes in the book with another release.

    `titles` are those of the chapters that were compared, `cells` counts their cells.
    """

    base: str
    other: Provenance
    cells: int = 0
    titles: dict[str, str] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)


def releases(settings: Settings, page: Path, progress: Progress) -> None:
    """Write the page, and tell what changes.

    Raises:
        BookError: `conf.py` names no folder, or a file there cannot be read.
    """
    if settings.outputs is None:
        raise BookError(
            "no outputs are stored\n    → name a folder in conf.py:"
            ' executed_book_outputs = "../outputs/cells"'
        )
    readings = read_pages(settings)
    chapters = [r.chapter for r in readings if r.chapter is not None]
    compared = []
    for place in newest_first(settings.outputs):
        if (release := compare(settings.outputs, place, chapters)) is not None:
            compared.append(release)
            for change in release.changes:
                kind = "broke" if change.broke else "changed"
                progress.note(f"{change.docname}: cell {change.number} {kind}")
            progress.note(
                f"JAX {release.other.jax}: {len(release.changes)} of"
                f" {counted(release.cells, 'cell')} differ"
            )
    write_whole(page, releases_page(compared).rstrip("\n") + "\n")


def compare(folder: Path, place: Path, chapters: Iterable[Chapter]) -> Release | None:
    """What the release of a place changes; None if its outputs are the accepted ones.

    Raises:
        PageError: a file cannot be read.
    """
    release: Release | None = None
    for chapter in chapters:
        path, base = place / f"{chapter.docname}.txt", None
        if path.exists():
            base = accepted_path(folder, chapter.docname)
        if base is None or base == path:
            continue
        accepted, other = read_outputs(base), read_outputs(path)
        release = release or Release(accepted.provenance.jax, other.provenance)
        cells = accepted.code_cells
        sources = [cell.source for cell in cells]
        same = same_cells(other.code_cells, sources, lambda n: set(range(1, n)))
        release.cells += len(same)
        release.titles[chapter.docname] = chapter.title
        release.changes += _changes(chapter.docname, cells, same)
    return release


def _changes(
    docname: str, accepted: list[StoredCell], others: dict[int, StoredCell]
) -> Iterator[Change]:
    for number, other in sorted(others.items()):
        cell = accepted[number - 1]
        new, old = cell.output, other.output
        if other.failed:
            yield Change(docname, number, cell.source, new, old, broke=True)
        elif cell.varies or other.varies:
            continue
        elif same_output(new, old, RELATIVE_TOLERANCE) is not None:
            yield Change(docname, number, cell.source, new, old)


# -- the page


def releases_page(compared: Iterable[Release]) -> str:
    """The page that shows releases, in their order, as MyST text."""
    return "\n".join([_TITLE, "", _INTRO, *map(_section, compared)])


def _section(release: Release) -> str:
    base, other = release.base, release.other
    count = len(release.changes)
    lines = [
        f"## JAX {other.jax} beside {base}",
        "",
        f"Python {other.python}, on {other.platform}." if other.python else "",
        f"Of {release.cells} cells, {count} {'differs' if count == 1 else 'differ'}.",
        "",
    ]
    shared, single = _split(release.changes)
    for docname, group in groupby(single, key=lambda change: change.docname):
        title = release.titles[docname]
        lines += [f"### {title}", "", f"In {{doc}}`{title} </{docname}>`:", ""]
        for change in group:
            lines += _change(change, base, other.jax)
    if shared:
        lines += ["### Alike in several cells", ""]
    for changes in shared:
        lines += _shared(changes, release)
    return "\n".join(lines)


# -- differences that several cells share


def _split(
    changes: list[Change],
) -> tuple[list[list[Change]], list[Change]]:
    """The changes that are the same in several cells, together; and all others."""
    alike: dict[frozenset[Substitution], list[Change]] = {}
    for change in changes:
        replaced = frozenset() if change.broke else substitutions(change)
        alike.setdefault(replaced, []).append(change)
    shared = [
        several
        for replaced, several in alike.items()
        if replaced and len(several) >= _SEVERAL
    ]
    in_shared = {id(change) for several in shared for change in several}
    return shared, [change for change in changes if id(change) not in in_shared]


def substitutions(change: Change) -> frozenset[Substitution]:
    """What a changed output has in place of something else; empty if lines came.

    >>> sorted(substitutions(Change("a", 1, "", "x.dev/a b", "x.y/a b")))
    [('y', 'dev')]
    """
    return frozenset(_replaced(change, r"\w+|\s+|[^\w\s]"))


def _replaced(change: Change, token: str) -> Iterator[Substitution]:
    """Each stretch of tokens that a changed output has in place of another."""
    old, new = change.old.splitlines(), change.new.splitlines()
    if len(old) != len(new):
        return
    for before, after in zip(old, new, strict=True):
        tokens = re.findall(token, before), re.findall(token, after)
        matcher = difflib.SequenceMatcher(None, *tokens, autojunk=False)
        for kind, i, j, m, n in matcher.get_opcodes():
            if kind != "equal":
                yield "".join(tokens[0][i:j]), "".join(tokens[1][m:n])


def _shared(changes: list[Change], release: Release) -> Iterator[str]:
    """One difference that several cells have, as it is in the first of them."""
    for old, new in dict.fromkeys(_replaced(changes[0], r"\S+|\s+")):
        yield from _side_by_side(new, old, release.base, release.other.jax)
    yield f"In {_places(changes, release)}."
    yield ""


def _places(changes: list[Change], release: Release) -> str:
    """The chapters and cells that have some changes."""
    listed = [
        f"{{doc}}`{release.titles[docname]} </{docname}>`, cell"
        f" {', '.join(str(change.number) for change in group)}"
        for docname, group in groupby(changes, key=lambda change: change.docname)
    ]
    return "; ".join(listed)


# -- one change


def _change(change: Change, base: str, other: str) -> Iterator[str]:
    verb = "breaks" if change.broke else "differs"
    yield f"Cell {change.number} {verb} on {other}:"
    yield ""
    yield from _fence("python", change.source)
    yield from _side_by_side(change.new, change.old, base, other)


def _side_by_side(new: str, old: str, base: str, other: str) -> Iterator[str]:
    yield "::::{grid} 1 1 2 2"
    yield ":class-container: drift"
    for version, text in ((base, new), (other, old)):
        yield f":::{{grid-item-card}} JAX {version}"
        yield from _fence("text", text or "(no output)")
        yield ":::"
    yield "::::"
    yield ""


def _fence(language: str, text: str) -> list[str]:
    """A code block around text that may itself hold fences."""
    longest = max([2, *(len(run) for run in re.findall(r"`+", text))])
    mark = "`" * (longest + 1)
    return [f"{mark}{{code-block}} {language}", *text.splitlines(), mark]
