"""Pytest fixtures that count traces, and that compare times with an earlier run.

Ask for them in a `conftest.py`::

    pytest_plugins = ["justafter.pytest_plugin"]

It is not an entry point on purpose: pytest loads those before any `conftest.py`, and
this one imports JAX, which reads its environment variables when it is imported.

Times are kept and compared with two options of pytest's command line::

    pytest --measured-save times.json     # keep what this run measures
    pytest --measured times.json          # and fail where a later run is slower
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import pytest

from ._measure import Measurement, measure
from ._measure._saved import save
from ._watch import Log, watch

_KEPT = pytest.StashKey[list[Measurement]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the files that times are read from and written to."""
    group = parser.getgroup("justafter")
    group.addoption("--measured", metavar="FILE", help="fail where slower than this")
    group.addoption("--measured-save", metavar="FILE", help="keep the times in a file")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep what was measured, where that was asked for."""
    path = session.config.getoption("--measured-save")
    kept = session.config.stash.get(_KEPT, [])
    if path and kept:
        save(path, *kept)


@pytest.fixture
def watched() -> Iterator[Log]:
    """A log of what is traced and compiled in the test, from empty caches.

    JAX's caches are emptied first, so that the counts do not depend on which tests
    ran before::

        def test_step_is_traced_once(watched):
            step(x)
            step(x + 1)
            assert watched["step"].traces == 1
    """
    jax.clear_caches()
    with watch() as log:
        yield log


@pytest.fixture
def measured(request: pytest.FixtureRequest) -> Callable[..., Measurement]:
    """Measure a function, and fail if it became slower than an earlier run says.

    It takes what `measure` takes, and `tolerance`, a ratio this close to 1 being no
    change; the test's name is the measurement's::

        def test_step_is_as_fast_as_it_was(measured):
            measured(step, params, batch, tolerance=0.1)

    Without `--measured FILE` it measures and compares with nothing. Where the spreads
    leave it open whether the function became slower, the test passes.
    """
    config = request.config
    path = config.getoption("--measured")
    earlier = measure.load(path) if path and Path(path).exists() else {}
    if path and not earlier:
        pytest.fail(f"{path} holds no measurements: write it with --measured-save")

    def check(
        fn: Callable[..., Any],
        /,
        *args: Any,
        tolerance: float = 0.05,
        name: str = "",
        **kwargs: Any,
    ) -> Measurement:
        __tracebackhide__ = True
        label = name or request.node.nodeid
        found = replace(measure(fn, *args, **kwargs), name=label)
        config.stash.setdefault(_KEPT, []).append(found)
        if label in earlier:
            change = found.against(earlier[label], tolerance)
            if change.verdict == "slower":
                pytest.fail(f"slower than in {path}\n{change}")
        return found

    return check
