"""Things kept between builds: one file each, whole or not at all, and sealed.

An entry's name holds everything that is known before the work is done. What is known
only afterwards, the packages it imported and the files it read, is written inside, and
compared when it is read back.
"""

import contextlib
import hashlib
import json
import os
import re
import time
from pathlib import Path
from typing import Any

from ..files import file_name, write_whole
from .fingerprint import holds

#: Entries that no build has used for this long are removed.
KEEP_SECONDS = 30 * 24 * 3600

#: What is kept: an object of JSON. What it holds is its keeper's; two names are ours,
#: `depends` (see `Depends`) and, when it is read back, `seal`.
Entry = dict[str, Any]

_ENTRY = re.compile(r"(?P<name>.+)-[0-9a-f]{24}\.json")


class Store:
    """A folder of sealed entries; `project` is where the files that they read are."""

    def __init__(self, folder: Path, project: Path) -> None:
        self.folder, self.project = folder, project

    def path(self, name: str, key: str) -> Path:
        """The file of an entry."""
        return self.folder / f"{file_name(name)}-{key}.json"

    def load(self, name: str, key: str) -> Entry | None:
        """What is kept under `key`, if it is whole and still holds; else None."""
        path = self.path(name, key)
        entry = self.read(path)
        try:
            if entry is None or not holds(entry.get("depends", {}), self.project):
                return None
        except (KeyError, AttributeError, TypeError):  # an entry of another form
            return None
        with contextlib.suppress(OSError):  # a read-only cache still serves
            os.utime(path)
        return entry

    def read(self, path: Path) -> Entry | None:
        """The content of an entry's file, with its seal; None if it is not whole."""
        try:
            seal, _, body = path.read_text("utf-8").partition("\n")
            if seal != hashlib.sha256(body.encode()).hexdigest():
                return None
            return {**json.loads(body), "seal": seal}
        except (OSError, ValueError):
            return None

    def save(self, name: str, key: str, entry: Entry) -> str:
        """Keep an entry, and return the seal of its content."""
        body = json.dumps(entry, sort_keys=True, ensure_ascii=False)
        seal = hashlib.sha256(body.encode()).hexdigest()
        write_whole(self.path(name, key), f"{seal}\n{body}")
        return seal

    def entries(self, name: str) -> list[Path]:
        """All files kept under a name, the newest first."""
        wanted = file_name(name)
        every = ((p, _ENTRY.fullmatch(p.name)) for p in self.folder.glob("*.json"))
        paths = [path for path, entry in every if entry and entry["name"] == wanted]
        return sorted(paths, key=_time, reverse=True)

    def prune(self) -> None:
        """Remove the entries that no build has used for a month, and no other file."""
        before = time.time() - KEEP_SECONDS
        for path in self.folder.glob("*.json"):
            if _ENTRY.fullmatch(path.name) and _time(path) < before:
                with contextlib.suppress(OSError):  # another build was faster
                    path.unlink()


def _time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # another build removed it
        return float("inf")
