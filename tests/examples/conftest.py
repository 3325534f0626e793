"""What the tests of the whole systems share: how one is run, and what it leaves."""

import importlib
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from ..book.programs.running import as_settings, compiled
from . import figures
from .figures import EXAMPLES

#: When a program counts as hanging (seconds): a busy machine is thirty times slower.
HANGS = 3600.0

# Each is a whole program that trains, stops, goes on, and shows that it works.
SYSTEMS = [
    *("train_convnet", "three_libraries", "lora", "diffusion"),
    *("text_to_image", "frozen_encoder", "faults", "hares_and_lynxes"),
]


#: Of the whole systems one is tested at every push, the others each week. A system that
#: changes asks for them at once: see `test_figures.py`. The tests of the last one's
#: parts are quick.
EACH_WEEK = {f"test_{name}.py" for name in SYSTEMS[1:-1]}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    is_left_out = "not weekly" in config.getoption("markexpr")
    return (is_left_out and collection_path.name in EACH_WEEK) or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent and item.path.name in EACH_WEEK:
            item.add_marker(pytest.mark.weekly)


@pytest.fixture(autouse=True, scope="module")
def usual_settings() -> Iterator[None]:
    """JAX's usual rules for dtypes: Optax multiplies floats by integers.

    JAX keeps what it compiles here or in a program that is started, for both.
    """
    import jax

    kept = as_settings(compiled())
    before = {name: jax.config._read(name) for name in kept}
    for name, value in kept.items():
        jax.config.update(name, value)
    with jax.numpy_dtype_promotion("standard"):
        yield
    for name, value in before.items():
        jax.config.update(name, value)


def program(folder: Path, *command: str) -> subprocess.Popen:
    """Start Python in a folder; it keeps what it compiles."""
    # Products as small as these take longest with a thread for each core.
    usual = {"JAX_PLATFORMS": "cpu", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, **usual, **compiled()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(running: subprocess.Popen) -> str:
    """Wait for a program that has to end well and say nothing on stderr."""
    try:
        out, err = running.communicate(timeout=HANGS)
    finally:
        running.kill()
    assert (running.returncode, err) == (0, ""), f"{out}\n{err}"
    return out


def results(folder: Path, name: str) -> dict[str, Any]:
    """The figures that a program wrote into its default folder."""
    return json.loads((folder / name / "results.json").read_text())


def run(name: str, folder: Path, seed: int) -> dict[str, Any]:
    """The figures of one run of a program at its real size.

    With the variable KEEP_FIGURES they are kept for the pages as well.
    """
    found = figures.measured(name, folder, "--seed", str(seed))
    if os.environ.get("KEEP_FIGURES"):
        figures.keep(name, seed, found)
    return found.results


def load(name: str) -> ModuleType:
    """The program as a module.

    One that asks for many devices does so by a variable, which must not reach the
    processes that other tests start.
    """
    sys.path.insert(0, str(EXAMPLES))
    variables = dict(os.environ)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(EXAMPLES))
        os.environ.clear()
        os.environ.update(variables)


def call(name: str, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    """Call a program's `main` in this process; what it exits with, or None."""
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *arguments])
    try:
        load(name).main()
    except SystemExit as ended:
        return ended.code
    return None


def saved(folder: Path) -> dict[str, Any]:
    """What the checkpoints in a folder hold: bytes of files, arrays of Orbax."""
    import orbax.checkpoint as ocp

    found = {path.name: path.read_bytes() for path in folder.glob("*.checkpoint")}
    steps = [path for path in (folder / "checkpoints").glob("*") if path.name.isdigit()]
    assert len(steps) <= 1
    for step in steps:
        with warnings.catch_warnings(action="ignore"):  # that no sharding is asked for
            tree = ocp.PyTreeCheckpointer().restore((step / "state").resolve())
        found |= {"step": int(step.name), **as_bytes(tree)}
    return found


def as_bytes(tree: Any) -> dict[str, bytes]:
    import jax

    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(p): np.asarray(leaf).tobytes() for p, leaf in leaves}
