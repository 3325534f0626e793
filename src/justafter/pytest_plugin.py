"""A pytest fixture that counts traces.

Ask for it in a `conftest.py`::

    pytest_plugins = ["justafter.pytest_plugin"]

It is not an entry point on purpose: pytest loads those before any `conftest.py`, and
this one imports JAX, which reads its environment variables when it is imported.
"""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest

from ._watch import Log, watch


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
