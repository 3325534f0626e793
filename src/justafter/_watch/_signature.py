"""What a call looked like to JAX: types, structure, static values, settings."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import jax

from .. import _functions, _internals
from ._passed import named_leaves, passed
from ._words import equal, mesh_words, words

# The name of an argument and where its array lives.
Placement = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Leaf:
    """An array among the arguments, as its type has it."""

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
class Form:
    """How many arguments were passed by position, and which by name."""

    positional: int
    named: tuple[str, ...]
    static: tuple[str, ...]  # the static arguments that were passed, not defaulted

    def __str__(self) -> str:
        parts = [f"{self.positional} by position"] * bool(self.positional)
        parts += [f"{', '.join(self.named)} by name"] * bool(self.named)
        parts += self.static
        return ", ".join(parts) or "no arguments"


@dataclass(frozen=True, slots=True)
class Signature:
    """All that a trace depends on."""

    fun: Callable[[], Any]
    depth: int  # how many wrappers it has around the function it is counted under
    leaves: dict[str, Leaf]
    static: dict[str, Any]
    tree: Any
    names: tuple[str, ...]  # of the dynamic arguments passed by position
    form: Form
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


def mesh_place(sharding: Any) -> str:
    """A sharding's mesh and spec in words; an empty text where it names no mesh."""
    mesh = getattr(sharding, "mesh", None)
    if mesh is None or not mesh.shape:
        return ""
    return f"{_spec(sharding.spec)} on {mesh_words(mesh)}"


def _spec(spec: Any) -> str:
    axes = [repr(axis) for axis in spec]
    while axes and axes[-1] == "None":
        axes.pop()
    return f"P({', '.join(axes)})"


def place(leaf: Any) -> str:
    """Where an array lives, in words, and whether it is bound to be there."""
    if isinstance(leaf, jax.core.Tracer):
        return ""
    if not isinstance(leaf, jax.Array):
        return "on the host"
    if on_mesh := mesh_place(leaf.sharding):
        return on_mesh
    devices: Any = leaf.sharding.device_set
    names = sorted(f"{one.platform}:{one.id}" for one in devices)
    where = f"on {' and '.join(names)}"
    return where if leaf.committed else f"{where}, not committed"


def placements(run: _internals.JitRun) -> tuple[Placement, ...]:
    """Where the arrays of a call live, by the names of the arguments."""
    names = run.arg_names or tuple(f"leaf {i}" for i in range(len(run.leaves)))
    whole = passed(run.fun) if run.fun is not None else None
    known = {id(leaf): name for name, leaf in named_leaves(whole or {})}
    return tuple(
        (known.get(id(leaf), name) or f"leaf {i}", _bound_for(leaf))
        for i, (name, leaf) in enumerate(zip(names, run.leaves, strict=False))
    )


def _bound_for(leaf: Any) -> str:
    """Where a call puts an array: from the host, where an uncommitted one would be."""
    if isinstance(leaf, jax.Array | jax.core.Tracer):
        return place(leaf) + _layout(leaf)
    device: Any = jax.config.jax_default_device or jax.devices()[0]
    if isinstance(device, str):
        device = jax.devices(device)[0]
    return f"on {device.platform}:{device.id}, not committed"


def _layout(leaf: Any) -> str:
    """The order of an array's axes in memory, where it is not the usual one."""
    layout = getattr(getattr(leaf, "format", None), "layout", None)
    order = tuple(getattr(layout, "major_to_minor", None) or ())
    usual = order == tuple(range(len(order)))
    return "" if usual else f", axes in the order {order}"


def weak_reference(value: Any) -> Callable[[], Any]:
    """A reference that keeps nothing alive, where the object allows one."""
    try:
        return weakref.ref(value)
    except TypeError:  # an object without weak references is kept
        return lambda: value


@dataclass(frozen=True, slots=True)
class _Parts:
    """A call's arguments, the static ones apart."""

    dynamic: list[Any]
    named: dict[str, Any]
    static: dict[str, Any]
    names: tuple[str, ...]
    form: Form


def _split(call: _internals.JitCall) -> _Parts:
    parameters = call.signature.parameters if call.signature else {}
    names, count = list(parameters), len(call.args)
    positions = {n % count for n in call.static_argnums if -count <= n < count}
    labels = [names[i] if i < len(names) else f"argument {i}" for i in range(count)]
    static = {labels[i]: call.args[i] for i in sorted(positions)}
    by_position = [f"{name} by position" for name in static]
    static |= {k: v for k, v in call.kwargs.items() if k in call.static_argnames}
    by_name = [f"{k}=" for k in call.kwargs if k in call.static_argnames]
    dynamic = [i for i in range(count) if i not in positions]
    named = {k: v for k, v in call.kwargs.items() if k not in call.static_argnames}
    passed = (*sorted(by_position), *sorted(by_name))
    form = Form(len(dynamic), tuple(sorted(named)), passed)
    for name in call.static_argnames:
        default = getattr(parameters.get(name), "default", inspect.Parameter.empty)
        if name not in static and default is not inspect.Parameter.empty:
            static[name] = default
    values = [call.args[i] for i in dynamic]
    return _Parts(values, named, static, tuple(labels[i] for i in dynamic), form)


def signature_of(
    call: _internals.JitCall,
    raised: bool = False,
    arguments: dict[str, Any] | None = None,
) -> Signature:
    """Take a call apart.

    Args:
        call: what came to JAX.
        raised: whether its trace ended in an exception.
        arguments: what was passed to the library that called JAX, by name.
    """
    parts = _split(call)
    values, tree = jax.tree.flatten((tuple(parts.dynamic), parts.named))
    same = len(values) == len(call.avals)
    leaves = {}
    for i, (name, aval) in enumerate(zip(call.arg_names, call.avals, strict=True)):
        leaves[name or f"leaf {i}"] = Leaf(
            shape=tuple(getattr(aval, "shape", ())),
            dtype=str(getattr(aval, "dtype", aval)),
            weak=bool(getattr(aval, "weak_type", False)),
            sharding=mesh_place(getattr(aval, "sharding", None)),
            place=place(values[i]) if same else "",
        )
    found = Signature(
        fun=weak_reference(call.fun),
        depth=len([*_functions.layers(call.fun)]),
        leaves=leaves,
        static=parts.static,
        tree=tree,
        names=parts.names,
        form=parts.form,
        context=call.context,
        raised=raised,
    )
    if arguments is None or len(leaves) != len(values):
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
    for name, value in named_leaves(dynamic):
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
