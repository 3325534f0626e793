"""What readers take away is run, and what it showed is kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from executed_book.programs.verdicts import Promise, Verdicts
from executed_book.programs.verify import Offer, verify
from executed_book.running.programs import Ran
from executed_book.running.progress import Progress
from executed_book.running.store import Store


def ran(stdout: str = "", raised: str | None = None, status: int = 0) -> Ran:
    return Ran(stdout, "", raised, status, timed_out=False, seconds=0.1)


@pytest.fixture
def opened(tmp_path: Path):
    """The verdicts on one chapter, read anew each time."""

    def open_verdicts(environment: str = "here") -> Verdicts:
        store = Store(tmp_path / "verdicts", tmp_path)
        (tmp_path / "module.py").touch()
        depends = {"distributions": {}, "files": {"module.py": EMPTY}}
        return Verdicts(store, "page", environment, depends)

    return open_verdicts


PLACE = (Path("page.md"), 7, "the program of cell 1")

#: The digest of a file with nothing in it.
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.parametrize(
    ("promise", "did", "words"),
    [
        (Promise("", gives="1"), ran("1\n"), None),
        (Promise("", gives="1.00001"), ran("1.00002\n"), None),
        (Promise("", gives="1"), ran("2\n"), "got"),
        (Promise("", gives="1"), ran("", "NameError: x", 1), "NameError: x"),
        (Promise("", gives=None), ran("anything\n"), None),
        (Promise("", gives=None), ran(status=-9), "status -9"),
        (Promise("", raises="ValueError: odd"), ran("", "ValueError: so odd", 1), None),
        (
            Promise("", raises="ValueError: odd"),
            ran("", "TypeError: odd", 1),
            "was to raise",
        ),
        (Promise("", raises="ValueError"), ran("fine\n"), "was to raise"),
        (Promise("", unsolved=True), ran("", "AssertionError", 1), None),
        (Promise("", unsolved=True), ran("done\n"), "before it is solved"),
        (Promise("", unsolved=True), ran("", "NameError: x", 1), "lacks a name"),
    ],
)
def test_what_a_program_does_is_held_against_its_page(
    promise: Promise, did: Ran, words: str | None
):
    problem = promise.problem(did)
    if words is None:
        assert problem is None
    else:
        assert problem is not None
        assert words in problem


def test_a_verdict_is_kept_until_something_changes(opened, tmp_path: Path):
    promise = Promise("# here\nprint(1)", gives="1")
    opened().note(promise, None)
    assert opened().has(promise)
    assert opened().problem(promise) is None
    assert opened().has(Promise("# another address\nprint(1)", gives="1"))
    assert not opened().has(Promise("# here\nprint(2)", gives="1"))
    assert not opened().has(Promise("# here\nprint(1)", gives="2"))
    assert not opened("elsewhere").has(promise)
    (tmp_path / "module.py").write_text("changed = True\n")
    verdicts = Verdicts(
        Store(tmp_path / "verdicts", tmp_path), "page", "here", {"files": {}}
    )
    assert not verdicts.has(promise)


def test_only_what_waits_is_run_and_what_fails_is_replaced(opened, tmp_path: Path):
    trace = tmp_path / "trace"

    def noting(text: str) -> str:
        return f"open({str(trace)!r}, 'a').write('x')\n{text}"

    verdicts = opened()
    whole = noting("print(3)")
    offers = [
        Offer(*PLACE, Promise(noting("print(1)"), "1"), verdicts),
        Offer(*PLACE, Promise(noting("print(x)"), "2"), verdicts),
        Offer(
            *PLACE,
            *(Promise(noting("print(x)"), "3"), verdicts, 2),
            instead=lambda: whole,
        ),
    ]
    verify(offers, 2, Progress())
    # One holds; two fail with others and alone; one of these has a stand-in.
    assert trace.read_text() == "x" * (1 + 2 + 2 + 1)
    again = opened()
    problems = [again.problem(offer.promise) for offer in offers]
    assert problems[0] is None
    assert "NameError: name 'x' is not defined" in (problems[1] or "")
    assert again.instead(offers[1].promise) is None
    assert offers[2].stands_in == whole
    assert [offer.error is None for offer in offers] == [True, False, True]
    assert again.instead(offers[2].promise) == whole
    verify([replace(o, verdicts=again) for o in offers], 2, Progress())
    assert len(trace.read_text()) == 6


def test_what_was_run_before_an_interrupt_is_kept(opened, monkeypatch):
    verdicts = opened()
    first = Offer(*PLACE, Promise("print(1)", "1"), verdicts)
    second = Offer(*PLACE, Promise("print(2)", "2"), verdicts)

    def interrupt(text: str) -> None:
        raise KeyboardInterrupt

    progress = Progress()
    monkeypatch.setattr(progress, "_say", interrupt)
    with pytest.raises(KeyboardInterrupt):
        verify([first, second], 1, progress)  # the last step is said aloud
    assert opened().has(first.promise)
