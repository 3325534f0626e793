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

# Each page, and the lines of its last cell's program.
PAGES = {
    "statements and not cells": (
        ["a = 1\nb = 2\nc = 3", "print(a + c)"],
        ["a = 1", "c = 3", "print(a + c)"],
    ),
    "names that a star may have bound": (
        ["from math import *", "a = 1", "from numpy import *", "print(sum([pi]))"],
        ["from math import *", "from numpy import *", "print(sum([pi]))"],
    ),
    "statements that share a line": (
        ["a = 1; b = 2", "print(b)"],
        ["b = 2", "print(b)"],
    ),
    "a helper redefined before the call": (
        ["def g():\n    return 1", "def f():\n    return g()", "g = int", "print(f())"],
        ["def f():", "    return g()", "g = int", "print(f())"],
    ),
    "an indexed update is no change": (
        ["import jax.numpy as jnp", "x = jnp.ones(2)", "x.at[0].add(1)", "print(x)"],
        ["import jax.numpy as jnp", "x = jnp.ones(2)", "print(x)"],
    ),
    "wrapped functions that hold each other": (
        [
            "import jax",
            "f = jax.jit(lambda x: x)\ng = jax.jit(f)\nf.send(g)",
            SourceCell("g(1)", displays=True),
        ],
        [
            *("import jax", "f = jax.jit(lambda x: x)", "g = jax.jit(f)"),
            *("_ = f.send(g)", "print(repr(g(1)))"),
        ],
    ),
    "a bare print, value or assertion is dropped": (
        ["x = 1", "print(x)\nx\nassert x", "print(x)"],
        ["x = 1", "print(x)"],
    ),
    "loops with a variable of the same name": (
        ["for i in range(3):\n    a = i", "for i in range(4):\n    b = i", "print(b)"],
        ["for i in range(4):", "    b = i", "print(b)"],
    ),
    "a method of an object that is not known": (
        ["from somewhere import make", "m = make()", "m.start(1)", "print(m)"],
        ["from somewhere import make", "m = make()", "_ = m.start(1)", "print(m)"],
    ),
    "a function that sets a global": (
        ["n = 0", "def up():\n    global n\n    n += 1", "m = 7", "up()", "print(n)"],
        ["n = 0", "def up():", "    global n", "    n += 1", "up()", "print(n)"],
    ),
    "a closure that counts": (
        [COUNTER, "up = counter()", "a = up()", "print(up())"],
        [
            "def counter():",
            "    n = 0",
            "    def up():",
            "        nonlocal n",
            "        n += 1",
            "        return n",
            "    return up",
            "up = counter()",
            "a = up()",
            "print(up())",
        ],
    ),
    "an object that counts": (
        [
            "class C:\n    n = 0\n    def up(self):\n        self.n += 1",
            "c = C()",
            "d = C()",
            "c.up()",
            "d.up()",
            "print(c.n)",
        ],
        [
            "class C:",
            "    n = 0",
            "    def up(self):",
            "        self.n += 1",
            "c = C()",
            "c.up()",
            "print(c.n)",
        ],
    ),
    "a deleted name": (
        ["x = 1\ny = 2", "del x", "x = 3", "print(x)"],
        ["x = 3", "print(x)"],
    ),
    "NumPy's global random state": (
        [
            "import numpy as np\nnp.random.seed(0)",
            "a = np.random.rand()",
            "rng = np.random.default_rng(0)",
            "print(np.random.rand())",
        ],
        [
            "import numpy as np",
            "np.random.seed(0)",
            "a = np.random.rand()",
            "print(np.random.rand())",
        ],
    ),
    "settings are always kept": (
        [
            "import jax\njax.config.update('jax_enable_x64', True)",
            "import numpy as np\nnp.set_printoptions(precision=2)",
            "print(1)",
        ],
        [
            "import jax",
            "import numpy as np",
            "jax.config.update('jax_enable_x64', True)",
            "np.set_printoptions(precision=2)",
            "print(1)",
        ],
    ),
    "what is set before an import stays before it": (
        [
            "import os\nos.environ['XLA_FLAGS'] = ''\nimport jax",
            "import numpy as np",
            "print(jax, np)",
        ],
        [
            "import os",
            "os.environ['XLA_FLAGS'] = ''",
            "import jax",
            "import numpy as np",
            "print(jax, np)",
        ],
    ),
    "keep-tagged cells": (
        [SourceCell("a = {}\na[0] = 1", frozenset({"keep"})), "print(1)"],
        ["a = {}", "a[0] = 1", "print(1)"],
    ),
    "a cell announced to raise is left out": (
        [
            "x = [1]",
            SourceCell("x[0] = 2\nx[3] = 1", raises="IndexError: range"),
            "print(2)",
        ],
        ["print(2)"],
    ),
    "drawing stays in its own cell": (
        [
            "import matplotlib.pyplot as plt",
            "plt.plot([1, 2])\nplt.show()",
            "plt.plot([3])\nplt.show()",
        ],
        ["import matplotlib.pyplot as plt", "plt.plot([3])", "plt.show()"],
    ),
    "an import twice": (
        ["import math", "x = math.pi", "import math\nprint(math.e * x)"],
        ["import math", "x = math.pi", "print(math.e * x)"],
    ),
    "imports of one name": (
        ["from a import f\nx = f(1)", "from b import f", "x, f"],
        ["from a import f", "x = f(1)", "from b import f", "x, f"],
    ),
    "from the future": (
        ["import math", "from __future__ import annotations\nprint(math)"],
        ["from __future__ import annotations", "import math", "print(math)"],
    ),
    "what a clock times": (
        [
            "from time import time\nstart = time()\nx = 1\ntook = time() - start",
            "start = time()\ny = 2\nend = time()\nz = 3",
            "print(end - start)",
        ],
        [
            *("from time import time", "start = time()", "y = 2", "end = time()"),
            "print(end - start)",
        ],
    ),
    "what a clock times over cells": (
        [
            "import time\nt0 = time.perf_counter()\nx = 1",
            "y = 2",
            "print(time.perf_counter() - t0)",
        ],
        [
            *("import time", "t0 = time.perf_counter()", "x = 1", "y = 2"),
            "print(time.perf_counter() - t0)",
        ],
    ),
    "comments": (
        ["# two\n# lines\nx = 1  # one\n\n# about y\ny = 2", "# all\nprint(x)\n# end"],
        ["# two", "# lines", "x = 1  # one", "# all", "print(x)", "# end"],
    ),
}


