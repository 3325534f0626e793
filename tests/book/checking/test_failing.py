"""Which assertions can fail, and which hold whatever the libraries do."""

import pytest

from executed_book.checking.failing import Assertion, assertions

HOLD = (
    "assert 1 + 1 == 2",
    "assert (squares.sum() == 3, 'a message')",
    "sizes = [1, 2]; assert len(sizes) == 2 and sizes[0] < sizes[1]",
    "assert squares is squares",
    "assert len(squares) >= 0",
    "import math; assert math.sqrt(4) == 2",
    "for name in ['a', 'b']: assert name",
    "assert all(n > 0 for n in (1, 2))",
    "assert [squares[0] == 99]",
    "assert {'a': squares[0] == 99}",
    "assert (lambda: squares[0] == 99)",
    "assert (s == 99 for s in squares)",
    "try:\n    assert squares[0] == 99\nexcept AssertionError:\n    pass",
    "for s in squares:\n    try: assert s\n    except: continue",
    "import contextlib\nwith contextlib.suppress(Exception): assert squares[0] == 99",
)


TRY = "said = None\ntry:\n    squares[7]\nexcept IndexError:\n    said = 'it'\n"

LOOP = """
for bad in (7, 8):
    try:
        squares[bad]
    except IndexError:
        continue
    raise AssertionError("it took it")
"""

PRINTED = """
import io, contextlib
with contextlib.redirect_stdout(io.StringIO()) as out:
    print(squares)
assert out.getvalue()
"""


CAN_FAIL = (
    "last = squares[-1]; assert last == 4",
    "assert len(squares) == 3",
    "assert [int(s) for s in squares] == [0, 1, 4]",
    "calls = []\nnp.vectorize(lambda x: calls.append(x))(squares)\nassert calls",
    "calls = []\ndef f(x): calls.append(x)\nnp.vectorize(f)(squares)\nassert calls",
    TRY + "else:\n    assert False",
    "try:\n    assert squares[1]\nexcept AssertionError:\n    raise ValueError",
    "try:\n    assert squares[1]\nexcept IndexError:\n    pass",
    "import contextlib\nwith contextlib.suppress(KeyError): assert squares[1]",
    TRY + "assert said",
    LOOP,
    PRINTED,
    "names = {'s': squares}\nexec('x = s', names)\nassert names['x'][0]",
    "np.testing.assert_array_equal(squares, [0, 1, 4])",
    "def check(x): assert x > 0\ncheck(squares[1])",
    "sums = {}\nsums['all'] = squares.sum()\nassert sums == {'all': 5}",
    "!true\nassert squares.sum() == 5",
)


def test_an_assertion_is_told_by_its_line_and_first_line_of_code():
    source = "x = 1\n\nassert (\n    x == 1\n), 'message'"
    [[found]] = assertions([source])
    assert found == Assertion(3, False, "assert x == 1, 'message'")


def test_a_name_keeps_where_it_came_from_over_cells():
    cells = ["import jax\nx = 1", "x = jax.devices()", "assert x", "x = 2", "assert x"]
    found = [[a.can_fail for a in one] for one in assertions(cells)]
    assert found == [[], [], [True], [], [False]]


@pytest.mark.parametrize(
    ("code", "can_fail"),
    [
        *((code, False) for code in HOLD),
        *((code, True) for code in CAN_FAIL),
        ("x: list = [1]\nassert x", False),
        ("x = 1\nx += squares[0]\nassert x", True),
        ("a, *b = 1, squares\nassert b", True),
        ("with open('f') as f:\n    x = f.read()\nassert x", True),
        ("if (n := squares[0]):\n    pass\nassert n", True),
        ("x = (n := 3)\nassert n", False),
        ("class A:\n    pass\nassert A()", True),
        ("x = [1]\nx.append(squares)\nassert x", True),
        ("import time\nassert time.perf_counter() > squares[0]", True),
        ("assert squares[0] or True", False),
        ("assert True and squares[0]", True),
        ("assert ()", True),
        ("raise AssertionError('always')", False),
        ("if squares[0]:\n    raise AssertionError", True),
        ("def f():\n    global x\n    x = 2\nx = 1\nf()\nassert x", True),
        ("def f():\n    x.append(1)\nx = []\nf()\nassert x", True),
        ("def f(x):\n    x.append(1)\nx = 1\nassert x", False),
        ("x = {'a': 1}\ndef f():\n    x['a'] = 2\nassert x", True),
        ("async def f():\n    return 1\nassert await f() == 1", True),
        ("assert unknown_name", True),
    ],
)
def test_an_assertion_can_fail_or_holds_whatever_happens(code, can_fail):
    (found,) = assertions(["import numpy as np\nsquares = np.arange(3) ** 2", code])[1:]
    assert [assertion.can_fail for assertion in found] == [can_fail]
