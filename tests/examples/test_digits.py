"""Every small program in `examples/` runs as a reader would run it, and learns."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import EXAMPLES, HANGS, SYSTEMS

NAMES = sorted(path.name for path in EXAMPLES.glob("*.py") if path.stem not in SYSTEMS)


@pytest.mark.parametrize("name", NAMES)
def test_runs_alone(name: str, tmp_path: Path):
    ran = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        cwd=tmp_path,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    if name.startswith("digits_"):
        found = re.search(r"test accuracy (\d\.\d+)", ran.stdout)
        assert found, ran.stdout
        assert float(found[1]) > 0.85