@pytest.mark.parametrize("name", PAGES)
def test_keeps_what_the_cell_needs(name):
    codes, expected = PAGES[name]
    assert kept(*codes) == expected


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


def test_a_list_filled_while_tracing():
    codes = [
        "import jax\nlog = []",
        "def f(x):\n    log.append(x)\n    return x",
        "g = jax.jit(f)",
        "y = g(1.0)",
        "z = y + 1",
        "print(len(log))",
    ]
    page = kept(*codes)
    assert "y = g(1.0)" in page
    assert "z = y + 1" not in page


def test_a_registered_class():
    codes = [
        "import jax",
        "class C:\n    pass",
        "jax.tree_util.register_static(C)",
        "print(jax.tree.leaves(C()))",
    ]
    assert "jax.tree_util.register_static(C)" in "\n".join(kept(*codes))


def test_a_reference_that_a_mapped_function_writes():
    codes = [
        "import jax\nimport jax.numpy as jnp",
        "def write(x, ref):\n    ref[...] = x",
        "xs = jnp.arange(3.0)\nref = jax.new_ref(xs)",
        "jax.vmap(write)(xs, ref)",
        "print(ref[...])",
    ]
    assert "_ = jax.vmap(write)(xs, ref)" in kept(*codes)


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
    "the previous output": (["1 + 1", "print(_)"], 1, 1, "only in IPython"),
    "a shell command": (["x = 1", "!ls"], 1, 1, "not plain Python"),
    "a magic's value": (["x = 1\nt = %timeit -o x", "print(x)"], 1, 1, "`x` is not"),
    "a cell magic": (["%%bash\nls"], 0, 1, "not plain Python"),
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
