"""The package alone imports nothing: whoever is interrupted then hears one line."""

from __future__ import annotations

import subprocess
import sys


def test_importing_the_package_imports_nothing_else():
    code = (
        "import sys; before = set(sys.modules); import executed_book;"
        "print(*sorted(set(sys.modules) - before))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["executed_book"]
