"""`python -m executed_book` before anything of the book is begun."""

import os
import subprocess
import sys
from pathlib import Path

import executed_book

PACKAGES = Path(executed_book.__file__).parents[1]


def run(*options: str) -> subprocess.CompletedProcess[str]:
    """Python with our package and, where `-S` is an option, no others."""
    command = [sys.executable, *options]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGES)}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    )


def test_what_is_missing_is_named_with_what_brings_it():
    ran = run("-S", "-m", "executed_book", "build")
    assert ran.returncode == 1
    missing, way_out = ran.stderr.strip().splitlines()
    assert missing.startswith("the builder needs '")
    assert missing.endswith("', which is not installed here")
    assert way_out == (
        "    → python -m pip install executed-book brings all that it needs"
    )


def test_a_folder_that_was_removed_is_one_line(tmp_path):
    away = (
        f"cd {tmp_path} && rmdir {tmp_path} && exec {sys.executable} -m executed_book"
    )
    environment = {**os.environ, "PYTHONPATH": str(PACKAGES)}
    ran = subprocess.run(
        ["sh", "-c", f"{away} build"], env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 1
    said = "the folder that this runs in was removed\n    → enter the book's again\n"
    assert ran.stderr == f"\n{said}"


def test_an_interrupt_before_the_beginning_is_one_line():
    code = (
        "import os, runpy, signal, sys, types\n"
        "class Slow:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name.endswith('commands'):\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Slow())\n"
        "runpy.run_module('executed_book', run_name='__main__')\n"
    )
    ran = run("-S", "-c", code)
    assert ran.returncode == 130
    assert ran.stderr == "\nstopped: the site is as it was, and what ran is kept\n"
