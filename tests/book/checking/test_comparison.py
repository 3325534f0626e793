"""Two outputs are the same, or it is said where they differ."""

from __future__ import annotations

import pytest

from executed_book.checking.comparison import differences, same_output


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        ("a\nb\n", "a\nb"),
        ("x 1.0", "x 1.000001"),
        ("[ 0.1  -0.25]", "[ 0.1000001 -0.25]"),
        ("[0.1, nan]", "[0.1000001, nan]"),
        ("-1e-3", "-0.001"),
        ('  File "<ipython-input-3>", line 4, in f', '  File "/a/b.py", line 9, in f'),
        ("at <cell 3>:2:4 (f)", "at /tmp/program.py:12:4 (f)"),
        ("at <cell 3>:2", "at program.py:12"),
        ("Cell In[3], line 2", 'File "/a/b.py", line 9, in <module>'),
    ],
)
def test_outputs_that_are_the_same(expected, got):
    assert same_output(expected, got) is None


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        ("x 1.0", "x 1.001"),
        ("x 1", "x 2"),
        ("x 1.0", "y 1.0"),
        ("1.0 2.0", "1.0"),
        ("1.5", "nan"),
        ("inf", "1.0"),
        ("a", "a\nb"),
        ("a\nb", "b\na"),
        ("", "a"),
        ("a  b", "a b"),
        ("float32[3]", "float32[4]"),
        ("v0.12.0", "v0.12.1"),
        ("0.12.0", "0.12.1"),
    ],
)
def test_outputs_that_differ(expected, got):
    assert same_output(expected, got) is not None


def test_every_difference_with_its_line():
    found = differences("a\n1.0\nb\nc", "a\n1.0000001\nx\nc\nd")
    assert [str(d) for d in found] == [
        "output line 3\n  expected | b\n  got      | x",
        "output line 5\n  expected | (nothing)\n  got      | d",
    ]


def test_texts_of_thousands_of_lines_are_compared_in_a_moment():
    lines = [f"{i} {i * 0.5}" for i in range(5_000)]
    [found] = differences("\n".join(lines), "\n".join([*lines[:9], "new", *lines[9:]]))
    assert (found.line, found.got) == (10, "new")
    other = [f"other {i}" for i in range(5_000)]
    assert len(differences("\n".join(lines), "\n".join(other))) == 1


@pytest.mark.parametrize(
    ("expected", "got", "found"),
    [
        # A line is paired with the identical one, not with the first that is close.
        ("x 1.0000001\nx 1.0000000", "x 1.0000000", [(1, "x 1.0000001", "")]),
        ("a\nb\nc\nd", "a\nc\nb\nd", [(2, "b", ""), (4, "", "b")]),
        ("a\nb", "b\nc", [(1, "a", ""), (3, "", "c")]),
        ("a\nb\nc", "x\nb\ny", [(1, "a", "x"), (3, "c", "y")]),
        ("a\na\nb", "a\nb", [(2, "a", "")]),
        ("x 1.0\ny", "y\nx 1.0000001", [(1, "x 1.0", ""), (3, "", "x 1.0000001")]),
    ],
)
def test_as_many_lines_as_possible_are_paired(expected, got, found):
    told = differences(expected, got)
    assert [(d.line, d.expected, d.got) for d in told] == found


@pytest.mark.parametrize("text", ["x 1.0000001\nx 1.0000000", "a\na\n", "", "nan\ninf"])
def test_a_text_is_the_same_as_itself(text):
    assert differences(text, text) == []


def test_how_far_numbers_may_be_apart_is_a_matter_of_the_expected_one():
    assert same_output("100.0", "101.0", rtol=0.01, atol=0.0) is None
    assert same_output("100.0", "101.1", rtol=0.01, atol=0.0) is not None
    assert same_output("0.0", "0.01", rtol=0.5, atol=0.02) is None
    assert same_output("3", "4", rtol=1.0) is not None, "a whole number is exact"


def test_arrays_may_be_padded_otherwise():
    assert same_output("[ 1.5  -0.25]", "[1.5000001 -0.25]") is None
