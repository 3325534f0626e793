"""Each bench runs, at its smallest."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHES = Path(__file__).parent
PAGE = """\
---
file_format: mystnb
kernelspec: {name: python3}
---
# One

```{code-cell}
print(1 + 1)
```
"""

#: The arguments with which each takes least time.
SMALLEST = {
    "bench_book": ["--rounds=1", "--docs", "docs"],
    "bench_lens": ["--rounds=1", "--only=1000 equations"],
    "bench_lm": ["--rounds=1", "--small"],
    "bench_watch_measure": ["misses"],
}


def test_every_bench_has_its_smallest():
    assert {path.stem for path in BENCHES.glob("bench_*.py")} == SMALLEST.keys()


@pytest.mark.weekly
@pytest.mark.parametrize("name", SMALLEST)
def test_it_runs(name: str, tmp_path: Path):
    page = tmp_path / "docs" / "one.md"
    page.parent.mkdir()
    page.write_text(PAGE)
    ran = subprocess.run(
        [sys.executable, "-m", f"tests.bench.{name}", *SMALLEST[name]],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout
