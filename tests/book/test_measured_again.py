"""What is measured: it runs alone, and again where noise made its assertion fail."""

from .test_failures import TWO_SECONDS

MEASURED = """\
:tags: [measured]
from pathlib import Path
count = Path({count!r})
count.write_text(count.read_text() + "x" if count.exists() else "x")
runs = len(count.read_text())
print(runs)"""

#: Checks of a chapter that counts its runs, and how often it runs.
CHECKS = {
    "second": ("assert runs == 2", 2),
    "never": ("assert runs == 4", 3),
    "unmeasured": ("counted = 1\nassert counted == 2", 1),
    "error": ("assert runs / 0", 1),
}


def test_only_what_was_measured_and_does_not_hold_is_measured_again(book, tmp_path):
    for name, (check, _) in CHECKS.items():
        measured = MEASURED.format(count=str(tmp_path / name))
        book.chapter(name, measured, f":tags: [check]\n{check}")
    output = book.refused("execute")
    runs = {name: len((tmp_path / name).read_text()) for name in CHECKS}
    assert runs == {name: times for name, (_, times) in CHECKS.items()}
    assert "about a measurement failed (2 of 3): never, second" in output
    assert "about a measurement failed (3 of 3): never" in output
    assert output.count("raised AssertionError") == 2
    assert "docs/second.md" not in output


#: A cell that notes when it began and ended.
SPAN = """\
import time
began = time.monotonic()
time.sleep(0.7)
with open({file!r}, "a") as file:
    print(began, time.monotonic(), file=file)"""


def test_a_cell_that_measures_has_the_machine_for_itself(book, tmp_path):
    cell = SPAN.format(file=str(tmp_path / "spans"))
    book.chapter("one", cell, "1", front=TWO_SECONDS)  # to wait does not count
    measured = cell.replace("0.7", "3")
    book.chapter("two", f":tags: [measured]\n{measured}\nassert began")
    book.done("execute", "--jobs", "2")
    lines = (tmp_path / "spans").read_text().splitlines()
    first, second = sorted([float(word) for word in line.split()] for line in lines)
    assert first[1] <= second[0]
