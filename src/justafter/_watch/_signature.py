"""What a call looked like to JAX: types, structure, static values, settings."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax

from .._internals import _events
from ._words import mesh_words, words


class Place(NamedTuple):
    """Where an array lives; each field goes by the reason that it is."""

    sharding: str
    commitment: str
    layout: str


# By the name of an argument; None for what is traced, and lives nowhere.
Places = dict[str, Place | None]


@dataclass(frozen=True, slots=True)
class Leaf:
    """An array among the arguments, by its type."""

    shape: tuple[int, ...]
    dtype: str
    weak: bool
    sharding: str  # part of the type: only on a mesh
    # Of the array itself, for the words only: JAX's trace does not depend on it.
    place: Place | None = field(compare=False)

    def __str__(self) -> str:
        sizes = ",".join(map(str, self.shape))
        return f"{'weak ' * self.weak}{self.dtype}[{sizes}]"


@dataclass(frozen=True, slots=True)
class Signature:
    """All that a trace depends on."""

    fun: Callable[[], Any]
    leaves: dict[str, Leaf]
    static: dict[str, Any]
    tree: Any
    names: tuple[str, ...]  # of the dynamic arguments passed by position
    form: str  # how many were passed by position, and which by name
    context: dict[str, Any]
    raised: bool
    # Why it was traced, and where its arrays lived each time that it was compiled.
    reasons: tuple[Any, ...] = ()
    placed: list[Places] = field(default_factory=list)

    def __str__(self) -> str:
        dynamic = [f"{name}: {leaf}" for name, leaf in self.leaves.items()]
        static = [f"{name}={words(value)}" for name, value in self.static.items()]
        shown = dynamic[:6] + ([f"and {len(dynamic) - 6} more"] * (len(dynamic) > 6))
        return ", ".join(shown + static) or "no arguments"

    def is_of(self, run: _events.JitRun) -> bool:
        """Whether a program that is run was traced so."""
        avals = [jax.typeof(leaf) for leaf in run.leaves]
        types = [(tuple(aval.shape), str(aval.dtype)) for aval in avals]
        own = [(leaf.shape, leaf.dtype) for leaf in self.leaves.values()]
        return self.fun() is run.fun and own == types


def weak_reference(value: Any) -> Callable[[], Any]:
    """A reference that keeps nothing alive, where the object allows one."""
    try:
        return weakref.ref(value)
    except TypeError:  # an object without weak references is kept
        return lambda: value


def signature_of(call: _events.JitCall, raised: bool = False) -> Signature:
    """Take a call apart."""
    count = len(call.args)
    parameters = call.signature.parameters if call.signature else {}
    labels = [*list(parameters)[:count]]
    labels += [f"argument {i}" for i in range(len(labels), count)]
    fixed = {n % count for n in call.static_argnums if -count <= n < count}
    static = {labels[i]: call.args[i] for i in sorted(fixed)}
    named = dict(call.kwargs)
    for name in call.static_argnames:
        default = getattr(parameters.get(name), "default", inspect.Parameter.empty)
        if name in named:
            static[name] = named.pop(name)
        elif name not in static and default is not inspect.Parameter.empty:
            static[name] = default
    dynamic = [i for i in range(count) if i not in fixed]
    values, tree = jax.tree.flatten((tuple(call.args[i] for i in dynamic), named))
    form = [f"{count} by position"] * bool(count)
    form += [f"{', '.join(sorted(call.kwargs))} by name"] * bool(call.kwargs)
    is_whole = len(values) == len(call.avals)
    places = map(_place, values if is_whole else [None] * len(call.avals))
    leaves = {
        name or f"leaf {i}": Leaf(
            shape=tuple(getattr(aval, "shape", ())),
            dtype=str(getattr(aval, "dtype", aval)),
            weak=bool(getattr(aval, "weak_type", False)),
            sharding=_mesh_place(getattr(aval, "sharding", None)),
            place=place,
        )
        for i, (name, aval, place) in enumerate(
            zip(call.arg_names, call.avals, places, strict=True)
        )
    }
    return Signature(
        fun=weak_reference(call.fun),
        leaves=leaves,
        static=static,
        tree=tree,
        names=tuple(labels[i] for i in dynamic),
        form=", ".join(form) or "no arguments",
        context=call.context,
        raised=raised,
    )


def places_of(run: _events.JitRun) -> Places:
    """Where the arrays of a call live."""
    names = run.arg_names or ("",) * len(run.leaves)
    pairs = enumerate(zip(names, run.leaves, strict=False))
    return {name or f"leaf {i}": _place(leaf) for i, (name, leaf) in pairs}


def _place(leaf: Any) -> Place | None:
    """Where an array lives, or where a call would put a value of the host."""
    if isinstance(leaf, jax.core.Tracer):
        return None
    loose, usual = "not committed", "axes in the usual order"
    if not isinstance(leaf, jax.Array):
        device: Any = jax.config.jax_default_device or jax.devices()[0]
        device = jax.devices(device)[0] if isinstance(device, str) else device
        return Place(f"on {device.platform}:{device.id}", loose, usual)
    devices: Any = leaf.sharding.device_set
    names = sorted(f"{one.platform}:{one.id}" for one in devices)
    layout = getattr(getattr(leaf, "format", None), "layout", None)
    order = tuple(getattr(layout, "major_to_minor", None) or ())
    return Place(
        _mesh_place(leaf.sharding) or f"on {' and '.join(names)}",
        "committed" if leaf.committed else loose,
        usual if order == tuple(range(len(order))) else f"axes in the order {order}",
    )


def _mesh_place(sharding: Any) -> str:
    """A sharding's spec and mesh in words; an empty text where it names no mesh."""
    mesh = getattr(sharding, "mesh", None)
    if mesh is None or not mesh.shape:
        return ""
    axes = [repr(axis) for axis in sharding.spec]
    while axes and axes[-1] == "None":
        axes.pop()
    return f"P({', '.join(axes)}) on {mesh_words(mesh)}"
