"""The package from outside: typed, every name documented."""

import inspect
import re
from pathlib import Path

import pytest

import justafter

from .running import printed

PACKAGE = Path(justafter.__file__).parent
API = PACKAGE.parents[1] / "docs" / "instruments" / "api.md"


def test_an_instrument_is_imported_when_it_is_asked_for():
    program = """
import jax, jax.numpy as jnp
ran = []
step = jax.jit(lambda x: ran.append(1) or x)
step(1.0)
from justafter import watch
with watch():
    step(1.0)
import justafter, sys
print(len(ran), "justafter._lens" in sys.modules)
from justafter import *
print(sorted(justafter.__all__) == sorted(set(dir(justafter)) & set(justafter.__all__)))
log = watch()  # says nothing when Python ends
step(2)
"""
    assert printed(program).split() == ["1", "False", "True"]
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        justafter.nothing  # noqa: B018


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
