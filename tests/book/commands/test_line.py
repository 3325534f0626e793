"""What the command line understands, and how it says what went wrong."""

import signal
import sys
import time

import pytest

from executed_book.commands import line
from executed_book.commands.line import main


@pytest.fixture(autouse=True)
def signals(monkeypatch):
    """The handlers of signals, which a command sets, are put back."""
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def parsed(*arguments):
    return line._parser().parse_args(arguments)


def test_chapters_and_options_may_be_named_several_times():
    options = parsed("pin", "--only", "a", "b", "--only", "c", "-D", "x=1", "-Dy=a=b")
    assert options.only == ["a", "b", "c"]
    assert options.D == [("x", "1"), ("y", "a=b")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["bild"], "invalid choice: 'bild'"),
        (["build", "--jobs", "0"], "'0' is not a number of at least 1"),
        (["build", "--jobs", "two"], "'two' is not a number of at least 1"),
        (["execute", "-D", "name"], "'name' is not NAME=VALUE"),
        (["build", "--only", "one"], "unrecognized arguments: --only one"),
    ],
)
def test_what_is_not_understood(capsys, arguments, said):
    with pytest.raises(SystemExit) as ended:
        parsed(*arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_settings_are_of_folders_that_are_named_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "conf.py").write_text("executed_book_figures = 'svg'")
    options = parsed(
        *("execute", "--cache", "kept", "--jobs", "3", "--only", "a"),
        *("-D", "nb_execution_in_temp=1"),
    )
    settings = line._settings(options)
    assert settings.source == tmp_path / "docs"
    assert settings.cache == tmp_path / "kept"
    assert (settings.jobs, settings.only) == (3, {"a"})
    assert (settings.figures, settings.folder) == ("svg", "empty")


@pytest.fixture
def running(monkeypatch):
    def run(does, **more):
        command = lambda options, progress: does(), ""
        monkeypatch.setitem(line._COMMANDS, "execute", command)
        return main(["execute"], **more)

    return run


def test_a_signal_where_python_drops_what_is_raised(running, capsys):
    """As in a callback of a weak reference, of which importing has many."""

    class Interrupted:
        def __del__(self):
            signal.raise_signal(signal.SIGTERM)

    def does():
        Interrupted()
        time.sleep(5)
        pytest.fail("it went on")

    assert running(does) == 128 + signal.SIGTERM
    assert capsys.readouterr().err == "\nstopped\n"


def test_what_else_python_drops_is_told_as_always(running, capsys):
    class Failing:
        def __del__(self):
            raise ValueError("odd")

    assert running(lambda: Failing() and None) == 0
    assert "ValueError: odd" in capsys.readouterr().err


def test_an_interrupt_by_python_itself_and_a_mistake_of_ours(running, capsys):
    def interrupted():
        raise KeyboardInterrupt

    assert running(interrupted) == 130
    assert running(lambda: 1 / 0) == 1
    *_, error, _, last = capsys.readouterr().err.strip().splitlines()
    assert error == "ZeroDivisionError: division by zero"
    assert last.startswith("the builder itself failed: nothing was published")
