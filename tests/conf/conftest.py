"""What the tests of Sphinx's configuration share."""

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

CONF = Path(__file__).parents[2] / "conf"


@pytest.fixture
def module_of_conf(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Gives a module that lies beside `conf.py`, from where Sphinx imports it."""
    monkeypatch.syspath_prepend(CONF)
    return importlib.import_module
