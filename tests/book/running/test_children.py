"""Which cells start child processes that may read more than their commands name."""

import pytest

from executed_book.running.children import reads_unseen
from tests.book.made import chapter

UNSEEN = [
    "from concurrent.futures import ProcessPoolExecutor",
    "import os; os.posix_spawn('/bin/sh', ['sh'], {})",
    "  ![ -e data.txt ] && cat data.txt",
    "!cat data/*.csv",
    "!cat $(ls)",
    "!pip install x && sh",
    "files, more = !ls",
    "%system ls",
    "%%bash\ncat data.txt",
    "%%!\ncat data.txt",
    "!!sh",
    "!python -m venv x",
]
SEEN = [
    "x != 4",
    "print('a!')",
    "%pip install jax",
    "%timeit x",
    "!pip install 'jax[cuda12]' > /dev/null 2>&1",
    "!{sys.executable} -m pip install jax",
    "!python3.13 -m pip list",
    "said = !cat data.txt",
    "%sx cat data.txt",
    "! nvidia-smi",
]


@pytest.mark.parametrize("source", [*UNSEEN, *SEEN])
def test_a_cell_starts_such_a_child_or_none(source):
    assert reads_unseen(chapter(source), []) == (source in UNSEEN)


def test_a_module_of_the_book_is_looked_at_and_ours_is_not(tmp_path):
    module = tmp_path / "helper.py"
    for source, is_unseen in (("import subprocess", True), ("import json", False)):
        module.write_text(source)
        assert reads_unseen(chapter("1"), [module]) == is_unseen
    gone, text = tmp_path / "gone.py", tmp_path / "subprocess.txt"
    text.write_text("import subprocess")
    assert not reads_unseen(chapter("1"), [gone, text])
