"""`releases`: the page that shows what changes with other releases of JAX.

It is written from what is stored below `outputs/cells`: the difference of each page's
accepted outputs and of what `record` stored of it on a CPU with another release.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import groupby
from pathlib import Path

from ..checking.comparison import same_output
from ..checking.elsewhere import same_cells
from ..checking.stored import StoredCell, accepted_path, newest_first, read_outputs
from ..errors import counted
from ..files import write_whole
from ..model import Chapter, Provenance
from ..reading.pages import read_pages
from ..running.progress import Progress
from ..settings import Settings

_INTRO = """\
---
description: >-
  Which outputs of this book's code differ between JAX releases, shown side by side.
---

# What changed between JAX releases

Cells of this book were also executed on the releases below, in an environment of
their own. Where a cell, or one that it needs, has changed since, it is left out. This
page shows the outputs that changed beside today's, and the cells that broke. It leaves
out what varies from run to run, an address, and the name of the release. The page is
generated from these runs.
"""

#: Another address in a message is no other output, nor is the release's own name.
_ADDRESS = re.compile(r"https?://\S+|\bJAX \d+(\.\d+)+")


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


def releases(settings: Settings, progress: Progress) -> None:
    """Write the book's page `releases`, and tell what changes.

    Raises:
        BookError: `conf.py` names no folder, or a file there cannot be read.
    """
    folder = settings.outputs_folder
    readings = read_pages(settings)
    chapters = [r.chapter for r in readings if r.chapter is not None]
    compared = []
    for place in newest_first(folder):
        if (release := compare(folder, place, chapters)) is not None:
            compared.append(release)
            for change in release.changes:
                kind = "broke" if change.broke else "changed"
                progress.note(f"{change.docname}: cell {change.number} {kind}")
            progress.note(
                f"JAX {release.other.jax}: {len(release.changes)} of"
                f" {counted(release.cells, 'cell')} differ"
            )
    text = releases_page(compared).rstrip("\n") + "\n"
    write_whole(settings.source / "releases.md", text)


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
        cells = accepted.cells
        sources = [cell.source for cell in cells]
        same = same_cells(other.cells, sources, lambda n: set(range(1, n)))
        release.cells += len(same)
        release.titles[chapter.docname] = chapter.title
        release.changes += _changes(chapter.docname, cells, same)
    return release


def _changes(
    docname: str, accepted: Sequence[StoredCell], others: dict[int, StoredCell]
) -> Iterator[Change]:
    for number, other in sorted(others.items()):
        cell = accepted[number - 1]
        new, old = cell.output, other.output
        if other.failed:
            yield Change(docname, number, cell.source, new, old, broke=True)
        elif cell.varies or other.varies:
            continue
        elif same_output(*(_ADDRESS.sub("<address>", x) for x in (new, old))):
            yield Change(docname, number, cell.source, new, old)


# -- the page


def releases_page(compared: Iterable[Release]) -> str:
    """The page that shows releases, in their order, as MyST text."""
    return "\n".join([_INTRO, *map(_section, compared)])


def _section(release: Release) -> str:
    base, other = release.base, release.other
    count = len(release.changes)
    verb = "differs" if count == 1 else "differ"
    lines = [
        f"## JAX {other.jax} beside {base}",
        "",
        f"Python {other.python}, on {other.platform}." if other.python else "",
        f"Of {release.cells} cells that are as they were then, {count} {verb}.",
        "",
    ]
    for docname, group in groupby(release.changes, key=lambda change: change.docname):
        title = release.titles[docname]
        lines += [f"### {title}", "", f"In {{doc}}`{title} </{docname}>`:", ""]
        for change in group:
            lines += _change(change, base, other.jax)
    return "\n".join(lines)


# -- one change


def _change(change: Change, base: str, other: str) -> Iterator[str]:
    verb = "breaks" if change.broke else "differs"
    yield f"Cell {change.number} {verb} on {other}:"
    yield ""
    yield from _fence("python", change.source)
    yield "::::{grid} 1 1 2 2"
    yield ":class-container: drift"
    new, old = change.new, change.old
    for version, text, beside in ((base, new, old), (other, old, new)):
        yield f":::{{grid-item-card}} JAX {version}"
        yield from _fence("text", text or "(no output)", _own_lines(text, beside))
        yield ":::"
    yield from ("::::", "")


def _own_lines(text: str, beside: str) -> list[int]:
    """The numbers of the lines that the other text has not, if it has any of them."""
    lines = text.splitlines()
    matcher = SequenceMatcher(None, lines, beside.splitlines(), autojunk=False)
    shared = {i + k for i, _, n in matcher.get_matching_blocks() for k in range(n)}
    return [i + 1 for i in range(len(lines)) if i not in shared] if shared else []


def _fence(language: str, text: str, marked: Iterable[int] = ()) -> list[str]:
    """A code block around text that may itself hold fences, with lines `marked`."""
    longest = max([2, *(len(run) for run in re.findall(r"`+", text))])
    mark = "`" * (longest + 1)
    numbers = ",".join(map(str, marked))
    options = [f":emphasize-lines: {numbers}"] if numbers else []
    return [f"{mark}{{code-block}} {language}", *options, *text.splitlines(), mark]
