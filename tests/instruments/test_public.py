"""The package from outside: light to import, typed, every name documented."""

import inspect
import re
from importlib.metadata import version
from pathlib import Path

import pytest

import justafter

from .running import printed

PACKAGE = Path(justafter.__file__).parent
API = PACKAGE.parents[1] / "docs" / "instruments" / "api.md"


def test_importing_it_imports_nothing_heavy():
    heavy = ("jax", "numpy", "matplotlib", "inspect", "html", "json")
    program = f"import sys, justafter\nprint(*(n for n in {heavy} if n in sys.modules))"
    assert printed(program).strip() in ("", "inspect")


def test_names_come_when_they_are_asked_for():
    program = """
from justafter import lens, watch
import sys, justafter
assert callable(lens) and callable(watch)
assert "justafter._measure" not in sys.modules
justafter.measure
assert "justafter._measure" in sys.modules
from justafter import *
print(sorted(justafter.__all__) == sorted(set(dir(justafter)) & set(justafter.__all__)))
"""
    assert printed(program).strip() == "True"
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        justafter.nothing  # noqa: B018


def test_the_version_is_the_distributions():
    assert justafter.__version__ == version("justafter")


def test_it_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").exists()


def test_every_public_name_is_documented():
    if not API.exists():
        pytest.skip("not in a checkout of the book")
    told = set(re.findall(r"justafter\.(\w+)", API.read_text(encoding="utf-8")))
    assert set(justafter.__all__) - {"__version__"} <= told
    for name in set(justafter.__all__) - {"__version__"}:
        one = getattr(justafter, name)
        assert inspect.getdoc(one), name
        public = [key for key in vars(type(one)) if not key.startswith("_")]
        assert all(inspect.getdoc(getattr(one, key)) for key in public), name


def test_what_type_checkers_see_is_what_there_is():
    text = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    declared = set(re.findall(r"import (\w+) as \1", text))
    assert declared == set(justafter.__all__) - {"__version__"}
