"""What a call looked like to JAX: types, structure, static values, settings."""

from __future__ import annotations

import inspect
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import jax

from .. import _functions, _internals
from ._words import equal, mesh_words, words

Fun = Callable[..., Any]
# The name of an argument and where its array lives.
Placement = tuple[str, str]
LOOSE = "not committed"


@dataclass(frozen=True, slots=True)
class Leaf:
    """An array among the arguments, by its type."""

    shape: tuple[int, ...]
    dtype: str
    weak: bool
    sharding: str  # part of the type: only on a mesh
    # Of the array itself, for the words only: JAX's trace does not depend on it.
    place: str = field(compare=False)

    def __str__(self) -> str:
        return f"{'weak ' * self.weak}{self.short}"

    @property
    def short(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class Signature:
    """All that a trace depends on."""

    fun: Callable[[], Any]
    depth: int  # how many wrappers it has around the function it is counted under
    leaves: dict[str, Leaf]
    static: dict[str, Any]
    tree: Any
    names: tuple[str, ...]  # of the dynamic arguments passed by position
    form: str  # how many of them there are, and which were passed by name
    static_form: str  # the static arguments that were passed, not defaulted
    context: dict[str, Any]
    raised: bool
    passed: Signature | None = None  # before a library took the arguments apart
    # Why it was traced, and where its arrays lived when it was compiled.
    reasons: tuple[Any, ...] = ()
    placed: list[tuple[Placement, ...]] = field(default_factory=list)

    def __str__(self) -> str:
        if self.passed is not None:
            return str(self.passed)
        dynamic = [f"{name}: {leaf}" for name, leaf in self.leaves.items()]
        static = [f"{name}={words(value)}" for name, value in self.static.items()]
        shown = dynamic[:6] + ([f"and {len(dynamic) - 6} more"] * (len(dynamic) > 6))
        return ", ".join(shown + static) or "no arguments"


def weak_reference(value: Any) -> Callable[[], Any]:
    """A reference that keeps nothing alive, where the object allows one."""
    try:
        return weakref.ref(value)
    except TypeError:  # an object without weak references is kept
        return lambda: value


def signature_of(
    call: _internals.JitCall,
    raised: bool = False,
    arguments: dict[str, Any] | None = None,
) -> Signature:
    """Take a call apart; `arguments` are those of the library that called JAX."""
    count = len(call.args)
    parameters = call.signature.parameters if call.signature else {}
    labels = [*list(parameters)[:count]]
    labels += [f"argument {i}" for i in range(len(labels), count)]
    fixed = {n % count for n in call.static_argnums if -count <= n < count}
    static = {labels[i]: call.args[i] for i in sorted(fixed)}
    given = sorted(f"{name} by position" for name in static)
    named = dict(call.kwargs)
    for name in call.static_argnames:
        default = getattr(parameters.get(name), "default", inspect.Parameter.empty)
        if name in named:
            static[name] = named.pop(name)
            given.append(f"{name}=")
        elif name not in static and default is not inspect.Parameter.empty:
            static[name] = default
    dynamic = [i for i in range(count) if i not in fixed]
    values, tree = jax.tree.flatten((tuple(call.args[i] for i in dynamic), named))
    form = [f"{len(dynamic)} by position"] * bool(dynamic)
    form += [f"{', '.join(sorted(named))} by name"] * bool(named)
    leaves = {}
    is_whole = len(values) == len(call.avals)
    for i, (name, aval) in enumerate(zip(call.arg_names, call.avals, strict=True)):
        leaves[name or f"leaf {i}"] = Leaf(
            shape=tuple(getattr(aval, "shape", ())),
            dtype=str(getattr(aval, "dtype", aval)),
            weak=bool(getattr(aval, "weak_type", False)),
            sharding=_mesh_place(getattr(aval, "sharding", None)),
            place=_place(values[i]) if is_whole else "",
        )
    found = Signature(
        fun=weak_reference(call.fun),
        depth=len([*_functions.layers(call.fun)]),
        leaves=leaves,
        static=static,
        tree=tree,
        names=tuple(labels[i] for i in dynamic),
        form=", ".join(form),
        static_form=", ".join(given),
        context=call.context,
        raised=raised,
    )
    if arguments is None or not is_whole:
        return found
    return replace(found, passed=_as_passed(found, values, arguments))


def _as_passed(
    found: Signature, values: list[Any], arguments: dict[str, Any]
) -> Signature:
    """The same call in terms of the arguments before a library took them apart.

    An array is known again since the library passes the object itself. What came
    to JAX and was no argument, such as a model that is itself the function, keeps the
    name that the library gave it.
    """
    static = {
        name: value
        for name, value in found.static.items()
        if name in arguments and equal(arguments[name], value)
    }
    dynamic = {k: v for k, v in arguments.items() if k not in static}
    unknown = dict(zip(map(id, values), found.leaves.items(), strict=True))
    named, leaves = dict(unknown), {}
    for name, value in _named_leaves(dynamic):
        if id(value) in named:
            leaves[name] = named[id(value)][1]
            unknown.pop(id(value), None)
        elif found.static and not isinstance(value, jax.Array):
            static[name] = value
    return replace(
        found,
        leaves=leaves | dict(unknown.values()),
        static=static,
        tree=jax.tree.structure(((), dynamic)),
        names=(),
    )


# --- what the reader passed, where a library took it apart ------------------------


def passed(fun: Fun) -> dict[str, Any] | None:
    """The arguments, by name, of the call that a library's wrapper is busy with.

    None where `fun` came to `jax.jit` without a wrapper that holds what `jax.jit` gave
    it, and is called as `wrapper(*args, **kwargs)`.
    """
    variadic = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    frame: Any = sys._getframe(1)
    while frame is not None and _functions.is_library(frame.f_code.co_filename):
        code, values = frame.f_code, frame.f_locals
        if code.co_flags & variadic == variadic and code.co_argcount == 1:
            wrapper = values.get(code.co_varnames[0])
            if _holds(wrapper, fun):
                first = 1 + code.co_kwonlyargcount
                args, kwargs = code.co_varnames[first : first + 2]
                return _bound(wrapper, values[args], values[kwargs])
        frame = frame.f_back
    return None


def _holds(wrapper: Any, fun: Fun) -> bool:
    """Whether it is a library's, and keeps the jitted `fun` among its attributes."""
    if not _functions.is_jitted(wrapper) or _functions.is_jax_jitted(wrapper):
        return False
    return any(
        _functions.is_jax_jitted(held) and getattr(held, "__wrapped__", None) is fun
        for held in getattr(wrapper, "__dict__", {}).values()
    )


def _bound(wrapper: Any, args: Any, kwargs: Any) -> dict[str, Any] | None:
    signature = _functions.signature_of(getattr(wrapper, "__wrapped__", wrapper))
    try:
        found = dict(signature.bind(*args, **kwargs).arguments)  # type: ignore[union-attr]
        _named_leaves(found)
    except Exception:  # no signature, another one, or a graph with a ring in it
        return None
    return found


def _named_leaves(arguments: dict[str, Any]) -> list[tuple[str, Any]]:
    """The leaves of arguments, each with its path from the argument's name on."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(arguments)
    return [
        (f"{argument.key}{jax.tree_util.keystr(tuple(path))}", leaf)
        for (argument, *path), leaf in leaves
    ]


# --- where arrays live ------------------------------------------------------------


def placements(run: _internals.JitRun) -> tuple[Placement, ...]:
    """Where the arrays of a call live, by the names of the arguments."""
    names = run.arg_names or tuple(f"leaf {i}" for i in range(len(run.leaves)))
    whole = passed(run.fun) if run.fun is not None else None
    known = {id(leaf): name for name, leaf in _named_leaves(whole or {})}
    return tuple(
        (known.get(id(leaf), name) or f"leaf {i}", _place(leaf))
        for i, (name, leaf) in enumerate(zip(names, run.leaves, strict=False))
    )


def _place(leaf: Any) -> str:
    """Where an array lives, or where a call would put a value of the host.

    After semicolons: that it is not bound to be there, and an unusual order of axes.
    """
    if isinstance(leaf, jax.core.Tracer):
        return ""
    if not isinstance(leaf, jax.Array):
        device: Any = jax.config.jax_default_device or jax.devices()[0]
        device = jax.devices(device)[0] if isinstance(device, str) else device
        return f"on {device.platform}:{device.id}; {LOOSE}"
    devices: Any = leaf.sharding.device_set
    names = sorted(f"{one.platform}:{one.id}" for one in devices)
    where = _mesh_place(leaf.sharding) or f"on {' and '.join(names)}"
    layout = getattr(getattr(leaf, "format", None), "layout", None)
    order = tuple(getattr(layout, "major_to_minor", None) or ())
    is_usual = order == tuple(range(len(order)))
    details = [LOOSE] * (not leaf.committed)
    details += [f"axes in the order {order}"] * (not is_usual)
    return "; ".join([where, *details])


def _mesh_place(sharding: Any) -> str:
    """A sharding's spec and mesh in words; an empty text where it names no mesh."""
    mesh = getattr(sharding, "mesh", None)
    if mesh is None or not mesh.shape:
        return ""
    axes = [repr(axis) for axis in sharding.spec]
    while axes and axes[-1] == "None":
        axes.pop()
    return f"P({', '.join(axes)}) on {mesh_words(mesh)}"
