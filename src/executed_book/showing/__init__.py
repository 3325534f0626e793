"""From an executed chapter to what Sphinx renders."""

import sys
from types import ModuleType
from typing import Any


class _RunsNothing(ModuleType):
    """Stands for one of MyST-NB's ways to execute: pages come with their outputs.

    Importing all three takes half of a build in which nothing has changed.
    """

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("NotebookClient"):
            raise AttributeError(name)
        from myst_nb.core.execute.base import NotebookClientBase

        return NotebookClientBase


for _way in ("cache", "direct", "inline"):
    _module = _RunsNothing(f"myst_nb.core.execute.{_way}")
    sys.modules.setdefault(_module.__name__, _module)
