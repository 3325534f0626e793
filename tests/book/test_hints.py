"""The way out that an error names is one: each is followed, and the page builds."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from .conftest import FRONT, TinyBook
from .test_failures import FAULTS, problems

#: Messages that are hard to announce: as the code that raises them.
RAISED = {
    "quotes": "raise ValueError('say \"no\" and \\'yes\\'')",
    "backslash": r"raise ValueError('C:\\new \\t')",
    "wordless": "assert 1 == 2",
    "blank": "raise ValueError('')",
    "long": "raise ValueError('a rather long message, ' * 8)",
    "unicode": "raise ValueError('é ≤ 日本 \\u2028')",
    "yaml": "raise ValueError('[a, {b: c}] & *d !e %f @g')",
    "cell": "f(",
    "no-text": "class Bad(Exception):\n    def __str__(self): return 1\nraise Bad()",
}

WARNED = {
    "quotes": "import warnings\nwarnings.warn('say \"no\"')",
    "printed": "import sys\nprint('no warning at all', file=sys.stderr)",
    "logged": "import logging\nlogging.basicConfig()\nlogging.error('fire: %s', 1)",
    "below": "import os\n_ = os.write(2, b'from below: 3')",
}


def hints_of(book: TinyBook) -> dict[str, str]:
    """What an execution proposes for each page."""
    told = problems(book.refused("execute"))
    return {p.split(":")[0]: said.rpartition("→ ")[2] for p, said in told.items()}


def option(hint: str) -> str:
    return re.search(r"(:[\w-]+: .*?)(?:, or correct the cell)?$", hint, re.M)[1]


def test_a_proposed_announcement_holds(book):
    sources = {f"raised-{name}": source for name, source in RAISED.items()}
    sources |= {f"warned-{name}": source for name, source in WARNED.items()}
    for name, source in sources.items():
        book.chapter(name, source)
    found = hints_of(book)
    assert found.keys() == sources.keys()
    for name, source in sources.items():
        book.chapter(name, f"{option(found[name])}\n{source}")
    book.executed()


@dataclass(frozen=True)
class Way:
    """How the way out of a fault is followed: new cells and front matter from both."""

    words: str
    cells: Callable[[tuple[str, ...], str], list[str]] = lambda cells, _: [*cells]
    front: Callable[[str, str], str] = lambda front, _: front


def without(name: str) -> Callable[[tuple[str, ...], str], list[str]]:
    return lambda cells, _: [re.sub(rf"^:{name}:.*\n", "", cell) for cell in cells]


def proposed(cells: tuple[str, ...], said: str) -> list[str]:
    *others, last = cells
    last = re.sub(r"^:\w+:.*\n", "", last)
    return [*others, f"{option(said)}\n{last}"]


def quoted(front: str, said: str) -> str:
    """The front matter with the line that a hint shows in quotes."""
    return re.sub("executed_book.*", re.findall(r"'(\w+: \{.*?\})'", said)[0], front)


WAYS = {
    "raises": Way("if it is to fail, write", proposed),
    "silent": Way("drop :raises:", without("raises")),
    "other": Way("write :raises:", proposed),
    "wordless": Way("write :raises:", proposed),
    "noisy": Way("write :warns:", proposed),
    "quiet": Way("drop :warns:", without("warns")),
    "figure": Way("say what it shows", proposed),
    "described": Way("drop :alt:", without("alt")),
    "varies": Way(
        "assert what holds in every run",
        lambda cells, _: [f"{cells[0]}\nassert time.time() > 0"],
    ),
    "option": Way("did you mean 'tags'?", lambda *_: [":tags: [keep]\n1"]),
    "tag": Way("did you mean 'measured'?", lambda *_: [":tags: [measured]\nassert 1"]),
    "tags": Way("':tags: [measured, check]'", lambda *_: [":tags: [keep]\n1"]),
    "yaml": Way(
        "text in quotes", lambda *_: [':raises: "OSError: a"\nraise OSError("a")']
    ),
    "settings": Way("write 'executed_book", front=quoted),
    "plain": Way("add 'file_format: mystnb'", front=lambda *_: FRONT),
    "shell": Way("rewrite the line", lambda *_: ["print('hello')"]),
    "variables": Way("rewrite the line", lambda *_: ["x = 1\nprint(x)"]),
}


def test_all_ways_out_lead_out(book):
    for name in WAYS:
        book.chapter(name, *FAULTS[name].cells, front=FAULTS[name].front)
    told = hints_of(book)
    for name, way in WAYS.items():
        assert way.words in told[name]
        cells = way.cells(FAULTS[name].cells, told[name])
        book.chapter(name, *cells, front=way.front(FAULTS[name].front, told[name]))
    book.executed()
