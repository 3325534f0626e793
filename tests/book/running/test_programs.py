"""Programs run apart, each as the main module of a process of its own."""

import re
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from executed_book.running.programs import ProgramTask
from executed_book.running.workers import Worker

from ..programs.running import run_programs

pytestmark = pytest.mark.usefixtures("ready_workers")


def test_programs_run_apart_and_as_main_modules():
    runs = run_programs(
        [
            "import jax\njax.leftover = 1\nprint(__name__, __file__[-10:])",
            "import jax\nprint(hasattr(jax, 'leftover'))",
            "import inspect\ndef f():\n    return 1\nprint(inspect.getsource(f))",
            "import os, sys\nprint(sorted(os.listdir()), sys.argv)",
            "import atexit\natexit.register(print, 'at exit')\nraise SystemExit(3)",
            "import pickle\nclass A:\n    pass\nprint(pickle.loads(pickle.dumps(A)))",
            "raise SystemExit",
            "import sys\nsys.exit('no')",
            "raise KeyboardInterrupt",
            "raise ValueError('\\ud800 é')",
            "raise SystemExit([])",
            "x = = 1",
            "import json\njson.dumps = None\n1 / 0",
            # It does not inherit `from __future__ import annotations` of ours.
            "def f(x: unknown_name): pass\nf.__annotations__",
        ]
    )
    assert [r.shown for r in runs] == [
        "__main__ program.py",
        "False",
        "def f():\n    return 1",
        "['program.py'] ['program.py']",
        "at exit\n(ended with status 3)",
        "<class '__main__.A'>",
        *("", "(ended with status 1)"),
        *("KeyboardInterrupt: ", "ValueError: \ud800 é", "(ended with status 1)"),
        "SyntaxError: invalid syntax (program.py, line 1)",
        "ZeroDivisionError: division by zero",
        "NameError: name 'unknown_name' is not defined",
    ]
    assert runs[7].stderr == "no\n"
    assert all("executed_book" not in run.stderr for run in runs), "no frame of ours"


def test_a_traceback_has_its_ordinary_form():
    [run] = run_programs(["def f():\n    return 1 / 0\nf()"], fresh=[0])
    assert run.raised == "ZeroDivisionError: division by zero"
    lines = run.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert re.fullmatch(r'  File ".*/program.py", line 3, in <module>', lines[1])
    assert lines[-1] == run.raised


def test_a_program_that_hangs_is_killed_with_what_it_started():
    text = (
        "import subprocess, sys, time\n"
        "code = 'import time; time.sleep(60)'\n"
        "child = subprocess.Popen([sys.executable, '-c', code])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    runs = run_programs([text, "print('other')"], fresh=[0, 1], timeout=2.0)
    assert runs[0].stopped == "at the time limit"
    assert runs[0].shown.endswith("(stopped at the time limit)")
    assert runs[1].shown == "other"
    assert not is_running(int(runs[0].stdout))


def is_running(process):
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def test_what_a_program_did_is_read_from_its_folder(tmp_path):
    task = ProgramTask("print(1)", limit=5.0)
    assert task.job() == "print(1)"
    (tmp_path / "below-stdout").write_bytes(b"1\xff\n")
    (tmp_path / "raised.json").write_text('"KeyError: 1"')
    worker = SimpleNamespace(folder=tmp_path, wrote_below=lambda: 16_000_000)
    worker.text_below = partial(Worker.text_below, worker)
    assert not task.may_go_on(worker)
    assert task.ended(worker, None, True) is False
    assert (task.ran.stdout, task.ran.stderr) == ("1\ufffd\n", "")
    assert (task.ran.raised, task.ran.status) == ("KeyError: 1", -9)
    assert task.ran.stopped == "at the time limit"
