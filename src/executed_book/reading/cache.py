"""Pages kept from an earlier reading of the same text.

Reading every page with MyST's own parser is most of what a build does when nothing has
changed. What is read depends on the text, its place, the rules, the lines that are
claims, and the code that reads it.
"""

import contextlib
import datetime
import functools
import importlib.metadata
import io
import pickle
import re
from pathlib import Path
from typing import Any

from ..errors import PageError
from ..files import code_digest, digest, file_digest, file_name, write_whole
from ..model import Cell, Chapter, Prose, Sentence, Value
from ..settings import Settings
from .chapters import Reading, decode, docname_of, read_page

#: A cell may load its source from a file, which the page's text does not show.
_LOADS = re.compile(r"^[ \t]*:?load:(.*)$", re.MULTILINE)

#: What is read of a page: the chapter if it is one, its sentences, whether it counts.
Read = tuple[Chapter | None, tuple[Sentence, ...], bool]


#: The classes of what is read of a page, its path and its front matter.
_CLASSES = {
    (kind.__module__, kind.__name__): kind
    for kind in (
        *(Chapter, Prose, Cell, Value, Sentence, type(Path())),
        *(frozenset, datetime.date, datetime.datetime),
    )
}


class _PlainData(pickle.Unpickler):
    """Loads pages and calls nothing else: who restores a cache runs no code here."""

    def find_class(self, module: str, name: str) -> Any:
        """A class of pages or of plain data; anything else is refused."""
        try:
            return _CLASSES[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"{module}.{name} is no page's") from None


def read_once(path: Path, settings: Settings) -> Reading:
    """As `read_page`, from the cache where that holds what the page says now.

    A page with something wrong is read anew each time.
    """
    if path.suffix == ".ipynb":
        return read_page(path, settings)
    try:
        text = decode(path)
    except PageError as error:
        return Reading(path, settings, errors=[error])
    key = _key(text, path, settings)
    name = file_name(docname_of(path, settings.source))
    file = settings.cache / "read" / f"{name}.pickle"
    cached = _load(file, key)
    if cached is not None:
        return Reading(path, settings, *cached)
    reading = read_page(path, settings, text)
    if not reading.errors:
        read: Read = (reading.chapter, reading.sentences, reading.has_counts)
        with contextlib.suppress(OSError):  # a folder that cannot be written
            write_whole(file, key.encode() + b"\n" + pickle.dumps(read))
    return reading


def _load(file: Path, key: str) -> Read | None:
    """What the file holds of a page, if that is what `key` names."""
    try:
        cached_key, _, content = file.read_bytes().partition(b"\n")
        if cached_key != key.encode():
            return None
        read: Read = _PlainData(io.BytesIO(content)).load()
        return read
    except Exception:  # whatever is wrong with it, the page itself can still be read
        return None


def _key(text: str, path: Path, settings: Settings) -> str:
    names = (name.strip().strip("\"'") for name in _LOADS.findall(text))
    loaded = [file_digest(path.parent / name) for name in names]
    asked = [sorted(settings.rules), sorted(settings.claims.items())]
    return digest([text, loaded, str(path), str(settings.source), asked, _code()])


@functools.cache
def _code() -> str:
    """A digest of what reads pages: our modules, and the versions of the parsers."""
    folder = Path(__file__).parent
    code = code_digest([*sorted(folder.glob("*.py")), folder.parent / "model.py"])
    names = ("myst-parser", "markdown-it-py", "PyYAML")
    return " ".join([code, *map(importlib.metadata.version, names)])
