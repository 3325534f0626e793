"""Workers are started in an environment of the builder's, and end when let go."""

import os
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from executed_book.errors import BookError
from executed_book.running import workers as module
from executed_book.running.channel import Channel
from executed_book.running.workers import Worker, open_workers, worker_environment

STEERED = ("PYTHONOPTIMIZE", "PYTHONWARNINGS", "FORCE_COLOR", "PYTHONHASHSEED")


def test_python_is_steered_by_the_builder_alone(monkeypatch):
    for name in [name for name in os.environ if name.startswith("PYTHON")]:
        monkeypatch.delenv(name)
    for name in STEERED:
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("PYTHONNOUSERSITE", "1")
    found = worker_environment({"PYTHONSTARTUP": "x.py", "JAX_ENABLE_X64": "1"})
    kept = {name: found[name] for name in found if name.startswith("PYTHON")}
    assert kept == {"PYTHONHASHSEED": "0", "PYTHONNOUSERSITE": "1"}
    assert "FORCE_COLOR" not in found
    assert found["JAX_ENABLE_X64"] == "1"


def test_folders_of_modules_are_named_from_here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["src", "/opt/lib"]))
    folders = worker_environment()["PYTHONPATH"].split(os.pathsep)
    assert folders == [str(tmp_path / "src"), "/opt/lib"]


class Ends:
    """A worker without a process: the ends that its process would hold."""

    def __init__(self, folder: Path) -> None:
        ours, self.theirs = socket.socketpair()
        self.life, life = os.pipe()
        end, self.end = os.pipe()
        folder.mkdir()
        self.worker = Worker(folder, Channel(ours), life, end)

    def close(self) -> None:
        self.theirs.close()
        os.close(self.life)
        os.close(self.end)


@pytest.fixture
def ends(tmp_path):
    made = Ends(tmp_path / "1")
    yield made
    made.worker.close(patience=0.0)
    made.close()


def test_a_worker_goes_on_when_it_is_told_to(ends):
    ends.worker.go_on()
    assert ends.theirs.recv(100) == b'{"at": "go"}\n'
    ends.theirs.close()
    ends.worker.go_on()  # one that has ended cannot, and that is no fault


def test_a_worker_whose_watcher_was_killed_has_no_status(tmp_path):
    made = Ends(tmp_path / "2")
    os.close(made.end)
    assert made.worker.status() is None
    made.end = os.dup(0)
    made.worker.close()
    made.close()


def test_what_is_written_below_is_counted_and_its_end_told(ends):
    worker = ends.worker
    assert (worker.wrote_below(), worker.text_below(2)) == (0, "")
    (worker.folder / "below-stdout").write_text("12345")
    (worker.folder / "below-stderr").write_bytes(b"x" * 2000 + b" last\xff words\n")
    assert worker.wrote_below() == 5 + 2013
    assert worker.text_below(2).endswith("x last\ufffd words\n")


def test_a_worker_has_its_folder_until_it_has_ended(tmp_path):
    made = Ends(tmp_path / "4")
    seen = []

    def end() -> None:
        os.read(made.life, 1)  # until it is let go
        time.sleep(0.2)
        seen.append(made.worker.folder.exists())
        os.close(made.end)

    ending = threading.Thread(target=end)
    ending.start()
    made.worker.close(patience=60.0)
    ending.join()
    assert seen == [True]
    assert not made.worker.folder.exists()
    made.end = os.dup(0)
    made.close()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise SystemExit('no such jax')", "no such jax"),
        ("import no_such", "ModuleNotFoundError: No module named 'no_such'"),
        ("pass", "it ended without a message"),
    ],
)
def test_where_python_cannot_start_it_is_told_what_it_said(monkeypatch, code, said):
    command = [sys.executable, "-Sc", code]
    monkeypatch.setattr(module, "python_running", lambda name: command)
    with open_workers() as workers:
        with pytest.raises(BookError) as caught:
            workers.start("1")
        folder = workers._run
    assert str(caught.value) == f"Python cannot import what chapters need:\n{said}"
    assert not folder.exists()
