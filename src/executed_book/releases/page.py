"""The page that shows what changed between releases, written from kept drifts."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from ..files import write_whole
from .snapshots import Change, Drift, from_plain, to_plain

_TITLE = "# What changed between JAX releases"

_INTRO = """\
Cells of this book were also executed on the releases below, in an environment of
their own; how many there were then is said below the release. This page shows the
outputs that are not those of their pages, side by side, and the cells that broke.
What differs in the same way in several cells stands once, after these; messages that
only name another address stand last. Outputs that vary from run to run are left out.
The page is generated from these runs.
"""

#: From how many cells on a difference is told once for all of them.
_SEVERAL = 3

_SAID = {"broke": "breaks", "did not raise": "does not raise", "changed": "differs"}

#: What was written, and what is written instead.
Substitution = tuple[str, str]


def keep(drift: Drift, folder: Path, page: Path) -> None:
    """Keep a drift in `folder`, and write the page from all that are there."""
    name = f"jax-{drift.other['jax']}.json"
    text = json.dumps(to_plain(drift), indent=1, sort_keys=True, ensure_ascii=False)
    write_whole(folder / name, text + "\n")
    kept = [
        from_plain(json.loads(path.read_text("utf-8")))
        for path in sorted(folder.glob("*.json"))
    ]
    write_whole(page, releases_page(kept).rstrip("\n") + "\n")


def releases_page(drifts: list[Drift]) -> str:
    """The page that shows drifts, newest release first, as MyST text."""
    ordered = sorted(drifts, key=lambda d: _version_key(d.other["jax"]), reverse=True)
    return "\n".join([_TITLE, "", _INTRO, *map(_section, ordered)])


def _version_key(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


def _section(drift: Drift) -> str:
    base, other = drift.base, drift.other
    count = len(drift.changes)
    lines = [
        f"## JAX {other['jax']} beside {base['jax']}",
        "",
        f"Python {other['python']} beside {base['python']}, on {other['platform']}.",
        f"Of {drift.cells} cells, {count} {'differs' if count == 1 else 'differ'}.",
        "",
    ]
    moved = [change for change in drift.changes if _addresses(change)]
    others = [change for change in drift.changes if not _addresses(change)]
    shared, single = _split(others)
    for docname, group in groupby(single, key=lambda change: change.docname):
        title = drift.titles[docname]
        lines += [f"### {title}", "", f"In {{doc}}`{title} </{docname}>`:", ""]
        for change in group:
            lines += _change(change, base["jax"], other["jax"])
    if shared:
        lines += ["### Alike in several cells", ""]
    for changes in shared:
        lines += _shared(changes, drift)
    lines += _moved(moved, drift)
    return "\n".join(lines)


# -- differences that several cells share


def _split(
    changes: list[Change],
) -> tuple[list[list[Change]], list[Change]]:
    """The changes that are the same in several cells, together; and all others."""
    alike: dict[frozenset[Substitution], list[Change]] = {}
    for change in changes:
        found = substitutions(change) if change.kind == "changed" else frozenset()
        alike.setdefault(found, []).append(change)
    shared = [
        several
        for found, several in alike.items()
        if found and len(several) >= _SEVERAL
    ]
    in_shared = {id(change) for several in shared for change in several}
    return shared, [change for change in changes if id(change) not in in_shared]


def substitutions(change: Change) -> frozenset[Substitution]:
    """What a changed output has in place of something else; empty if lines came.

    >>> sorted(substitutions(Change("a", "changed", new="x.dev/a b", old="x.y/a b")))
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


def _shared(changes: list[Change], drift: Drift) -> Iterator[str]:
    """One difference that several cells have, as it is in the first of them."""
    for old, new in dict.fromkeys(_replaced(changes[0], r"\S+|\s+")):
        yield from _side_by_side(new, old, drift.base["jax"], drift.other["jax"])
    yield f"In {_places(changes, drift)}."
    yield ""


def _places(changes: list[Change], drift: Drift) -> str:
    """The chapters and cells that have some changes."""
    told = [
        f"{{doc}}`{drift.titles[docname]} </{docname}>`, cell"
        f" {', '.join(str(change.number) for change in group)}"
        for docname, group in groupby(changes, key=lambda change: change.docname)
    ]
    return "; ".join(told)


# -- addresses that a message names


def _addresses(change: Change) -> frozenset[Substitution]:
    """The addresses that a message has in place of others; empty if more differs.

    >>> _addresses(Change("a", "changed", new="at https://x.dev/b", old="at http://x"))
    frozenset({('http://x', 'https://x.dev/b')})
    >>> _addresses(Change("a", "changed", new="see https://x.dev/b", old="at http://x"))
    frozenset()
    """
    found = frozenset(_replaced(change, r"\S+|\s+")) if change.kind == "changed" else ()
    is_moved = all(re.match(r"https?://", text) for pair in found for text in pair)
    return frozenset(found) if is_moved else frozenset()


def _moved(changes: list[Change], drift: Drift) -> Iterator[str]:
    """Each address that moved, and where it is named."""
    cells: dict[Substitution, list[Change]] = {}
    for change in changes:
        for pair in _addresses(change):
            cells.setdefault(pair, []).append(change)
    if cells:
        yield from ("### Addresses in messages", "")
    for (old, new), named in sorted(cells.items()):
        yield f"- `{new}`, before `{old}`: in {_places(named, drift)}."
    if cells:
        yield ""


# -- one change


def _change(change: Change, base: str, other: str) -> Iterator[str]:
    if not change.number:
        yield f"The chapter did not run to its end: {change.new}."
        yield ""
        return
    yield f"Cell {change.number} {_SAID[change.kind]} on {other}:"
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
