"""What a callable is: jitted or not, what it wraps, and whose file it is in."""

from __future__ import annotations

import functools
import inspect
import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path, PurePath
from types import CodeType
from typing import Any

import jax
import jaxlib

PACKAGE = str(Path(__file__).parent)
_INSTALLED = re.compile(r"[\\/](?:site|dist)-packages[\\/]")
_CELL = re.compile(r"^<ipython|^<cell|[\\/]ipykernel_\d+[\\/]|^Cell In\[")
_PROMPT = re.compile(r"^<(?:stdin|python-input)")
# How deep a wrapper may lie in wrappers; a ring of them ends here as well.
_DEEPEST = 32


def is_jitted(fn: Any) -> bool:
    """Whether a callable can lower itself, as a `jax.jit` can."""
    return callable(fn) and callable(getattr(fn, "lower", None))


def is_jax_jitted(fn: Any) -> bool:
    """Whether `jax.jit` itself made a callable, and no library around it."""
    return is_jitted(fn) and type(fn).__module__.partition(".")[0] in ("jax", "jaxlib")


def unbound(fn: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """A jitted method, or a partial of a jit, as the jit itself with all arguments."""
    if inspect.ismethod(fn) and is_jitted(fn.__func__):
        return fn.__func__, (fn.__self__, *args)
    if is_partial(fn) and is_jitted(fn.func) and not fn.keywords:
        return fn.func, (*fn.args, *args)
    return fn, args


def is_partial(fn: Any) -> bool:
    """Whether a callable is a partial: Python's, or a library's that is made alike."""
    is_named = type(fn).__name__.lower().startswith("partial")
    return is_named and callable(getattr(fn, "func", None))


def inner(fn: Any) -> Any:
    """Unwrap one layer of a callable; None at the bottom."""
    if is_partial(fn):
        return fn.func
    if inspect.ismethod(fn):
        return fn.__func__
    try:
        wrapped = getattr(fn, "__wrapped__", None)
    except Exception:  # a property of a library's wrapper that fails
        wrapped = None
    if wrapped is not None:
        return wrapped
    if inspect.isfunction(fn) or inspect.isbuiltin(fn) or inspect.isclass(fn):
        return None
    call = inspect.getattr_static(type(fn), "__call__", None)
    return call if inspect.isfunction(call) else None


def layers(fn: Any) -> Iterator[Any]:
    """`fn` and what it wraps: partials, methods, jits, transformations."""
    for _ in range(_DEEPEST):
        if fn is None:
            return
        yield fn
        fn = inner(fn)


def code_of(fn: Any) -> CodeType | None:
    """The code at the bottom of a callable; None for what is not Python."""
    every = list(layers(fn))
    code = getattr(every[-1], "__code__", None) if every else None
    return code if isinstance(code, CodeType) else None


def name_of(fn: Any) -> str:
    """A name for a callable: its own, or that of what a partial calls."""
    while is_partial(fn):
        fn = fn.func
    if is_jitted(fn) and not hasattr(fn, "__name__"):
        fn = getattr(fn, "__wrapped__", fn)
    return getattr(fn, "__name__", None) or type(fn).__name__


def parameters(fn: Any) -> tuple[str, ...]:
    """The names of a callable's parameters; none for what has no signature."""
    try:
        return tuple(inspect.signature(fn).parameters)
    except (TypeError, ValueError):
        return ()


@functools.cache
def _library_folders() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = [sysconfig.get_path(name) for name in names]
    # A JAX that is installed as an editable checkout lies anywhere.
    folders += [*jax.__path__, *jaxlib.__path__]
    return tuple(f"{folder}{sep}" for folder in folders for sep in "/\\" if folder)


@functools.lru_cache(maxsize=4096)
def is_library(path: str) -> bool:
    """Whether a file is Python's, JAX's, this package's or another installed one."""
    return (
        path.startswith((PACKAGE, "<frozen", *_library_folders()))
        or _INSTALLED.search(path) is not None
    )


def package_of(path: str) -> str:
    """The name of the package that an installed file belongs to, or an empty text."""
    parts = _INSTALLED.split(path)
    return re.split(r"[\\/]", parts[-1])[0].removesuffix(".py") if parts[1:] else ""


def file_label(path: str) -> str:
    """Name a file without its folders."""
    if _CELL.search(path):
        return "notebook cell"
    return "prompt" if _PROMPT.search(path) else PurePath(path).name


def caller() -> tuple[str, int, str] | None:
    """File, line and function of the innermost frame that is the reader's own."""
    frame = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if not is_library(path):
            return path, frame.f_lineno, frame.f_code.co_name
        frame = frame.f_back  # type: ignore[assignment]
    return None
