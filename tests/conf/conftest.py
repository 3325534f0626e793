"""What the tests of Sphinx's configuration share."""

import importlib
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from types import ModuleType

import pytest
from sphinx.testing.util import SphinxTestApp

CONF = Path(__file__).parents[2] / "conf"


@pytest.fixture
def module_of_conf(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Gives a module that lies beside `conf.py`, from where Sphinx imports it."""
    monkeypatch.syspath_prepend(CONF)
    return importlib.import_module


def _module(name: str):
    """A fixture that is this module."""
    return pytest.fixture(name=name)(lambda module_of_conf: module_of_conf(name))


archive, card, drawings = map(_module, ("archive", "card", "drawings"))
editions, moved, parts = map(_module, ("editions", "moved", "parts"))
references, releases = map(_module, ("references", "releases"))


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., Path]:
    """Build pages with extensions of `conf/`; the folder that Sphinx wrote.

    What Sphinx warned of is `build.warnings` then.
    """

    def build(page, *extensions, options="", builder="html") -> Path:
        (tmp_path / "conf.py").write_text(
            f"import sys\nsys.path.append({str(CONF)!r})\n"
            f"extensions = {['myst_parser', *extensions]}\n"
            # Sphinx keeps suffixes that an earlier build in this process added.
            f"source_suffix = {{'.md': 'markdown'}}\n{options}\n"
        )
        (tmp_path / "index.md").write_text(page)
        warnings = StringIO()
        app = SphinxTestApp(builder, srcdir=tmp_path, warning=warnings)
        try:
            app.build()
        finally:
            app.cleanup()
        build.warnings = warnings.getvalue()
        return Path(app.outdir)

    return build
