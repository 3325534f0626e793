"""Random pages: valid statements, each drawn from a table, that share a few objects.

The tables hold what programs get wrong: aliases, closures, state in objects and in
libraries, effects in calls, in loops and in what fails.
"""

from __future__ import annotations

import random
import re

from executed_book.programs import SourceCell

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

COUNTER = """\
def make_{new}():
    k = {n}
    def up():
        nonlocal k
        k += 1
        return k
    return up
{new} = make_{new}()"""
CLASS = """\
class C{new}:
    made = 0
    def __init__(self, given):
        self.items = given
        C{new}.made += 1
    def add(self, x):
        self.items.append(x)
        return self
    def __repr__(self):
        return f'{{self.items}} {{self.made}}'
{new} = C{new}({list})"""

#: For each kind of object, statements that make one under the name `{new}`. In `{list}`
#: stands the name of an object of that kind, in `{same}` the one before it; `{n}` is a
#: small number. No statement leaves a list empty: any other may read its first element.
MAKING = {
    "int": [
        "{new} = {n}",
        "{new} = len({list}) + {int}",
        "{new} = {list}[0]",
        "{new} = {call}({n})",
        "{new} = {counter}()",
        "{new} = {list}.append({n}) or len({list})",
        "{new} = next({iterator}, {n})",
        "{new} = int({generator}.integers(100))",
        "{new} = int(np.random.randint(100))",
        "{new} = ({list}.append({n}), {n})[1]",
    ],
    "list": [
        "{new} = [{int}, {n}]",
        "{new} = {list}",
        "{new} = {list}[:]",
        "{new} = {dict}['a']",
        "{new} = {object}.items",
        "{new} = [*{iterator}, {n}]",
        "{new} = sorted({list})",
        "{new} = [q + {int} for q in {list}]",
        "{new} = [*{list}, {call}({n})]",
        "{new} = {object}.add({n}).items",
        "{new} = {list} or {list}",
    ],
    "dict": [
        "{new} = {{'a': {list}, 'b': {list}}}",
        "{new} = dict({dict})",
        "{new} = {{**{dict}, 'b': [{n}]}}",
        "{new} = {dict}",
    ],
    "call": [
        "def {new}(x):\n    {list}.append(x)\n    return len({list})",
        "def {new}(x, seen=[]):\n    seen.append(x)\n    return len(seen)",
        "def {new}(x):\n    print('in {new}', x)\n    return x + {int}",
        "{new} = lambda x: x + {int}",
        "def {new}(x):\n    return {call}(x) + {n}",
        "{new} = functools.partial(max, {n})",
        "@functools.cache\ndef {new}(x):\n    print(x)\n    return len({list})",
        "def {new}(x):\n    {dict}['a'].append(x)\n    return {dict}['a'][0]",
        "def {new}(x):\n    for q in {dict}.values():\n        q += [x]\n    return x",
    ],
    "counter": [
        COUNTER,
        "def {new}():\n    global count\n    count += 1\n    return count",
        "{new} = itertools.count({n}).__next__",
    ],
    "adder": ["{new} = {list}.append", "{new} = {object}.add", "{new} = {adder}"],
    "iterator": [
        "{new} = iter({list})",
        "{new} = (q for q in {list})",
        "{new} = map({call}, list({list}))",
        "{new} = {iterator}",
    ],
    "object": [CLASS, "{new} = type({object})({list})", "{new} = {object}"],
    "array": [
        "{new} = np.arange(4) + {n}",
        "{new} = {array}[:]",
        "{new} = {array}.copy()",
        "{new} = {array} + {int}",
        "{new} = np.asarray({array})",
        "{new} = {array}[::-1]",
    ],
    "generator": ["{new} = np.random.default_rng({n})", "{new} = {generator}"],
    "jax": [
        "{new} = jnp.arange(4) * {n}",
        "{new} = {jitted}({jax})",
        "{new} = {jax}.at[0].set({int})",
        "{new} = jnp.asarray({array})",
        "{new} = jax.vmap({jitted})({jax})",
    ],
    "jitted": [
        "@jax.jit\ndef {new}(x):\n    print('tracing {new}')\n    return x * {n}",
        "@jax.jit\ndef {new}(x):\n    {list}.append({n})\n    return x + {n}",
        "{new} = jax.jit(lambda x: x + {int})",
        "@jax.jit\ndef {new}(x):\n    return {jitted}(x) + 1",
    ],
}

