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
import pickle
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from ..errors import PageError
from ..files import file_name, write_whole
from ..model import Chapter, Statement
from .chapters import Reading, decode, docname_of, read_page

#: A cell's source may stand in a file of its own, which the page's text does not show.
_LOADS = re.compile(r"^[ \t]*:?load:(.*)$", re.MULTILINE)

#: What is kept of a page: the chapter if it is one, its sentences, whether it counts.
Kept = tuple[Chapter | None, tuple[Statement, ...], bool]


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
        file = self._folder / f"{name}.pickle"
        entry = _kept(file, key)
        if entry is not None:
            chapter, statements, has_counts = entry
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


def _kept(file: Path, key: str) -> Kept | None:
    """What the file holds, if that is what `key` names."""
    try:
        with file.open("rb") as stream:
            if stream.read(len(key)) == key.encode():
                entry: Kept = pickle.load(stream)
                return entry
    except Exception:  # whatever is in the file, the page itself can still be read
        return None
    return None


def _keep(file: Path, key: str, read: Kept) -> None:
    with contextlib.suppress(OSError):  # a cache that cannot be written saves nothing
        write_whole(file, key.encode() + pickle.dumps(read))


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
