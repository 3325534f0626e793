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
    "surroundings", "reached",
)  # fmt: skip

_FORMAT = 5

#: Folders of a project that hold what was made, not what is read.
_MADE = frozenset({"_build", ".git", ".nox", ".venv", "__pycache__"})


#: What something depended on, by kind and name, as it was; None for what is not there.
#: Of packages (`distributions`) that is the version, of `files` in the project the
#: digest of the content, of `folders` that of the names in them, of `variables` of the
#: environment that of the value.
Depends = dict[str, dict[str, str | None]]


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
    variables = worker_environment()
    looked_up = sorted(uses.variables.items())
    depends = {
        "distributions": names,
        "files": _own({_source_of(Path(name)) for name in uses.files}, project),
        "folders": _own(map(Path, uses.folders), project),
        "variables": [n for n, value in looked_up if variables.get(n) == value],
    }
    now = _now(project)
    return {kind: {n: now[kind](n) for n in names} for kind, names in depends.items()}


def holds(depends: Depends, project: Path) -> bool:
    """Whether what something depended on is still as it was."""
    now = _now(project)
    return all(
        now[kind](name) == before
        for kind, then in depends.items()
        for name, before in then.items()
    )


def _now(project: Path) -> dict[str, Callable[[str], str | None]]:
    """What tells how a thing is now, by its kind: see `Depends`."""
    variables = worker_environment()
    return {
        "distributions": installed_version,
        "files": lambda name: file_digest(project / name),
        "folders": lambda name: _listing_digest(project / name),
        # One may be a secret, so its value is not kept.
        "variables": lambda n: digest(variables[n]) if n in variables else None,
    }


def _own(paths: Iterable[Path], project: Path) -> list[str]:
    """Those that are read in a project and not made by it, as places in it."""
    places = (Path(os.path.relpath(path, project)) for path in paths)
    own = sorted(place for place in places if not _MADE & set(place.parts))
    return [place.as_posix() for place in own]


def _listing_digest(folder: Path) -> str | None:
    """The digest of the names in a folder; None if there is no such folder."""
    try:
        return digest(sorted(set(os.listdir(folder)) - _MADE))  # noqa: PTH208
    except OSError:
        return None


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
