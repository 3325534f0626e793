"""Every small program in `examples/` runs as a reader would run it, and learns."""

import re
from pathlib import Path

import pytest

from .conftest import EXAMPLES, SYSTEMS, finish, program

NAMES = sorted({path.stem for path in EXAMPLES.glob("*.py")} - {*SYSTEMS})


@pytest.mark.parametrize("name", NAMES)
def test_runs_alone(name: str, tmp_path: Path):
    said = finish(program(tmp_path, str(EXAMPLES / f"{name}.py")))
    if name.startswith("digits_"):
        accuracy, *_ = re.findall(r"test accuracy (\d\.\d+)", said)
        assert float(accuracy) > 0.85
