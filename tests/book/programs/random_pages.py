"""Random pages: valid statements, each drawn from a table, that share a few objects.

The tables hold what programs get wrong: aliases, closures, state in objects and in
libraries, effects in calls, in loops and in what fails.
"""

import random
import re
from pathlib import Path

from executed_book.model import Cell

IMPORTS = """\
import contextlib
import functools
import itertools
import pathlib
import jax
import jax.numpy as jnp
import numpy as np
np.random.seed(0)
count, items, more, table = 0, [1, 2], [3], {"a": [0], "b": [5]}"""


def read_tables() -> dict[str, list[str]]:
    """The statements of `statements.txt`, one a line, by the line `## NAME` above them.

    For each kind of object there are those that make one under the name `{new}`; those
    that change something, or only look as if they did; what a cell shows at its end;
    and what fails. In `{list}` stands the name of an object of that kind, in `{same}`
    the one before it; `{n}` is a small number. No statement leaves a list empty: any
    other may read its first element.
    """
    text = Path(__file__).with_name("statements.txt").read_text("utf-8")
    parts = re.split(r"(?m)^## (.+)\n", text)[1:]
    return {
        name: [line.replace("\\n", "\n") for line in lines.splitlines()]
        for name, lines in zip(parts[::2], parts[1::2], strict=True)
    }


MAKING = read_tables()
CHANGING, SHOWING, FAILING = map(MAKING.pop, ("changing", "showing", "failing"))


class Page:
    """One page in the making: the names that it has bound, by kind."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = {"int": ["count"], "list": ["items", "more"], "dict": ["table"]}
        self.made = 0

    def cells(self) -> list[Cell]:
        """Its cells: the imports, one object of each kind, and five to eight more."""
        order = ["call", "counter", "iterator", "object", "array", "generator"]
        order += ["jitted", "jax", "adder"]
        made = [(IMPORTS, None), *((self._make(kind), None) for kind in order)]
        made += [self._cell() for _ in range(self.random.randint(5, 8))]
        return [
            Cell(n, c, 10 * n, raises=error) for n, (c, error) in enumerate(made, 1)
        ]

    def _cell(self) -> tuple[str, str | None]:
        if self.random.random() < 0.08:
            code = self._filled(self.random.choice(FAILING))
            return code, "ZeroDivisionError: division by zero"
        parts = [self._statement() for _ in range(self.random.randint(0, 3))]
        return "\n".join([*parts, self._filled(self._pick(SHOWING))]), None

    def _statement(self) -> str:
        if self.random.random() < 0.5:
            return self._make(self._pick(list(MAKING)))
        return self._filled(self._pick(CHANGING))

    def _pick(self, options: list[str]) -> str:
        return self.random.choice(options)

    def _make(self, kind: str) -> str:
        known = self.names.setdefault(kind, [])
        options = [t for t in MAKING[kind] if known or f"{{{kind}}}" not in t]
        options = [t for t in options if self._can(t)]
        template = self._pick(options)
        # A name for a second time, unless what is made refers to itself by it.
        again = known and self.random.random() < 0.3 and f"{{{kind}}}" not in template
        if again and kind not in ("call", "jitted", "counter"):
            return self._filled(template, new=self._pick(known))
        self.made += 1
        new = f"{kind[0]}{self.made}"
        text = self._filled(template, new=new)
        known.append(new)
        return text

    def _can(self, template: str) -> bool:
        return all(self.names.get(k) for k in self._kinds(template))

    def _kinds(self, template: str) -> list[str]:
        words = (match[1] for match in _HOLE.finditer(template))
        return [w for w in words if w and w not in ("n", "new", "same")]

    def _filled(self, template: str, new: str = "") -> str:
        drawn = new

        def fill(match: re.Match[str]) -> str:
            nonlocal drawn
            word = match[1]
            if word is None:
                return match[0][0]
            if word == "n":
                return str(self.random.randint(1, 6))
            if word == "new":
                return new
            if word != "same":
                drawn = self._pick(self.names[word])
            return drawn

        return _HOLE.sub(fill, template)


#: What stands in for a name or a number in the tables; doubled braces stand for one.
_HOLE = re.compile(r"\{\{|\}\}|\{(\w+)\}")
