"""The pages of the instruments on each JAX: their cells, checks and solutions run."""

import re
import sys
import textwrap
from importlib.metadata import version
from pathlib import Path

import pytest

from .running import printed

ROOT = Path(__file__).parents[2]
PAGES, LOCK = ROOT / "docs" / "instruments", ROOT / "requirements-docs.txt"
IS_NEW, LINE = sys.version_info >= (3, 12), rf"(?m)^jax=={version('jax')}(?![\w.])"
IS_THE_BOOKS = IS_NEW and bool(re.search(LINE, LOCK.read_text("utf-8")))
CELL = re.compile(r"(?ms)^```\{code-cell\}\n((?::[^\n]*\n)*)(.*?)^```$")
RAISES = """
try:
{2}
except Exception as error:
    assert (type(error).__name__, {1!r} in str(error)) == ({0!r}, True), error
else:
    raise AssertionError("nothing was raised")
"""


def statements(options: str, source: str) -> str:
    """A cell as statements of a program; one that has to raise must do so."""
    if error := re.search(r'(?m)^:raises: "(\w+): (.*)"$', options):
        return RAISES.format(*error.groups(), textwrap.indent(source, "    "))
    return source


@pytest.mark.skipif(IS_THE_BOOKS, reason="the book's build runs them on this JAX")
@pytest.mark.parametrize("name", ["lens", "measure", "watch"])
def test_the_cells_of_a_page_hold(name: str, tmp_path: Path):
    cells = CELL.findall((PAGES / f"{name}.md").read_text("utf-8"))
    assert len(cells) > 15
    program = tmp_path / f"{name}.py"
    program.write_text("\n".join(statements(*cell) for cell in cells), "utf-8")
    printed(program)
