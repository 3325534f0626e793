"""What a run depends on, as text to compare: versions, variables, files, ourselves."""

import contextlib
import functools
import importlib.metadata
import inspect
import os
import platform
import re
import sys
from collections.abc import Callable, Iterable
from importlib.util import source_from_cache
from pathlib import Path
from typing import TypedDict

from ..files import code_digest, digest, file_digest
from .surroundings import Uses
from .workers import DEFAULTS, worker_environment

#: Environment variables with these prefixes change what JAX does or prints. (Python's
#: own are the builder's: see `workers`.)
STEERING = (
    "JAX_", "XLA_", "TPU_", "LIBTPU_", "CUDA_", "NVIDIA_", "NCCL_", "TF_",
    "OMP_", "OPENBLAS_", "MKL_", "MPL", "LANG", "LC_", "TZ",
)  # fmt: skip

#: What workers have anyway: given by the builder, or set by JAX when it is imported.
_ANYWAY = {**DEFAULTS, "TF_CPP_MIN_LOG_LEVEL": "1", "TPU_SKIP_MDS_QUERY": "1"}

#: The modules beside this one that decide what a cell gives.
_EXECUTING = (
    "worker", "shell", "outputs", "failures", "server", "script", "stderr",
    "surroundings",
)  # fmt: skip

_FORMAT = 5

#: Folders of a project that hold what was made, not what is read.
_MADE = frozenset({"_build", ".git", ".nox", ".venv", "__pycache__"})


class Depends(TypedDict):
    """What something depended on, as it was.

    `distributions` are packages with their versions, `files` are the project's, by
    their places in it, with the digests of what they held; None for what is not there.
    `folders` are those that were listed, with the digests of the names in them, and
    `variables` those of the environment that were looked up.
    """

    distributions: dict[str, str | None]
    files: dict[str, str | None]
    folders: dict[str, str | None]
    variables: dict[str, str | None]


def environment_fingerprint(platform_name: str) -> str:
    """What outputs depend on besides the chapter: versions, platform, variables.

    A variable that is set to what workers are given anyway changes nothing.
    """
    variables = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(STEERING) and _ANYWAY.get(name) != value
    }
    return digest(
        [
            _FORMAT,
            sys.version,
            platform.machine(),
            sys.platform,
            installed_version("jax"),
            installed_version("jaxlib"),
            code_digest(Path(__file__).with_name(f"{name}.py") for name in _EXECUTING),
            platform_name,
            sorted(variables.items()),
        ]
    )


def dependencies(modules: list[str], uses: Uses, project: Path) -> Depends:
    """The distributions behind `modules`, and what a chapter uses, as they are.

    A file that is not there counts as well: it may appear.
    """
    owners = _owners()
    names = sorted({name for module in modules for name in owners.get(module, ())})
    read = {_source_of(Path(name)) for name in uses.files}
    files = _own(read, project)
    folders = _own(map(Path, uses.folders), project)
    variables = worker_environment()
    return {
        "distributions": {name: installed_version(name) for name in names},
        "files": {path.as_posix(): file_digest(project / path) for path in files},
        "folders": {p.as_posix(): _listing_digest(project / p) for p in folders},
        "variables": {
            name: _value_digest(value)
            for name, value in sorted(uses.variables.items())
            if variables.get(name) == value
        },
    }


def _own(paths: Iterable[Path], project: Path) -> list[Path]:
    """Those that are read in a project and not made by it, as places in it."""
    places = (Path(os.path.relpath(path, project)) for path in paths)
    return sorted(place for place in places if not _MADE & set(place.parts))


def _listing_digest(folder: Path) -> str | None:
    """The digest of the names in a folder; None if there is no such folder."""
    try:
        return digest(sorted(set(os.listdir(folder)) - _MADE))  # noqa: PTH208
    except OSError:
        return None


def _value_digest(value: str | None) -> str | None:
    """A variable may be a secret, so its value is not kept."""
    return None if value is None else digest(value)


def holds(depends: Depends, project: Path) -> bool:
    """Whether what something depended on is still as it was."""
    variables = worker_environment() if depends["variables"] else {}
    each: list[tuple[dict[str, str | None], Callable[[str], str | None]]] = [
        (depends["distributions"], installed_version),
        (depends["files"], lambda name: file_digest(project / name)),
        (depends["folders"], lambda name: _listing_digest(project / name)),
        (depends["variables"], lambda name: _value_digest(variables.get(name))),
    ]
    return all(now(n) == before for then, now in each for n, before in then.items())


@functools.cache
def _owners() -> dict[str, set[str]]:
    """The distributions that bring a module, by its name.

    Python's own `packages_distributions` takes over a second: it looks for each file.
    """
    owners: dict[str, set[str]] = {}
    for distribution in importlib.metadata.distributions():
        about = distribution.read_text("METADATA") or ""
        if name := re.search(r"(?m)^Name: *(\S+)", about):
            for module in _top_modules(distribution):
                owners.setdefault(module, set()).add(name[1])
    return owners


def _top_modules(distribution: importlib.metadata.Distribution) -> set[str]:
    if declared := distribution.read_text("top_level.txt"):
        return set(declared.split())
    lines = (distribution.read_text("RECORD") or "").splitlines()
    tops = {line.partition(",")[0].partition("/")[::2] for line in lines}
    return {top if below else inspect.getmodulename(top) or "" for top, below in tops}


@functools.cache
def installed_version(distribution: str) -> str | None:
    """The version of a distribution; None where it is not installed."""
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
