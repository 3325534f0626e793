"""What every whole system promises: it runs, stops, goes on, and says what is wrong.

At every push one of them shows it. The others do so in the session `weekly`, which a
change of any of them asks for: see `test_figures.py`.
"""

import contextlib
import io
import re
import shlex
import shutil
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from . import figures
from .conftest import HANGS, SYSTEMS, call, finish, load, program, results, saved
from .figures import EXAMPLES

FIRST, *OTHERS = SYSTEMS
WEEKLY = [pytest.param(name, marks=pytest.mark.weekly) for name in OTHERS]
pytestmark = pytest.mark.parametrize("name", [FIRST, *WEEKLY], scope="module")


#: The tests of every push take a quarter of the steps: stopping is not learning.
TINY = dict.fromkeys(SYSTEMS, ("--size", "tiny"))
TINY[FIRST] += ("--steps", "60")


@pytest.fixture(scope="module")
def whole(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the program has run once, without a stop, in this process."""
    folder, said = tmp_path_factory.mktemp(name), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(said),
    ):
        assert call(name, monkeypatch, *TINY[name]) is None
    takes = load(name).SIZES["tiny"].takes
    assert said.getvalue().startswith(f"tiny: {takes}")
    return folder


@pytest.fixture
def copy(name: str, whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole / name, tmp_path / name))


def checkpoint(folder: Path) -> list[Path]:
    """The files of the finished checkpoint in a folder."""
    found = [*folder.glob("*.checkpoint"), *folder.glob("checkpoints/*/state/**/*")]
    return [path for path in found if path.is_file() and ".tmp" not in str(path)]


def test_leaves_pictures_and_the_figures_that_its_chapter_shows(name: str, whole: Path):
    found = results(whole, name)
    for figure in figures.SHOWN[name].values():
        assert figure(found) == pytest.approx(figure(found))  # a number, and not NaN
    pictures = list((whole / name).glob("*.png"))
    assert pictures
    assert min(path.stat().st_size for path in pictures) > 2000


def test_stopped_it_goes_on_bit_for_bit(name: str, whole: Path, tmp_path: Path):
    path = str(EXAMPLES / f"{name}.py")
    running = program(tmp_path, path, *TINY[name])
    while not checkpoint(tmp_path / name):
        time.sleep(0.01)
        assert running.poll() is None, running.communicate()
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=HANGS)
    assert running.returncode == 1, out + err
    said = re.fullmatch(r"Stopped. To go on from here: python (.*)\n", err)
    assert said, err
    assert saved(tmp_path / name) != saved(whole / name)

    _, *options = shlex.split(said[1])
    out = finish(program(tmp_path, path, *options))
    assert re.search(r"Going on after step [1-9]", out), out
    assert results(tmp_path, name) == results(whole, name)
    again, before = saved(tmp_path / name), saved(whole / name)
    assert again.keys() == before.keys()
    assert [name for name in before if again[name] != before[name]] == []


#: What each calls for its steps.
LOOP = dict.fromkeys(SYSTEMS, "training") | {"hares_and_lynxes": "sampling"}

#: Those that train modules of Flax, which JAX compares with Python of Flax's own.
WITH_MODULES = ("three_libraries", "lora", "frozen_encoder")


def raising(error: BaseException, cause: BaseException | None = None):
    def training(*_args, **_more):
        raise error from cause

    return training


def test_an_interrupt_that_comes_as_another_error(name, tmp_path, monkeypatch):
    if name not in WITH_MODULES:
        pytest.skip("its steps take arrays alone")
    arguments = ("--size", "tiny", "--output", str(tmp_path))
    other, interrupt = ValueError("while checking equality"), KeyboardInterrupt()
    monkeypatch.setattr(load(name), "training", raising(other, interrupt))
    ended = call(name, monkeypatch, *arguments)
    assert ended.startswith("Stopped. To go on from here: ")
    monkeypatch.setattr(load(name), "training", raising(ValueError("something else")))
    with pytest.raises(ValueError, match="something else"):
        call(name, monkeypatch, *arguments)


def test_nothing_to_go_on_from(name, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(load(name), LOOP[name], raising(KeyboardInterrupt()))
    arguments = ("--size", "tiny", "--output", str(tmp_path), "--resume")
    ended = call(name, monkeypatch, *arguments)
    assert ended.count("--resume") == 1
    assert "this begins with the first step" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--steps", "0"], "argument --steps: 0 is not a positive whole number"),
        (["--steps", "many"], "argument --steps: many is not a positive whole number"),
        (["--seed", "-1"], "argument --seed: -1 is not a number from 0 to"),
        (["--seed", str(2**31)], "is not a number from 0 to 2**31 - 1"),
        (["--size", "huge"], "argument --size: invalid choice: 'huge'"),
        (["--speed", "9"], "unrecognized arguments: --speed"),
    ],
)
def test_bad_arguments(name, arguments, says, monkeypatch, capsys):
    assert call(name, monkeypatch, *arguments) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith(f"{name}.py: error: ")
    assert says in last


def test_a_broken_checkpoint(name: str, copy: Path, monkeypatch: pytest.MonkeyPatch):
    for path in checkpoint(copy):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    arguments = (*TINY[name], "--output", str(copy), "--resume")
    ended = call(name, monkeypatch, *arguments)
    assert ended.startswith(f"Cannot read {copy}")
    assert ended.endswith("Begin without --resume.")
    assert "\n" not in ended


@pytest.mark.parametrize(
    "other", [("--seed", "1"), ("--size", "small"), ("--steps", "7")]
)
def test_the_checkpoint_of_another_run(name, other, copy, monkeypatch):
    """Its arrays may be of other shapes: what is said is that the run is another."""
    arguments = (*TINY[name], *other, "--output", str(copy), "--resume")
    ended = call(name, monkeypatch, *arguments)
    assert ended.startswith(f"The run in {copy}")
    assert "'size': 'tiny'" in ended
    assert "'seed': 0" in ended
    assert ended.endswith("go on with these.")


def test_an_output_that_cannot_be(name, tmp_path, monkeypatch):
    """The program says so before it trains."""
    taken = tmp_path / "taken"
    taken.write_text("mine")
    monkeypatch.setattr(load(name), LOOP[name], None)
    ended = call(name, monkeypatch, "--size", "tiny", "--output", str(taken))
    assert ended.startswith(f"Cannot write to {taken}: ")
    assert "\n" not in ended
    assert taken.read_text() == "mine"


def test_a_full_disk(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    nothing = SimpleNamespace(total=1, used=1, free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: nothing)
    (tmp_path / "checkpoint.tmp").symlink_to("/dev/full")
    ended = call(name, monkeypatch, "--size", "tiny", "--output", str(tmp_path))
    assert ended.startswith(f"Cannot write to {tmp_path}: ")
    assert "\n" not in ended
