"""From a function to an executable: jits made again, caught or kept from the cache."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import jax
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
def lowering(replace: Callable[[Any], Any]) -> Iterator[list[Any]]:
    """Hand what this thread lowers to `replace` first, and lower what it returns.

    Libraries wrap `jax.jit` in callables of their own that can be lowered but not
    traced. So is seen what they pass to `jax.jit`, whatever they are.

    Yields:
        A list that fills with a pair for each lowering: what `replace` returned, and
        the `jax.stages.Lowered` made from it.
    """
    kind, thread = jax.stages.Traced, threading.get_ident()
    before: Callable[..., Any] = kind.lower
    seen: list[Any] = []

    def lower(traced: Any, *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() != thread:
            return before(traced, *args, **kwargs)
        mine = replace(traced)
        lowered = before(mine, *args, **kwargs)
        seen.append((mine, lowered))
        return lowered

    setattr(kind, "lower", lower)  # noqa: B010 (of a class that is JAX's own)
    try:
        yield seen
    finally:
        kind.lower = before  # type: ignore[method-assign]


@contextlib.contextmanager
def without_persistent_cache() -> Iterator[None]:
    """Compile, whatever is on disk, and leave nothing there.

    The cache's key leaves metadata out, and metadata is what a lens reads. With it in
    the key, a program whose equations carry numbers is on no disk yet; a compilation
    that is never long enough to be kept is not written to it.
    """
    names = {
        "jax_compilation_cache_include_metadata_in_key": True,
        "jax_persistent_cache_min_compile_time_secs": float("inf"),
    }
    with contextlib.ExitStack() as stack:
        for name, value in names.items():
            stack.enter_context(_setting(name, value))
        yield


@contextlib.contextmanager
def _setting(name: str, value: Any) -> Iterator[None]:
    before = getattr(jax.config, name)
    jax.config.update(name, value)
    try:
        yield
    finally:
        jax.config.update(name, before)


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


@contextlib.contextmanager
def compiling(lowered: Any, compiled: Any) -> Iterator[None]:
    """Answer this thread's request to compile `lowered` with what came of it before."""
    kind, thread = jax.stages.Lowered, threading.get_ident()
    before: Callable[..., Any] = kind.compile

    def compile_(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self is lowered and threading.get_ident() == thread:
            return compiled
        return before(self, *args, **kwargs)

    kind.compile = compile_  # type: ignore[method-assign]
    try:
        yield
    finally:
        kind.compile = before  # type: ignore[method-assign]


def is_tracing() -> bool:
    """Whether JAX is tracing here (False where this JAX does not tell)."""
    try:
        from jax._src import core

        return not core.trace_state_clean()
    except (AttributeError, ImportError):
        return False
