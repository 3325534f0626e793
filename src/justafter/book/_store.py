"""Executed chapters kept between builds, and the key that says which still hold.

An entry's name holds everything that is known before a chapter runs: its
cells, this package, Python, JAX, the platform, and the environment variables
that steer JAX. What is known only afterwards, the other packages it imported
and the files it read, is written inside, and compared when it is read back.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import sys
import time
from importlib.util import source_from_cache
from pathlib import Path
from typing import Any

from ._chapters import Chapter

#: Environment variables with these prefixes change what JAX does or prints.
STEERING = (
    "JAX_", "XLA_", "TPU_", "LIBTPU_", "CUDA_", "NVIDIA_", "NCCL_", "TF_",
    "OMP_", "OPENBLAS_", "MKL_", "MPL", "PYTHONHASHSEED", "PYTHONOPTIMIZE",
    "LANG", "LC_", "TZ",
)  # fmt: skip

#: Entries that no build has used for this long are removed.
KEEP_SECONDS = 30 * 24 * 3600

_FORMAT = 1

#: What an entry depends on that needs nothing besides what its name says.
NOTHING: dict[str, Any] = {"distributions": {}, "files": {}}


def chapter_key(chapter: Chapter, environment: str) -> str:
    """The name under which a run of this chapter, here and now, is kept."""
    cells = [
        [
            cell.source,
            "measured" in cell.tags,
            cell.raises is not None,
            [value.expression for value in cell.values],
        ]
        for cell in chapter.cells
    ]
    leading = [value.expression for value in chapter.leading]
    return digest([chapter.docname, chapter.platform, cells, leading, environment])


def environment_fingerprint(platform_name: str) -> str:
    """What outputs depend on besides the chapter: versions, platform, variables."""
    variables = {
        name: value for name, value in os.environ.items() if name.startswith(STEERING)
    }
    return digest(
        [
            _FORMAT,
            sys.version,
            platform.machine(),
            sys.platform,
            importlib.metadata.version("jax"),
            importlib.metadata.version("jaxlib"),
            package_digest(),
            platform_name,
            sorted(variables.items()),
        ]
    )


@functools.cache
def package_digest() -> str:
    """A digest of this package's own source."""
    root = Path(__file__).parent.parent
    return digest([[str(p.relative_to(root)), _file(p)] for p in _sources(root)])


def _sources(root: Path) -> list[Path]:
    return sorted(p for p in root.rglob("*") if p.suffix in (".py", ".css", ".js"))


def _file(path: Path) -> str | None:
    """The digest of a file's content; None if there is no such file."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def digest(data: Any) -> str:
    """A name for plain data: equal data, equal name."""
    text = json.dumps(data, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def dependencies(modules: list[str], files: list[str], project: Path) -> dict:
    """The distributions behind `modules`, and the project's `files`, as they are."""
    owners = _owners()
    names = sorted({name for module in modules for name in owners.get(module, ())})
    read = {_source_of(Path(name)) for name in files}
    kept = sorted(
        path.relative_to(project)
        for path in read
        if path.is_file() and not {"_build", ".git", ".nox"} & set(path.parts)
    )
    return {
        "distributions": {name: _version(name) for name in names},
        "files": {path.as_posix(): _file(project / path) for path in kept},
    }


@functools.cache
def _owners() -> dict[str, list[str]]:
    return dict(importlib.metadata.packages_distributions())


@functools.cache
def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _source_of(path: Path) -> Path:
    """The module behind a compiled file: Python reads only the latter."""
    if path.suffix == ".pyc":
        with contextlib.suppress(ValueError):
            return Path(source_from_cache(str(path)))
    return path


class Store:
    """A folder of executed chapters: one JSON file each, replaced as a whole."""

    def __init__(self, folder: Path, project: Path) -> None:
        self.folder, self.project = folder, project

    def path(self, docname: str, key: str) -> Path:
        return self.folder / f"{docname.replace('/', '--')}-{key}.json"

    def load(self, docname: str, key: str) -> dict[str, Any] | None:
        """The run kept under `key`, if it is whole and still holds; else None."""
        path = self.path(docname, key)
        run = self.read(path)
        if run is None or not self._holds(run.get("depends", NOTHING)):
            return None
        with contextlib.suppress(OSError):  # a read-only cache still serves
            os.utime(path)
        return run

    def read(self, path: Path) -> dict[str, Any] | None:
        """The run in a file of the store; None if it is not whole."""
        try:
            seal, _, body = path.read_text("utf-8").partition("\n")
            if seal != hashlib.sha256(body.encode()).hexdigest():
                return None
            return {**json.loads(body), "seal": seal}
        except (OSError, ValueError):
            return None

    def save(self, docname: str, key: str, run: dict[str, Any]) -> dict[str, Any]:
        """Keep a run, and return it as `load` would, with the seal of its content.

        The file appears whole or not at all.
        """
        body = json.dumps(run, sort_keys=True, ensure_ascii=False)
        seal = hashlib.sha256(body.encode()).hexdigest()
        write_whole(self.path(docname, key), f"{seal}\n{body}")
        return {**run, "seal": seal}

    def prune(self) -> None:
        """Remove the entries that no build has used for a month."""
        before = time.time() - KEEP_SECONDS
        for path in self.folder.glob("*.json"):
            with contextlib.suppress(OSError):  # another build was faster
                if path.stat().st_mtime < before:
                    path.unlink()

    def _holds(self, depends: dict[str, Any]) -> bool:
        return all(
            _version(name) == version
            for name, version in depends["distributions"].items()
        ) and all(
            _file(self.project / name) == digest
            for name, digest in depends["files"].items()
        )


def write_whole(path: Path, text: str) -> None:
    """Write a file so that no reader ever sees a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(text, "utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
