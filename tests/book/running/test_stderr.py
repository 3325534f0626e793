"""Which lines on stderr are the runtime's, and which the cell's own."""

from pathlib import Path

import pytest

from executed_book.running.stderr import told_apart

#: Lines as runs on GPUs have written them, by what they are about.
RUNTIME_LINES = dict(
    line.split(" | ", 1)
    for line in Path(__file__).with_name("runtime_lines.txt").read_text().splitlines()
)

OWN_LINES = (
    "UserWarning: bfc_allocator.cc:310] is mentioned",
    "Traceback (most recent call last):",
    "I0000 00:00:1776359130.3   83221 cuda_dnn.cc:529] Something nobody has seen",
    "I0000 00:00:1776359130.3   83221 my_own_extension.cc:1] hello",
    "bfc_allocator.cc:310] without a head",
    "  %s = f32, says my own program",
    "F0317 05:01:29.217242  712317 buffer_comparator.cc:156] Difference at 6, fatal",
)


@pytest.mark.parametrize("name", RUNTIME_LINES)
def test_a_line_of_the_runtime_is_known(name):
    line = RUNTIME_LINES[name] + "\n"
    assert told_apart(line) == ("", line)
    assert told_apart(f"mine\n{line}\nmine too\n") == ("mine\nmine too\n", f"{line}\n")


@pytest.mark.parametrize("line", OWN_LINES)
def test_any_other_line_is_the_cells_own(line):
    assert told_apart(f"{line}\n") == (f"{line}\n", "")
