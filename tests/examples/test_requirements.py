"""Each program says at its head what it needs, for `uv run` and for pip."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
#: What the studies import and does not run alone.
SHARED = "study.py"
PROGRAMS = sorted(path for path in EXAMPLES.glob("*.py") if path.name != SHARED)
PACKAGES = sorted(EXAMPLES.glob("*/__init__.py"))
#: What comes with another library, and is imported besides it.
COMES_WITH = {"jax": {"numpy", "scipy"}, "orbax": {"absl"}}
#: What a part of JAX needs that does not come with it.
FOR_EXPORT = "flatbuffers"


def modules(paths: list[Path]) -> Iterator[str]:
    """The modules that some files import; a file beside them with what it imports."""
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in getattr(node, "names", ())]
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""] if not node.level else []
            elif not isinstance(node, ast.Import):
                continue
            for name in {name.partition(".")[0] for name in names}:
                beside = EXAMPLES / f"{name}.py"
                if beside.is_file():
                    yield from modules([beside])
                else:
                    yield name


def imported(paths: list[Path]) -> set[str]:
    """The distributions that some files need."""
    distributions = packages_distributions()
    found = set(modules(paths)) - sys.stdlib_module_names - {paths[0].parent.name}
    found -= {name for by in found & COMES_WITH.keys() for name in COMES_WITH[by]}
    return {distributions[name][0].lower() for name in found}


def declared(path: Path) -> set[str]:
    text = path.read_text("utf-8")
    block = re.match(r"# /// script\n((?:#.*\n)*?)# ///\n", text)
    assert block, f"{path.name} does not begin with what it needs"
    lines = [line.removeprefix("#").removeprefix(" ") for line in block[1].splitlines()]
    return set(tomllib.loads("\n".join(lines))["dependencies"])


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_names_what_it_imports(path):
    assert declared(path) == imported([path])


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: path.parent.name)
def test_a_package_names_what_its_modules_import(path):
    paths = sorted(path.parent.glob("*.py"))
    exports = any("jax.export." in one.read_text("utf-8") for one in paths)
    assert declared(path) == imported(paths) | ({FOR_EXPORT} if exports else set())
