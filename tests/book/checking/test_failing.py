"""Which assertions can fail, and which hold whatever the libraries do."""

from __future__ import annotations

import pytest

from executed_book.checking.failing import assertions


@pytest.mark.parametrize(
    "code",
    [
        "assert True",
        "assert 1 + 1 == 2",
        "assert 'label'",
        "assert (squares.sum() == 3, 'a message')",
        "label = 'odd'; assert label == 'odd'",
        "sizes = [1, 2]; assert len(sizes) == 2 and sizes[0] < sizes[1]",
        "assert squares.sum() == 7 or True",
        "assert squares is squares",
        "assert len(squares) >= 0",
        "import time; t = time.time(); s = time.time() - t; assert s > 0",
        "import math; assert math.sqrt(4) == 2",
        "for name in ['a', 'b']: assert name",
        "assert all(n > 0 for n in (1, 2))",
    ],
)
def test_an_assertion_that_holds_whatever_happens(code):
    (found,) = assertions(["import numpy as np\nsquares = np.arange(3) ** 2", code])[1:]
    assert [assertion.can_fail for assertion in found] == [False]


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


@pytest.mark.parametrize(
    "code",
    [
        "assert squares.sum() == 5",
        "last = squares[-1]; assert last == 4",
        "assert len(squares) == 3",
        "assert [int(s) for s in squares] == [0, 1, 4]",
        "calls = []\nnp.vectorize(lambda x: calls.append(x))(squares)\nassert calls",
        "calls = []\ndef f(x): calls.append(x)\nnp.vectorize(f)(squares)\nassert calls",
        TRY + "else:\n    assert False",
        TRY + "assert said",
        LOOP,
        PRINTED,
        "names = {'s': squares}\nexec('x = s', names)\nassert names['x'][0]",
        "np.testing.assert_array_equal(squares, [0, 1, 4])",
        "def double(x): return 2 * x\nassert double(2) == 4",
        "def check(x): assert x > 0\ncheck(squares[1])",
        "sums = {}\nsums['all'] = squares.sum()\nassert sums == {'all': 5}",
        "!true\nassert squares.sum() == 5",
    ],
)
def test_an_assertion_that_can_fail(code):
    (found,) = assertions(["import numpy as np\nsquares = np.arange(3) ** 2", code])[1:]
    assert [assertion.can_fail for assertion in found] == [True]
