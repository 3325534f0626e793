"""One Python is enough to build the book: which one the noxfile takes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Enough of nox for the noxfile to be read as if it ran on another Python.
READ = """
import collections, sys, types
sys.version_info = collections.namedtuple("V", "major minor micro")(3, {minor}, 0)
nox, command = types.ModuleType("nox"), types.ModuleType("nox.command")
nox.options = types.SimpleNamespace()
nox.session = lambda **options: lambda function: function
nox.main, nox.Session = None, None
nox.project = types.SimpleNamespace(
    load_toml=lambda path: None,
    python_versions=lambda text: ["3.11", "3.12", "3.13"],
)
command.CommandFailed = Exception
sys.modules["nox"], sys.modules["nox.command"] = nox, command
source = open({noxfile!r}).read()
names = {{"__name__": "noxfile", "__file__": {noxfile!r}}}
exec(compile(source, "noxfile.py", "exec"), names)
print(names["NEWEST"], nox.options.error_on_missing_interpreters)
"""


def chosen(folder: Path, running: int, *present: str, broken: str = "") -> str:
    """What the noxfile builds with, where only these Pythons are on the path."""
    return read(folder, running, *present, broken=broken).rpartition(" ")[0]


def read(
    folder: Path, running: int, *present: str, broken: str = "", **variables: str
) -> str:
    """The same, and whether a Python that is missing is an error."""
    for version in (*present, *filter(None, [broken])):
        fake = folder / f"python{version}"
        fake.write_text(f"#!/bin/sh\nexit {int(version == broken)}\n")
        fake.chmod(0o755)
    program = READ.format(minor=running, noxfile=str(ROOT / "noxfile.py"))
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={"PATH": str(folder), "HOME": os.environ.get("HOME", "/"), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    return (ran.stdout + ran.stderr).strip()


@pytest.mark.parametrize("minor", [12, 13, 14, 15])
def test_any_single_python_is_enough(tmp_path, minor):
    assert chosen(tmp_path, minor, f"3.{minor}") == f"3.{minor}"


def test_a_listed_one_comes_before_a_newer_one(tmp_path):
    assert chosen(tmp_path, 14, "3.14", "3.13", "3.12") == "3.13"


def test_a_shim_without_a_version_behind_it_does_not_count(tmp_path):
    assert chosen(tmp_path, 12, "3.12", broken="3.13") == "3.12"


def test_the_oldest_alone_gets_one_line_that_says_what_to_install(tmp_path):
    said = read(tmp_path, 11, "3.11")
    assert len(said.splitlines()) == 1
    assert re.search(r"3\.12 or later.*install", said)


def test_the_tests_do_not_ask_for_a_python_that_is_missing(tmp_path):
    """They run on those that are there; only where all must be, one is missed."""
    assert read(tmp_path, 13, "3.13") == "3.13 False"
    assert read(tmp_path, 13, "3.13", CI="true") == "3.13 True"
