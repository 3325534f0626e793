"""The package from outside: typed, every name documented."""

import inspect
import re
from pathlib import Path

import pytest

import justafter

PACKAGE = Path(justafter.__file__).parent
API = PACKAGE.parents[1] / "docs" / "instruments" / "api.md"


def test_it_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").exists()


def test_every_public_name_is_documented():
    if not API.exists():
        pytest.skip("not in a checkout of the book")
    told = set(re.findall(r"justafter\.(\w+)", API.read_text(encoding="utf-8")))
    assert set(justafter.__all__) <= told
    for name in justafter.__all__:
        one = getattr(justafter, name)
        assert inspect.getdoc(one), name
        public = [key for key in vars(type(one)) if not key.startswith("_")]
        assert all(inspect.getdoc(getattr(one, key)) for key in public), name
