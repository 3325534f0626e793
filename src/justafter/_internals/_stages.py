"""From a function to an executable: jits made again, and kept from the cache."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax._src.lib as _library
from jax._src import config as _config
from jax._src import core as _core
from jax._src import pjit as _pjit

from .._functions import parameters


def jit_again(fun: Callable[..., Any], jitted: Any) -> Any | None:
    """Jit `fun` with the options that `jitted` was made with; None if unknown."""
    again = getattr(_pjit, "_cpp_pjit", None)
    info = getattr(jitted, "_jit_info", None)
    if info is None or again is None or parameters(again) != ("fun", "jit_info"):
        return None
    return again(fun, info)


@contextlib.contextmanager
def without_persistent_cache() -> Iterator[None]:
    """Compile on this thread, whatever is on disk, and leave nothing there.

    With metadata in its key, which users leave out, the cache has no such program, and
    a compilation never takes long enough to be kept. Both settings are this thread's.
    """
    with (
        _config.compilation_cache_include_metadata_in_key(True),
        _config.persistent_cache_min_compile_time_secs(float("inf")),
    ):
        yield


def is_tracing() -> bool:
    """Whether JAX is tracing here."""
    return not _core.trace_state_clean()


def estimate(text: str) -> dict[str, float] | None:
    """What XLA's analysis says of an HLO module; None where it cannot say.

    The CPU's client is asked, whatever the module was compiled for: the analysis reads
    the text alone, and the client of a GPU does not offer it.
    """
    library: Any = _library
    try:
        module = library.xla_client.hlo.hlo_module_from_text(text)
        analysis = library._jax.hlo_module_cost_analysis
        return dict(analysis(jax.devices("cpu")[0].client, module))
    except RuntimeError:
        return None
