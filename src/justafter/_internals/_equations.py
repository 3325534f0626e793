"""The one module that touches JAX's internals.

Everything here is tested on the oldest and the newest supported JAX. What the
lens needs degrades: each function says what its caller gets where an internal
is not as expected. What `watch` needs is checked before it is used, and the
error says which JAX has moved it.
"""

from __future__ import annotations

import copy
import re
from typing import Any

from jax._src import traceback_util as _traceback_util
from jax.extend import core as _core

try:
    from jax._src import source_info_util as _source_info
except ImportError:  # pragma: no cover - a JAX newer than any tested one
    _source_info = None

# A user's error, raised while we pass a call on, shows the user's frames and not ours.
_traceback_util.register_exclusion(__file__)


# --- lens: where an equation came from, and how to follow it into HLO ---------

# A scope no user would write. MLIR cuts names at "@", so none of that.
_TAG = "ja_eqn"
_TAG_PATTERN = re.compile(rf"{_TAG}(\d+)\.")

# Their inner jaxprs say how to combine two numbers, or are a kernel of their
# own; lowering rules match on them, so they stay untouched.
_LEAVES = {"pallas_call", "reduce", "reduce_window", "select_and_scatter", "sort"}


def user_span(eqn: Any) -> tuple[str, str, int, int, int, int] | None:
    """Give the user's expression that an equation came from.

    Returns:
        ``(file, function, line, column, end_line, end_column)``, lines from 1,
        columns in bytes from 0; None where JAX kept no frame of the user's.
    """
    try:
        frame = _source_info.user_frame(eqn.source_info.traceback)
        return None if frame is None else tuple(frame_fields(frame))
    except (AttributeError, TypeError):
        return None


def frame_fields(frame: Any) -> tuple[Any, ...]:
    """Give the fields of JAX's frame in the order of :func:`user_span`."""
    return (
        frame.file_name,
        frame.function_name,
        frame.start_line,
        frame.start_column,
        frame.end_line,
        frame.end_column,
    )


def is_user_file(path: str) -> bool:
    """Say whether JAX counts a file as the user's (True where it cannot tell)."""
    try:
        return _source_info.is_user_filename(path)
    except AttributeError:
        return True


def sub_jaxprs(eqn: Any) -> list[tuple[str, Any]]:
    """List the jaxprs that an equation runs, each with its parameter's name."""
    if is_leaf(eqn):
        return []
    return [
        (f"{key} {i}" if isinstance(value, (tuple, list)) else key, one)
        for key, value in eqn.params.items()
        for i, one in enumerate(value if isinstance(value, (tuple, list)) else [value])
        if isinstance(one, (_core.ClosedJaxpr, _core.Jaxpr))
    ]


def is_leaf(eqn: Any) -> bool:
    """Say whether an equation's inner jaxprs are details of one operation."""
    name = eqn.primitive.name
    return name in _LEAVES or name.startswith("scatter")


def scope(eqn: Any) -> str:
    """Give an equation's name stack, such as ``transpose(jvp())``."""
    return str(getattr(getattr(eqn, "source_info", None), "name_stack", ""))


def tagged(traced: Any) -> Any | None:
    """Copy a traced function so that each equation carries a number.

    The number is one more scope in the equation's name stack, so XLA keeps it in
    the metadata of every instruction made from it. Metadata only: the compiled
    program is the same.

    Returns:
        The copy, to lower and compile; None where this JAX does not allow it.
    """
    try:
        twin = copy.copy(traced)
        jaxpr = _tag_value(traced._params["jaxpr"], {}, [0])
        twin._params = {**traced._params, "jaxpr": jaxpr}
    except (AttributeError, KeyError, TypeError):
        return None
    return twin


def tags(path: str) -> tuple[int, ...]:
    """Read the numbers that :func:`tagged` put into a scope, outermost first."""
    return tuple(int(number) for number in _TAG_PATTERN.findall(path))


def untagged(path: str) -> str:
    """Give a scope as it was before :func:`tagged`."""
    return re.sub(rf"/?{_TAG}\d+\./?", "", path)


def plain_names(text: str) -> str:
    """Take the numbers of :func:`tagged` out of HLO's names for values.

    XLA names a value after the last part of its scope, and that may be a number.
    """
    return re.sub(rf"(%[\w\-.]*?){_TAG}(?=\d)", r"\1value", text)


def _tag_value(value: Any, seen: dict, counter: list[int]) -> Any:
    if isinstance(value, _core.ClosedJaxpr) and hasattr(value, "jaxpr"):
        inner = value.jaxpr
        if inner is not value:
            return value.replace(jaxpr=_tag_value(inner, seen, counter))
    if isinstance(value, (_core.ClosedJaxpr, _core.Jaxpr)):
        return _tag_jaxpr(value, seen, counter)
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        return type(value)(_tag_value(one, seen, counter) for one in value)
    return value


def _tag_jaxpr(jaxpr: Any, seen: dict, counter: list[int]) -> Any:
    # A jaxpr that two equations share stays shared, or the program would grow.
    if id(jaxpr) not in seen:
        eqns = [_tag_equation(eqn, seen, counter) for eqn in jaxpr.eqns]
        seen[id(jaxpr)] = (jaxpr, jaxpr.replace(eqns=eqns))
    return seen[id(jaxpr)][1]


def _tag_equation(eqn: Any, seen: dict, counter: list[int]) -> Any:
    stack = eqn.source_info.name_stack.extend(f"{_TAG}{counter[0]}.")
    counter[0] += 1
    params = eqn.params
    if not is_leaf(eqn):
        params = {k: _tag_value(v, seen, counter) for k, v in params.items()}
    return eqn.replace(
        params=params, source_info=eqn.source_info.replace(name_stack=stack)
    )
