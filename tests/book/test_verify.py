"""What readers take away is run, and what it showed is kept."""

import functools
import io
import os
import time
from dataclasses import replace

import pytest

from executed_book.checking.descriptions import describe, described, split_descriptions
from executed_book.programs import snippets
from executed_book.programs.cells import SourceCell
from executed_book.programs.slicing import Page
from executed_book.programs.snippets import Snippets, lengthened, snippets_of
from executed_book.programs.text import Programs
from executed_book.programs.verdicts import (
    DIFFERS,
    HELD,
    NEEDS_FILES,
    Promise,
    Verdict,
    Verdicts,
)
from executed_book.programs.verify import (
    Offer,
    count,
    settled,
    unverified,
    verify_offers,
)
from executed_book.running.programs import Ran
from executed_book.running.progress import Progress
from executed_book.running.store import Store

from .made import chapter, executed, gave, printed

pytestmark = pytest.mark.usefixtures("ready_workers")


def ran(stdout="", raised=None, status=0):
    return Ran(stdout, "", raised, status)


@pytest.fixture
def opened(tmp_path):
    return lambda jax="0.12.0": Verdicts(tmp_path / "page.txt", jax)


#: What timing magics print, which is not asked of a program.
TIMINGS = (
    "CPU times: user 3 μs, sys: 1 μs, total: 4 μs\nWall time: 5.72 μs\n",
    "1.27 μs ± 0 ns per loop (mean ± std. dev. of 1 run, 1 loop each)\n",
)


@pytest.mark.parametrize(
    ("promise", "did", "words"),
    [
        (Promise("", gives="1.00001"), ran("1.00002\n"), None),
        (Promise("", gives="<A at 0x7f5a5da3>"), ran("<A at 0x7f5a5db4>\n"), None),
        *((Promise("", gives=f"1\n{t}2"), ran("1\n2\n"), None) for t in TIMINGS),
        *((Promise("", gives=f"1\n{t}3"), ran("1\n2\n"), "got") for t in TIMINGS),
        (Promise("", gives="1"), ran("2\n"), "got"),
        (Promise("", gives="1"), ran("", "NameError: x", 1), "NameError: x"),
        (Promise("", gives=None), ran("anything\n"), None),
        (Promise("", gives=None), ran(status=-9), "status -9"),
        (Promise("", raises="ValueError: odd"), ran("", "ValueError: so odd", 1), None),
        (
            Promise("", raises="ValueError: a"),
            ran("", "TypeError: a", 1),
            "should raise",
        ),
        (Promise("", raises="ValueError"), ran("fine\n"), "should raise"),
    ],
)
def test_what_a_program_does_is_held_against_its_page(promise, did, words):
    problem = promise.problem(did)
    assert words in problem if words else problem is None


def test_a_verdict_is_kept_until_something_changes(opened):
    promise = Promise("# here\nprint(1.5)", gives="1.5")
    opened().note(promise, "cell 1", Verdict(HELD, ((1, 2), (3, 4)), "0" * 16, "why"))
    assert opened().find(promise) == Verdict(HELD, ((1, 2), (3, 4)), "0" * 16, "why")
    # The address is in a comment, and digits differ from machine to machine.
    assert opened().find(Promise("# there\nprint(1.5)", gives="1.4999"))
    assert not opened().find(Promise("# here\nprint(2.5)", gives="1.5"))
    one, other = (Promise("x", f"<A at 0x7f5a5d{end}>") for end in ("a3", "b4"))
    assert one.key == other.key, "the page was executed anew"
    assert not opened().find(Promise("# here\nprint(1.5)", gives="[1.5]"))
    assert not opened("0.13.0").find(promise)
    opened().keep_only([])
    assert not opened().find(promise)


def page_offer(verdicts, codes, gives, **more):
    """The program of a page's last cell, on which the slicer has lost its way."""
    shown = ("x", "id(x)", "\n2")
    cells = [SourceCell(code, displays=code.endswith(shown)) for code in codes]
    programs = Programs(Page(cells), "# here")
    short = programs.of(len(codes) - 1)
    page = chapter(*codes, path=verdicts.path.with_name("page.md"))
    about = page, page.cells[-1], Promise(short, gives)
    k = len(codes) - 1
    lengthen = functools.partial(programs.of, k)
    above = functools.partial(programs.others_above, k)
    return Offer(*about, verdicts, lengthen, above, **more)


def verified(offer):
    verify_offers([offer], 1, Progress())
    return offer


#: What no syntax tells: `b` depends on `a`.
HIDDEN = ["x = 1", "import sys\nsetattr(sys, 'a', x)", "y = 2", "print(sys.a)"]


