"""Normal random numbers a few units in the last place larger, as if rounding differed.

With this folder on PYTHONPATH and `ULPS=3`, say, what starts from such numbers goes
another way wherever rounding decides, as it would on another CPU: a training above all.
`jax.random` draws the initial weights of the pages, `numpy.random` some.
"""

import functools
import importlib.abc
import importlib.machinery
import os
import sys
from types import ModuleType
from typing import Any

FACTOR = 1 + int(os.environ.get("ULPS", "0")) * 2.0**-23


class _AfterImport(importlib.abc.MetaPathFinder):
    """Changes the modules as soon as somebody has imported them."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        change = {"jax": _scale_jax, "numpy.random": _scale_numpy}.get(name)
        spec = importlib.machinery.PathFinder.find_spec(name, path) if change else None
        if change is None or spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            change(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _scale_jax(jax: Any) -> None:
    for name in ("normal", "truncated_normal"):
        scaled = _scaled(getattr(jax.random, name))
        for module in (jax.random, jax._src.random):  # initializers use the second
            setattr(module, name, scaled)


def _scaled(draw: Any) -> Any:
    @functools.wraps(draw)
    def scaled(*args: Any, **options: Any) -> Any:
        numbers = draw(*args, **options)
        return numbers * numbers.dtype.type(FACTOR)

    return scaled


def _scale_numpy(random: Any) -> None:
    class Generator(random.Generator):  # type: ignore[misc]
        def normal(self, *args: Any, **options: Any) -> Any:
            return super().normal(*args, **options) * FACTOR

    default = random.default_rng
    random.default_rng = lambda seed=None: Generator(default(seed).bit_generator)


sys.meta_path.insert(0, _AfterImport())
