"""From an executed chapter to what Sphinx renders."""

import importlib
import sys
from types import ModuleType
from typing import Any


class _RunsNothing(ModuleType):
    """Stands for one of MyST-NB's ways to execute: pages come with their outputs."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("NotebookClient"):
            raise AttributeError(name)
        return sys.modules["myst_nb.core.execute.base"].NotebookClientBase


# Importing all three takes a third of a build in which nothing has changed. They are
# stood for while MyST-NB asks for them, and whoever else does gets them.
if "myst_nb.core.execute" not in sys.modules:
    _ways = [f"myst_nb.core.execute.{way}" for way in ("cache", "direct", "inline")]
    sys.modules.update({way: _RunsNothing(way) for way in _ways})
    importlib.import_module("myst_nb.core.execute")
    for _way in _ways:
        del sys.modules[_way]
