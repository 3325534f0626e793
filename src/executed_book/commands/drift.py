"""What another version of JAX makes of the book: every output that changes.

`nox -s drift` takes a snapshot of the book on each version, keeps the
differences as a record in the repository, and writes a page from the records.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .._compare import same_output
from ..book import execute
from ..checking.pins import RELATIVE_TOLERANCE
from ..checking.text import pinned_text
from ..errors import BookError
from ..model import Executed, to_plain
from ..running.processes import run_folder
from ..running.progress import Progress
from ..running.store import write_whole
from ..settings import Settings

_TITLE = "# What changed between JAX releases"

_INTRO = """\
Each cell of this book was also executed on the releases below, in an environment of
their own. This page lists every cell whose output is not the one on its page, side by
side, and every cell that broke. Outputs that vary from run to run are left out. The
page is generated: nothing on it was typed.
"""


def snapshot(settings: Settings, progress: Progress) -> dict[str, Any]:
    """What every cell gives here, those after a failing cell included.

    Returns plain data: the versions, and for each chapter its title and its cells
    with their source and output. A chapter that could not run to its end has a
    `broken` text instead of cells.
    """
    with run_folder() as cache:
        book = execute(dataclasses.replace(settings, cache=cache, pins=None), progress)
    ran = [e for e in book.executed.values() if e.run.provenance.platform]
    if not ran:
        raise BookError("no chapter runs here\n\n" + "\n\n".join(map(str, book.errors)))
    chapters: dict[str, Any] = {}
    for chapter in book.chapters:
        executed = book.executed.get(chapter.docname)
        if executed in ran:
            content: dict[str, Any] = {"cells": _cells(executed)}
        else:
            said = [e.message for e in book.errors if e.path == chapter.path]
            content = {"broken": "; ".join(said)}
        chapters[chapter.docname] = {"title": chapter.title, **content}
    facts = to_plain(ran[0].run.provenance)
    known = {name: fact for name, fact in facts.items() if fact is not None}
    return {"provenance": known, "chapters": chapters}


def _cells(executed: Executed) -> list[dict[str, Any]]:
    return [
        {
            "source": cell.source,
            "number": cell.number,
            "varies": cell.varies,
            "failed": result.failure is not None,
            "output": pinned_text(result.outputs),
        }
        for cell, result in executed
    ]


def read_snapshot(path: Path) -> dict[str, Any]:
    """The inverse of writing a snapshot.

    Raises:
        BookError: the file is none.
    """
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
        found["provenance"]["jax"], found["chapters"].items()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BookError(
            f"{path}: not a snapshot ({type(error).__name__}: {error});"
            " take it with 'snapshot'"
        ) from None
    return found


def compare(base: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The record of two snapshots of the same book: what differs, in order.

    Raises:
        BookError: the two were not taken of the same cells.
    """
    changes = []
    cells = 0
    for docname, now in base["chapters"].items():
        then = other["chapters"].get(docname, {"broken": "there is no such chapter"})
        if "broken" in now or "broken" in then:
            changes.append(
                {"docname": docname, "broken": then.get("broken", now.get("broken"))}
            )
            continue
        if _sources(now) != _sources(then):
            raise BookError(
                f"{docname}: the snapshots were taken of different cells;"
                " take both again without changing the chapter in between"
            )
        cells += len(now["cells"])
        for new, old in zip(now["cells"], then["cells"], strict=True):
            if (kind := _kind(new, old)) is not None:
                changes.append(
                    {
                        "docname": docname,
                        "number": new["number"],
                        "kind": kind,
                        "source": new["source"],
                        "new": new["output"],
                        "old": old["output"],
                    }
                )
    return {
        "base": base["provenance"],
        "other": other["provenance"],
        "cells": cells,
        "titles": {
            c["docname"]: base["chapters"][c["docname"]]["title"] for c in changes
        },
        "changes": changes,
    }


def _sources(chapter: dict[str, Any]) -> list[str]:
    return [cell["source"] for cell in chapter["cells"]]


def _kind(new: dict[str, Any], old: dict[str, Any]) -> str | None:
    """How a cell differs: it broke, it no longer fails, or its output changed."""
    if old["failed"] and not new["failed"]:
        return "broke"
    if new["failed"] and not old["failed"]:
        return "did not raise"
    if new["varies"]:
        return None
    same = same_output(new["output"], old["output"], RELATIVE_TOLERANCE) is None
    return None if same else "changed"


def releases_page(records: list[dict[str, Any]]) -> str:
    """The page that shows the records, newest release first, as MyST text."""
    ordered = sorted(
        records, key=lambda r: _version_key(r["other"]["jax"]), reverse=True
    )
    return "\n".join([_TITLE, "", _INTRO, *(_section(record) for record in ordered)])


def _version_key(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


def _section(record: dict[str, Any]) -> str:
    base, other = record["base"], record["other"]
    count = len(record["changes"])
    lines = [
        f"## JAX {other['jax']} beside {base['jax']}",
        "",
        f"Python {other['python']} beside {base['python']}, on {other['platform']}.",
        f"Of {record['cells']} cells, {count} {'differs' if count == 1 else 'differ'}.",
        "",
    ]
    for docname, changes in _by_chapter(record["changes"]):
        title = record["titles"][docname]
        lines += [f"### {title}", "", f"In {{doc}}`{title} </{docname}>`:", ""]
        for change in changes:
            lines += _change(change, base["jax"], other["jax"])
    return "\n".join(lines)


def _by_chapter(changes: list[dict]) -> Iterator[tuple[str, list[dict]]]:
    names = dict.fromkeys(change["docname"] for change in changes)
    for name in names:
        yield name, [change for change in changes if change["docname"] == name]


def _change(change: dict[str, Any], base: str, other: str) -> list[str]:
    if "broken" in change:
        return [f"The chapter did not run to its end: {change['broken']}.", ""]
    said = {"broke": "breaks", "did not raise": "does not raise", "changed": "differs"}
    return [
        f"Cell {change['number']} {said[change['kind']]} on {other}:",
        "",
        *_fence("python", change["source"]),
        "::::{grid} 1 1 2 2",
        ":class-container: drift",
        f":::{{grid-item-card}} JAX {base}",
        *_fence("text", change["new"] or "(no output)"),
        ":::",
        f":::{{grid-item-card}} JAX {other}",
        *_fence("text", change["old"] or "(no output)"),
        ":::",
        "::::",
        "",
    ]


def _fence(language: str, text: str) -> list[str]:
    """A code block around text that may itself hold fences."""
    longest = max([2, *(len(run) for run in re.findall(r"`+", text))])
    mark = "`" * (longest + 1)
    return [f"{mark}{{code-block}} {language}", *text.splitlines(), mark]


def add_record(record: dict[str, Any], folder: Path, page: Path) -> None:
    """Keep a record in `folder`, and write the page from all that are there."""
    name = f"jax-{record['other']['jax']}.json"
    text = json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False)
    write_whole(folder / name, text + "\n")
    records = [json.loads(p.read_text("utf-8")) for p in sorted(folder.glob("*.json"))]
    write_whole(page, releases_page(records).rstrip("\n") + "\n")