#: Statements that change something, or only look as if they did.
CHANGING = [
    "{list}.append({n})",
    "{list}.extend([{int}])",
    "{list}[0] = {n}",
    "{list} += [{n}]",
    "{list}.pop() if len({same}) > 1 else None",
    "{list}.reverse()",
    "{dict}['a'].append({n})",
    "{dict}['b'] = {list}",
    "{dict}.setdefault('c', []).append({n})",
    "{dict}.update(b={list})",
    "{call}({n})",
    "{counter}()",
    "{adder}({n})",
    "{object}.add({n})",
    "{object}.items = [{n}]",
    "next({iterator}, None)",
    "{n} in {iterator}",
    "{array}[0] = {n}",
    "{array} += {n}",
    "np.add({array}, 1, out={array})",
    "np.random.shuffle({array})",
    "np.random.seed({n})",
    "{generator}.shuffle({array})",
    "{jitted}({jax})",
    "pathlib.Path('notes.txt').write_text(str({int}))",
    "for q in ({list}, {list}):\n    q.append({n})",
    "for k, q in {dict}.items():\n    q.append({n})",
    "for k in range(2):\n    {call}(k)",
    "if {int} > 2:\n    {list}.append({int})\nelse:\n    {list}.insert(0, {int})",
    "with contextlib.suppress(KeyError):\n    {list}.append({n})\n    {dict}['no']",
    "try:\n    {list}.append({n})\n    {dict}['no']\nexcept KeyError:\n    {int} = {n}",
    "q = {list}\nwhile len(q) < 4:\n    q.append({n})",
    "[{list}.append(q) for q in range(2)]",
    "any({call}(q) > 3 for q in range(2))",
    "{int} += 1",
    "if (w := {int}) > 1:\n    {list}.append(w)",
    "{list}.clear()\n{same}.append({n})",
    "setattr({object}, 'items', {list})",
    "print({list}, {int})",
    "assert {call}({n}) is not None",
]

#: What a cell shows at its end; the last of these fail.
SHOWING = [
    "{list}",
    "{dict}",
    "{object}",
    "{array}",
    "{jax}",
    "{int}",
    "{call}({n})",
    "{counter}()",
    "{jitted}({jax})",
    "next({iterator}, 'none')",
    "list({iterator})",
    "{generator}.integers(100)",
    "np.random.randint(100)",
    "print({list}, {dict})",
    "print({object}, {array})",
    "pathlib.Path('notes.txt').exists()",
    "{dict}['a'], {list}",
    "f'{{{list}}}' + str({int})",
    "{list}.append({n})",
    "{object}.add({n})",
]
FAILING = ["{list}.append({n})\n1 / 0", "{call}({n})\n1 / 0", "{int} = {n}\n1 / 0"]


class Page:
    """One page in the making: the names that it has bound, by kind."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = {"int": ["count"], "list": ["items", "more"], "dict": ["table"]}
        self.made = 0

    def cells(self) -> list[SourceCell]:
        """Its cells: the imports, one object of each kind, and five to eight more."""
        first = [SourceCell(IMPORTS)]
        kinds = [kind for kind in MAKING if kind not in self.names]
        order = ["call", "counter", "iterator", "object", "array", "generator"]
        order += ["jitted", "jax", "adder"]
        first += [SourceCell(self._make(k)) for k in order if k in kinds]
        return first + [self._cell() for _ in range(self.random.randint(5, 8))]

    def _cell(self) -> SourceCell:
        if self.random.random() < 0.08:
            code = self._filled(self.random.choice(FAILING))
            return SourceCell(code, raises="ZeroDivisionError: division by zero")
        parts = [self._statement() for _ in range(self.random.randint(0, 3))]
        return SourceCell("\n".join([*parts, self._filled(self._pick(SHOWING))]))

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
