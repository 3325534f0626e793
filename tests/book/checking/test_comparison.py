"""Two outputs are the same, or it is said where they differ."""

import pytest

from executed_book.checking.comparison import same_output


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        ("a\nb\n", "a\nb"),
        ("x 1.0", "x 1.000001"),
        ("[ 0.1  -0.25]", "[ 0.1000001 -0.25]"),
        ("[0.1, nan]", "[0.1000001, nan]"),
        ("-1e-3", "-0.001"),
        ("(0.5+2.0j)", "(0.5+2.000001j)"),
        ("[1.0-0.5j]", "[1.0-0.5000001j]"),
        ('  File "<ipython-input-3>", line 4, in f', '  File "/a/b.py", line 9, in f'),
        ("at <cell 3>:2:4 (f)", "at /tmp/program.py:12:4 (f)"),
        ("at <cell 3>:2", "at program.py:12"),
        ("x @ w   L7   k2  1 MFLOPs", "x @ w  L11   k2  1 MFLOPs"),
        ("Cell In[3], line 2", 'File "/a/b.py", line 9, in <module>'),
        *((text, text) for text in ("x 1.0000001\nx 1.0000000", "a\na\n", "nan\ninf")),
    ],
)
def test_outputs_that_are_the_same(expected, got):
    assert same_output(expected, got) is None


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        ("x 1.0", "x 1.001"),
        ("(0.5+2.0j)", "(0.5-2.0j)"),
        ("2.0j", "2.001j"),
        ("x 1.0", "y 1.0"),
        ("1.0 2.0", "1.0"),
        ("1.5", "nan"),
        ("inf", "1.0"),
        ("a", "a\nb"),
        ("", "a"),
        ("a  b", "a b"),
        ("float32[3]", "float32[4]"),
        ("L7", "L11"),
        ("x   L7   k2", "x   L7   k3"),
        ("v0.12.0", "v0.12.1"),
        ("0.12.0", "0.12.1"),
    ],
)
def test_outputs_that_differ(expected, got):
    assert same_output(expected, got) is not None


def test_a_difference_has_its_line_and_what_stands_there():
    found = same_output("a\n1.0\nb\nc\n2.0", "a\n1.0000001\nx\nc\n2.0")
    assert str(found) == "output line 3\n  expected | b\n  got      | x"
    found = same_output("a", "a\nb\nc")
    assert str(found).endswith("  expected | (nothing)\n  got      | b\n           | c")


@pytest.mark.parametrize(
    ("expected", "got", "found"),
    [
        ("a\nb\nc\nd", "a\nc\nb\nd", (2, "b c", "c b")),
        ("a\na\nb", "a\nb", (2, "a", "(nothing)")),
        ("a\nb\nc", "x\nb\ny", (1, "a b c", "x b y")),
        ("a\nat <cell 3>:2", "b\nat program.py:12", (1, "a", "b")),
    ],
)
def test_a_difference_goes_from_the_first_to_the_last_line(expected, got, found):
    line, wanted, had = found
    first, *lines = same_output(expected, got).split("\n")
    assert first == f"output line {line}"
    assert [text.partition(" | ")[2] for text in lines] == [
        *wanted.split(" ") * (wanted != "(nothing)"),
        *had.split(" "),
    ]


def test_texts_of_thousands_of_lines_are_compared_in_a_moment():
    lines = [f"{i} {i * 0.5}" for i in range(5_000)]
    found = same_output("\n".join(lines), "\n".join([*lines[:9], "new", *lines[9:]]))
    assert found == "output line 10\n  expected | (nothing)\n  got      | new"


def test_how_far_numbers_may_be_apart_is_a_matter_of_the_expected_one():
    assert same_output("100.0", "100.009") is None
    assert same_output("100.0", "100.011") is not None
    assert same_output("0.0", "0.000000009") is None
    assert same_output("0.0", "0.00000002") is not None
    assert same_output("30000", "30001") is not None, "a whole number is exact"
