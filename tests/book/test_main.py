"""`python -m executed_book` before anything of the book is begun."""

import os
import re
import subprocess
import sys
from pathlib import Path

import executed_book

PACKAGES = Path(executed_book.__file__).parents[1]


def run(*command: str) -> tuple[int, str]:
    """The exit status of a command, for which our package is there, and its stderr."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGES)}
    ran = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True)
    return ran.returncode, ran.stderr


def test_what_is_missing_is_named_with_what_brings_it():
    status, said = run(sys.executable, "-S", "-m", "executed_book", "build")
    assert status == 1
    missing, way_out = said.strip().splitlines()
    assert re.fullmatch("the builder needs '.*', which is not installed here", missing)
    assert way_out.endswith("pip install executed-book brings all that it needs")


def test_a_folder_that_was_removed_is_one_line(tmp_path):
    away = f"cd {tmp_path} && rmdir {tmp_path} && exec {sys.executable}"
    said = "the current folder was removed\n    → change to the folder of the book\n"
    assert run("sh", "-c", f"{away} -m executed_book build") == (1, f"\n{said}")


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
    said = "\nstopped: the site is unchanged, and finished chapters are kept\n"
    assert run(sys.executable, "-S", "-c", code) == (130, said)
