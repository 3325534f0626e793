"""Which statements a cell needs: one small page for each rule."""

import pytest

from executed_book.programs.cells import SourceCell, parse
from executed_book.programs.slicing import NoFaithfulProgram, Page
from executed_book.programs.text import Programs


def cells(*codes):
    return [c if isinstance(c, SourceCell) else SourceCell(c) for c in codes]


def kept(*codes):
    page = cells(*codes)
    text = Programs(Page(page), "# header").of(len(page) - 1)
    return [line for line in text.splitlines()[1:] if line.strip()]


COUNTER = """\
def counter():
    n = 0
    def up():
        nonlocal n
        n += 1
        return n
    return up"""

#: Small pages, and the lines that the program of the last cell does without.
LEFT_OUT = {
    "statements and not cells": (["a = 1\nb = 2\nc = 3", "print(a + c)"], ["b = 2"]),
    "names that a star may have bound": (
        ["from math import *", "a = 1", "from numpy import *", "print(sum([pi]))"],
        ["a = 1"],
    ),
    "an indexed update is no change": (
        ["import jax.numpy as jnp", "x = jnp.ones(2)", "x.at[0].add(1)", "print(x)"],
        ["x.at[0].add(1)"],
    ),
    "loops with a variable of the same name": (
        ["for i in range(3):\n    a = i", "for i in range(4):\n    b = i", "print(b)"],
        ["for i in range(3):", "    a = i"],
    ),
    "a function that sets a global": (
        ["n = 0", "def up():\n    global n\n    n += 1", "m = 7", "up()", "print(n)"],
        ["m = 7"],
    ),
    "a closure that counts": (
        [COUNTER, "up = counter()", "a = up()", "print(up())"],
        [],
    ),
    "an object that counts": (
        [
            "class C:\n    n = 0\n    def up(self):\n        self.n += 1",
            *("c = C()", "d = C()", "c.up()", "d.up()", "print(c.n)"),
        ],
        ["d = C()", "d.up()"],
    ),
    "NumPy's global random state": (
        [
            "import numpy as np\nnp.random.seed(0)",
            *("a = np.random.rand()", "rng = np.random.default_rng(0)"),
            "print(np.random.rand())",
        ],
        ["rng = np.random.default_rng(0)"],
    ),
    "keep-tagged cells": (
        [SourceCell("a = {}\na[0] = 1", frozenset({"keep"})), "print(1)"],
        [],
    ),
    "a cell announced to raise": (
        ["x = [1]", SourceCell("x[0] = 2\nx[3]", raises="IndexError: a"), "print(2)"],
        ["x = [1]", "x[0] = 2", "x[3]"],
    ),
    "a list filled while tracing": (
        [
            *("import jax\nlog = []", "def f(x):\n    log.append(x)\n    return x"),
            *("g = jax.jit(f)", "y = g(1.0)", "z = y + 1", "print(len(log))"),
        ],
        ["z = y + 1"],
    ),
    "a registered class": (
        ["import jax\nclass C:\n    pass", "jax.tree_util.register_static(C)", "C()"],
        [],
    ),
    "comments": (
        ["# two\n# lines\nx = 1  # one\n\n# about y\ny = 2", "# all\nprint(x)\n# end"],
        ["# about y", "y = 2"],
    ),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_leaves_out_what_the_cell_does_not_need(name):
    codes, left_out = LEFT_OUT[name]
    lines = "\n".join(cell.code for cell in cells(*codes)).splitlines()
    assert kept(*codes) == [line for line in lines if line and line not in left_out]


#: Small pages, and the program of the last cell, in which lines are others.
WRITTEN = {
    "a reference that a mapped function writes": (
        [
            *("import jax", "def write(x, r):\n    r[...] = x"),
            *("r = jax.new_ref(1)", "jax.vmap(write)(1, r)", "r[0]"),
        ],
        (
            "import jax\ndef write(x, r):\n    r[...] = x\n"
            "r = jax.new_ref(1)\n_ = jax.vmap(write)(1, r)\nr[0]"
        ),
    ),
    "a generator that is drawn from": (
        ["def f():\n    yield 1", "g = f()", "next(g)", "n = 1", "print(next(g))"],
        "def f():\n    yield 1\ng = f()\n_ = next(g)\nprint(next(g))",
    ),
    "statements that share a line": (["a = 1; b = 2", "print(b)"], "b = 2\nprint(b)"),
    "wrapped functions that hold each other": (
        [
            "import jax\nf = jax.jit(int)\ng = jax.jit(f)",
            *("f.send(g)", SourceCell("g()", displays=True)),
        ],
        "import jax\nf = jax.jit(int)\ng = jax.jit(f)\n_ = f.send(g)\nprint(repr(g()))",
    ),
    "a method of an object that is not known": (
        ["from somewhere import make\nm = make()", "m.start(1)", "print(m)"],
        "from somewhere import make\nm = make()\n_ = m.start(1)\nprint(m)",
    ),
    "settings are always kept": (
        [
            "import jax as j\nj.config.update()",
            "import numpy as n\nn.seterr()",
            "abs(1)",
        ],
        "import jax as j\nimport numpy as n\nj.config.update()\nn.seterr()\nabs(1)",
    ),
    "an import twice": (
        ["import math", "x = math.pi", "import math\nprint(math.e * x)"],
        "import math\nx = math.pi\nprint(math.e * x)",
    ),
    "from the future": (
        ["import math", "from __future__ import annotations\nprint(math)"],
        "from __future__ import annotations\nimport math\nprint(math)",
    ),
    "what a clock times": (
        [
            "from time import time\nt = time()\nx = 1\ntook = time() - t",
            "t = time()\ny = 2\nend = time()\nz = 3",
            "print(end - t)",
        ],
        "from time import time\nt = time()\ny = 2\nend = time()\nprint(end - t)",
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_writes_what_the_cell_needs(name):
    codes, program = WRITTEN[name]
    assert kept(*codes) == program.splitlines()


# Pages about tracing: what is traced runs; what a cache holds, the cell says.


def test_a_function_that_is_wrapped_and_called_at_once():
    codes = [
        "import jax\nlog = []",
        "def f(x):\n    log.append(k)\n    return x",
        "k = 1",
        "y = jax.jit(f)(1.0)",
        "print(log)",
    ]
    assert "y = jax.jit(f)(1.0)" in kept(*codes)
    assert "k = 1" in kept(*codes[:4])
    assert "k = 1" in kept(*codes[:3], "t = jax.jit(f).trace(1.0)")


def test_earlier_calls_are_kept_where_a_cell_says_so():
    codes = ["import jax", "@jax.jit\ndef f(x):\n    print(1)\n    return x", "f(1.0)"]
    assert "f(1.0)" not in "\n".join(kept(*codes, "f(2.0)"))
    page = kept(*codes, SourceCell("f(2.0)", needs=("f",), displays=True))
    assert page[-3].startswith("with contextlib.redirect_stdout")
    assert page[-2:] == ["    f(1.0)", "print(repr(f(2.0)))"]


def test_a_trainings_loop_does_not_print():
    page = kept(
        "w = 0", "for step in range(3):\n    w = w + step\n\n    print(w)", "print(w)"
    )
    assert page[-4:] == [
        "    for step in range(3):",
        "        w = w + step",
        "        print(w)",
        "print(w)",
    ]


# No program: the reason and where it stands.

REFUSED = {
    "a name from nowhere": (["x = 1", "print(y)"], 1, 1, "`y` is not defined"),
    "display": (["x = 1", "display(x)"], 1, 1, "only in IPython"),
    "a magic's value": (["x = 1\nt = %timeit -o x", "print(x)"], 1, 1, "`x` is not"),
    "a cell that awaits": (
        ["async def f():\n    return 1\nx = await f()"],
        *(0, 3, "'await' outside function"),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name):
    codes, at, line, why = REFUSED[name]
    page = cells(*codes)
    with pytest.raises(NoFaithfulProgram, match=why) as caught:
        Page(page).needed(len(page) - 1)
    assert (caught.value.at, caught.value.line) == (at, line)


def test_what_is_refused_elsewhere_does_not_concern_a_cell():
    assert kept("x = 1", "print(x)", "!ls", "print(x)") == ["x = 1", "print(x)"]


@pytest.mark.parametrize(
    ("code", "plain"),
    [
        ("%timeit -n 10 f(x)", ["f(x);"]),
        ('t = """\n%timeit f(x)\n"""', ['t = """', "%timeit f(x)", '"""']),
        ("%time y = f(x)", ["y = f(x)"]),
        ("%%time\ny = f(x)\ny", ["", "y = f(x)", "y"]),
        ("%%timeit -n1 x = 1\nf(x)", ["x = 1;", "f(x)"]),
        ("%matplotlib inline\nx = 1", ["", "x = 1"]),
        ("for x in xs:\n    %timeit f(x)", ["for x in xs:", "    f(x);"]),
        ("a = 'é'; b = 2; c = 3  # end", ["a = 'é'", "b = 2", "c = 3"]),
    ],
)
def test_magics_become_the_code_they_run(code, plain):
    assert list(parse(SourceCell(code)).lines) == plain


def test_a_decorator_of_the_pages_own_object_changes_it():
    cells = [
        SourceCell("import jax\n\n@jax.custom_jvp\ndef f(x):\n    return x * 2.0"),
        SourceCell("@f.defjvp\ndef rule(xs, ts):\n    return f(*xs), ts[0] * 7.0"),
        SourceCell("other = 1"),
        SourceCell("jax.grad(f)(1.0)"),
    ]
    text = Programs(Page(cells), "# here").of(3)
    assert "@f.defjvp" in text
    assert "other" not in text


# What an author says of a cell: `:needs:`.


def test_a_cell_says_what_it_needs():
    page = [
        SourceCell("a = 1"),
        SourceCell("b = 2\nassert b", label="b-is-two"),
        SourceCell("c = 3"),
    ]
    assert Page([*page, SourceCell("d = 4")]).needed(3) == []
    assert Page([*page, SourceCell("d = 4", needs=("a",))]).needed(3) == [0]
    assert Page([*page, SourceCell("d = 4", needs=("b-is-two",))]).needed(3) == [1, 2]
    needs = SourceCell("d = c", needs=("b-is-two", "a"))
    assert Page([*page, needs]).needed(3) == [0, 1, 2, 3]