def test_what_fails_is_lengthened_by_the_nearest_statements(opened):
    offer = page_offer(opened(), HIDDEN, "1")
    short = offer.promise.text
    assert "setattr" not in short
    verify_offers([offer], 1, Progress())
    assert offer.verdict == Verdict(HELD, ((2, 2), (3, 1)), offer.verdict.text)
    program = offer.lengthen(offer.verdict.added)
    assert "setattr" in program
    assert "x = 1" in program
    assert "import sys" in program
    assert offer.error is None
    assert "1 held, 0 ran and vary, 1 of these lengthened" in count([offer])
    # Where the added statement is another, the verdict is stale.
    codes = [HIDDEN[0], HIDDEN[1].replace("x)", "x + 0)"), *HIDDEN[2:]]
    changed = page_offer(opened(), codes, "1")
    assert changed.promise.key == offer.promise.key
    assert changed.verdict is None
    assert "cells 4" in str(next(unverified([changed])))


def test_what_a_program_spawns_does_not_describe_its_names(opened):
    # As `multiprocessing` does in a process that it has spawned.
    again = "    print(runpy.run_path(__file__, run_name='__mp_main__')['n'])"
    code = f"import runpy\n\nn = 2\nif __name__ == '__main__':\n{again}"
    offer = verified(page_offer(opened(), [code], "2", values={"n": describe(2)}))
    assert offer.verdict.word == HELD, offer.verdict


def test_a_program_that_holds_too_much_memory_is_ended_and_says_so(opened):
    grows = "import time\nheld = []\nwhile len(held) < 10**4:\n"
    grows += "    time.sleep(0.005)\n    held.append(b'x' * 10**7)"
    offer = page_offer(opened(), [grows], "")
    verify_offers([offer], 1, Progress(), memory=1e9)
    assert offer.verdict.word == DIFFERS
    assert "stopped with over 1 GB of memory" in str(offer.error)


