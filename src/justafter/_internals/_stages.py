"""From a function to an executable: jits made again, and kept from the cache."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax._src.lib as _library
from jax._src import config as _config
from jax._src import core as _core
from jax._src import pjit as _pjit

from ._events import parameters

_INFO = ("fun", "jit_info")


def jit_again(fun: Callable[..., Any], jitted: Any) -> Any | None:
    """Jit `fun` with the options that `jitted` was made with; None if unknown."""
    again = getattr(_pjit, "_cpp_pjit", None)
    info = getattr(jitted, "_jit_info", None)
    if info is None or again is None or parameters(again) != _INFO:
        return None
    return again(fun, info)


@contextlib.contextmanager
def without_persistent_cache() -> Iterator[None]:
    """Compile on this thread, whatever is on disk, and leave nothing there.

    The cache's key leaves metadata out, and metadata is what a lens reads. With it in
    the key, a program whose equations carry numbers is on no disk yet; a compilation
    that is never long enough to be kept is not written to it. Both settings are those
    of this thread alone.
    """
    with (
        _config.compilation_cache_include_metadata_in_key(True),
        _config.persistent_cache_min_compile_time_secs(float("inf")),
    ):
        yield


@contextlib.contextmanager
def loads() -> Iterator[list[str]]:
    """Note each executable that JAX takes from its persistent cache meanwhile."""
    seen: list[str] = []
    thread = threading.get_ident()

    def listener(event: str, **details: Any) -> None:
        is_load = event == "/jax/compilation_cache/cache_hits"
        if is_load and threading.get_ident() == thread:
            seen.append(event)

    jax.monitoring.register_event_listener(listener)
    try:
        yield seen
    finally:
        jax.monitoring.unregister_event_listener(listener)


def is_tracing() -> bool:
    """Whether JAX is tracing here."""
    return not _core.trace_state_clean()


def estimate(text: str) -> dict[str, float] | None:
    """What XLA's analysis says of an HLO module; None where it cannot say."""
    library: Any = _library
    try:
        module = library.xla_client.hlo.hlo_module_from_text(text)
        analysis = library._jax.hlo_module_cost_analysis
        return dict(analysis(jax.devices()[0].client, module))
    except RuntimeError:
        return None
