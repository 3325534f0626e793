"""Pages kept from an earlier reading of the same text.

Reading every page with MyST's own parser is most of what a build does when nothing has
changed. What is read depends on the text, its place, the rules, the lines that are
claims, and the code that reads it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import PageError
from ..files import file_name, write_whole
from ..model import Cell, Chapter, Prose, Statement, Value, to_plain
from .chapters import Reading, decode, docname_of, read_page

#: A cell may load its source from a file, which the page's text does not show.
_LOADS = re.compile(r"^[ \t]*:?load:(.*)$", re.MULTILINE)

#: What is read of a page: the chapter if it is one, its sentences, whether it counts.
Read = tuple[Chapter | None, tuple[Statement, ...], bool]


class Readings:
    """Reads pages, and keeps what was read in a folder; None keeps nothing."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def read(
        self,
        path: Path,
        source: Path,
        rules: Collection[str],
        claims: Mapping[str, Collection[str]] | None = None,
    ) -> Reading:
        """As `read_page`; a page with something wrong is read anew each time."""
        if self._folder is None or path.suffix == ".ipynb":
            return read_page(path, source, rules, claims=claims)
        try:
            text = decode(path)
        except PageError as error:
            return Reading(path, source, frozenset(rules), errors=[error])
        key = _key(text, path, source, rules, claims or {})
        name = file_name(docname_of(path, source))
        file = self._folder / f"{name}.json"
        kept = _kept(file, key, path)
        if kept is not None:
            chapter, statements, has_counts = kept
            return Reading(
                path,
                source,
                frozenset(rules),
                chapter=chapter,
                statements=statements,
                has_counts=has_counts,
            )
        reading = read_page(path, source, rules, text, claims)
        if not reading.errors:
            _keep(file, key, (reading.chapter, reading.statements, reading.has_counts))
        return reading


def _kept(file: Path, key: str, path: Path) -> Read | None:
    """What the file holds of the page at `path`, if that is what `key` names."""
    try:
        kept_key, _, text = file.read_text("utf-8").partition("\n")
        if kept_key != key:
            return None
        chapter, statements, has_counts = json.loads(text)
        made = None if chapter is None else _chapter(chapter, path)
        return made, _statements(statements), bool(has_counts)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None  # the page itself can still be read


def _keep(file: Path, key: str, read: Read) -> None:
    chapter, statements, has_counts = read
    plain = [chapter and to_plain(chapter), list(map(to_plain, statements)), has_counts]
    try:
        text = json.dumps(plain, default=_as_json)
    except TypeError:  # front matter may hold dates, say
        return
    with contextlib.suppress(OSError):  # a cache that cannot be written saves nothing
        write_whole(file, f"{key}\n{text}")


def _as_json(item: Any) -> Any:
    if isinstance(item, Path):
        return str(item)
    if isinstance(item, frozenset):
        return sorted(item)
    raise TypeError


def _chapter(plain: dict[str, Any], path: Path) -> Chapter:
    """The inverse of what `_keep` writes of a chapter."""
    made = {
        "path": path,
        "parts": tuple(map(_part, plain["parts"])),
        "leading": _values(plain["leading"]),
        "statements": _statements(plain["statements"]),
    }
    return Chapter(**{**plain, **made})


def _part(plain: dict[str, Any]) -> Prose | Cell:
    if "kind" in plain:
        return Prose(**plain)
    made = {
        "tags": frozenset(plain["tags"]),
        "needs": tuple(plain["needs"]),
        "needs_not": tuple(plain["needs_not"]),
        "values": _values(plain["values"]),
    }
    return Cell(**{**plain, **made})


def _values(plain: list[dict[str, Any]]) -> tuple[Value, ...]:
    return tuple(Value(**value) for value in plain)


def _statements(plain: list[dict[str, Any]]) -> tuple[Statement, ...]:
    return tuple(
        Statement(
            **{**one, "checks": tuple(one["checks"]), "vouched": tuple(one["vouched"])}
        )
        for one in plain
    )


def _key(
    text: str,
    path: Path,
    source: Path,
    rules: Collection[str],
    claims: Mapping[str, Collection[str]],
) -> str:
    asked = repr(sorted(rules)) + repr(sorted(claims.items()))
    parts = [text, *_loaded(text, path), str(path), str(source), asked, _code()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _loaded(text: str, path: Path) -> Iterator[str]:
    """A digest of each file that the page may take a cell from."""
    for name in _LOADS.findall(text):
        try:
            content = path.parent.joinpath(name.strip().strip("\"'")).read_bytes()
        except (OSError, ValueError):
            yield ""  # reading the page tells what is wrong
        else:
            yield hashlib.sha256(content).hexdigest()


@functools.cache
def _code() -> str:
    """A digest of what reads pages: our modules, and the versions of the parsers."""
    folder = Path(__file__).parent
    files = [*sorted(folder.glob("*.py")), folder.parent / "model.py"]
    code = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    names = ("myst-parser", "markdown-it-py", "PyYAML")
    return " ".join([code, *map(importlib.metadata.version, names)])