def test_a_program_says_which_files_belong_beside_it(opened, tmp_path):
    """They were there when the page ran; what its run has made is not among them."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("some data")
    codes = ["import os", "print(open(os.path.join('data', 'a.txt'), 'r+').read())"]
    offer = page_offer(opened(), codes, "some data")
    late = replace(offer, began=time.time() + 60)
    for one, is_good in ((replace(offer, began=0.0), False), (late, True)):
        one = replace(one, verdicts=opened(str(is_good)))
        verify_offers([one], 1, Progress())
        assert (one.verdict.word, one.verdict.is_good) == (NEEDS_FILES, is_good)
        program = settled(Snippets([None, one.promise.text]), [one]).programs[1]
        beside = "# here\n# Needs beside it, from the page's folder: data/a.txt\n"
        assert (program is not None) == is_good
        assert program is None or program.startswith(beside)
    wrong = replace(late, promise=replace(late.promise, gives="other data"))
    verify_offers([wrong], 1, Progress())
    assert not wrong.verdict.is_good


def test_a_page_is_sliced_once(tmp_path, monkeypatch):
    store = Store(tmp_path, tmp_path)
    page = executed(chapter("a = 1", "b = 2", "print(a)"), gave(), gave(), gave())
    refused = executed(chapter("t = %timeit -o 1", "2"), gave(), gave(printed("2")))
    _, errors = snippets_of(refused, store)
    assert ["cannot be copied" in error.message for error in errors] == [True]
    assert snippets_of(page, store)[0].needs == [[], [], [1]]
    longer = lengthened(page, store, 3, [(2, 1)])
    assert "b = 2" in longer
    monkeypatch.setattr(snippets, "_sliced", None)
    assert list(map(str, snippets_of(refused, store)[1])) == list(map(str, errors))
    assert snippets_of(page, store)[0].needed(3) == {1}
    assert lengthened(page, store, 3, [(2, 1)]) == longer


def test_a_page_and_a_program_bind_the_same(opened):
    """A program whose cell shows nothing is held by what it binds."""
    codes = ["x = [1]", "import sys\nsetattr(sys, 'a', x)", "y = getattr(sys, 'a', 0)"]
    offer = verified(page_offer(opened(), codes, "", values={"y": "list 1"}))
    assert offer.verdict.added == ((2, 2),)
    unknown = verified(
        page_offer(opened(), ["y = iter([])"], "", values={"y": "?list_iterator"})
    )
    assert unknown.verdict.note == "not compared: y"


def test_what_no_program_binds_twice_is_not_compared(opened):
    """Also where statements above print what cannot be silenced."""
    noisy = "import os\nos.write(1, b'noise')"
    codes = [noisy, "import tempfile\nfolder = tempfile.mkdtemp()\nprint(1)"]
    offer = verified(page_offer(opened(), codes, "1", values={"folder": "'/tmp/a'"}))
    assert offer.verdict == Verdict(HELD, note="not compared: folder")
    hidden = "import sys\nsetattr(sys, 'n', 2)"
    codes = [noisy, hidden, "n = getattr(sys, 'n', 1)\nprint(1)"]
    offer = verified(page_offer(opened(), codes, "1", values={"n": "2"}))
    assert offer.verdict.word == DIFFERS


def test_only_what_waits_is_run(opened, tmp_path):
    trace = tmp_path / "trace"
    code = f"_ = open({str(trace)!r}, 'a').write('x')\nprint(1)"
    offer = page_offer(opened(), [code], "1")
    verify_offers([offer], 2, Progress())
    verify_offers([replace(offer, verdicts=opened())], 2, Progress())
    assert trace.read_text() == "x"


def test_what_fails_is_looked_into_one_by_one_aloud_and_kept(opened, monkeypatch):
    """Each takes a while: the log says which one, and an interrupt loses no other."""
    verdicts, log = opened(), io.StringIO()
    offers = [page_offer(verdicts, ["x = 1", f"print({n})"], "9") for n in (1, 2, 3)]
    progress = Progress(log)

    def note(text):
        if text.startswith("  3/3 one"):
            raise KeyboardInterrupt
        print(text, file=log)

    monkeypatch.setattr(progress, "note", note)
    with pytest.raises(KeyboardInterrupt):
        verify_offers(offers, 1, progress)
    said = [line for line in log.getvalue().splitlines() if "looking" in line]
    words = "one, cell 2: looking for what it needs"
    assert said == [f"  1/3 {words}", f"  2/3 {words}"]
    kept = [opened().find(offer.promise) for offer in offers]
    assert [verdict and verdict.word for verdict in kept] == [DIFFERS, DIFFERS, None]


FOUND = {
    "held": "print(6 * 7)",
    "varies": "import time\nprint(time.time() % 1)",
    "forked": "x = object()\nid(x)",  # all that are forked from one give the same
    "beside": "print(open('data.txt').read())",
    "unnamed": "print(open('data' + '.txt').read())",
    "differs": "import os\nprint(os.path.basename(os.getcwd()) == 'docs')",
    "raises": "import os, time\nprint(time.time())\nassert 'docs' in os.getcwd()",
}


def test_verify_says_what_was_found_and_ends_by_it(book):
    """Also when nothing is left to run: only what differs is an error."""
    book.configure("nb_execution_in_temp, executed_book_rules = False, []")
    data = book.root / "docs" / "data.txt"
    data.write_text("some data")
    os.utime(data, (0, 0))  # not written by the page, whose start is known to a second
    for name, cell in FOUND.items():
        book.chapter(name, cell)
    good = "1 held, 2 ran and vary, 0 of these lengthened, 2 need files (1 hold"
    wrong = ("differs.md:9: cell 1", "raises.md:9: cell 1")
    for _ in range(2):
        said = book.refused("verify")
        assert f"7 programs: {good} beside them), 2 failed" in said
        for place in wrong:
            assert f"{place} has a program that does not give what the page" in said
        assert said.count(".md:") == 2
    book.index(*FOUND)
    book.built()
    for name, why in {
        "unnamed": "lacks the files",
        "differs": "something else",
    }.items():
        assert why in book.html(name).partition('<p class="no-program">No program: ')[2]
    assert "No program: " not in book.html("held")
    for name in ("differs", "raises"):
        (book.root / "docs" / f"{name}.md").unlink()
    assert f"5 programs: {good} beside them), 0 failed" in book.done("verify")


def test_values_are_told_apart():
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import sparse

    values = [1, 1.5, "a", [1], (1,), {"a": 1}, np.arange(3), np.arange(3) / 3]
    values += [np.array([0, 2, 1]), np.zeros(3), jnp.zeros(3), jnp.zeros(2), print]
    texts = [describe(value) for value in values]
    assert len(set(texts)) == len(texts)
    assert describe(np.float32(1)) == describe(jnp.float32(1))
    assert describe(iter([])).startswith("?")
    entries = sparse.BCOO.fromdense(np.eye(2000)[:3])  # one by one this takes a minute
    assert describe(entries).startswith("BCOO float32[3]")
    marked = "shown\n\x1e" + described({"a": 1}, ["a", "b"]) + "\nafter\n"
    assert split_descriptions(marked) == ("shown\nafter\n", {"a": "1"})


def test_what_was_run_before_an_interrupt_is_kept(opened, monkeypatch):
    verdicts = opened()
    first = page_offer(verdicts, ["print(1)"], "1")
    second = page_offer(verdicts, ["print(2)"], "2")

    def interrupt(text):
        raise KeyboardInterrupt

    progress = Progress()
    monkeypatch.setattr(progress, "note", interrupt)
    with pytest.raises(KeyboardInterrupt):
        verify_offers([first, second], 1, progress)  # the last step is said aloud
    assert opened().find(first.promise)
