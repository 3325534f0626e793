"""Why JAX did not know a call: what it looked like, against what came before."""

from __future__ import annotations

import inspect
import re
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax

from . import _internals

# A retrace is compared with this many earlier traces: enough to find the nearest,
# few enough that a thousand retraces stay cheap.
_COMPARED = 64


@dataclass(frozen=True, slots=True)
class Reason:
    """Why JAX traced or compiled again.

    Attributes:
        kind: one of "first call", "new shape", "new dtype", "weak type",
            "static value", "tree structure", "call form", "fresh function object",
            "changed configuration", "sharding", "earlier trace raised",
            "transformation", "cache emptied".
        text: what changed, from what to what.
    """

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}" if self.text else self.kind


# What a call looked like.


@dataclass(frozen=True, slots=True)
class _Leaf:
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
class _Form:
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
    fun: Callable[[], Any]
    leaves: dict[str, _Leaf]
    static: dict[str, Any]
    tree: Any
    form: _Form
    context: dict[str, Any]
    raised: bool

    def __str__(self) -> str:
        dynamic = [f"{name}: {leaf}" for name, leaf in self.leaves.items()]
        static = [f"{name}={_words(value)}" for name, value in self.static.items()]
        shown = dynamic[:6] + ([f"and {len(dynamic) - 6} more"] * (len(dynamic) > 6))
        return ", ".join(shown + static) or "no arguments"


Placement = tuple[str, str]


def _words(value: Any) -> str:
    """A short text for a value that is the same in each run."""
    if isinstance(value, types.FunctionType | type):
        return value.__qualname__
    text = re.sub(r" at 0x[0-9a-fA-F]+|0x[0-9a-fA-F]{6,}", "", repr(value))
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."


def _place(sharding: Any) -> str:
    """Where an array lives, in words: its mesh and spec, or its device.

    Empty for the sharding of an aval that names no mesh.
    """
    mesh = getattr(sharding, "mesh", None)
    if mesh is not None:
        axes = [
            f"{name}={size} {kind.name.lower()}"
            for (name, size), kind in zip(
                mesh.shape.items(), mesh.axis_types, strict=True
            )
        ]
        return f"{_spec(sharding.spec)} on mesh ({', '.join(axes)})" if axes else ""
    devices = getattr(sharding, "device_set", ())
    names = sorted(f"{device.platform}:{device.id}" for device in devices)
    return f"on {' and '.join(names)}" if names else ""


def _spec(spec: Any) -> str:
    axes = [repr(axis) for axis in spec]
    while axes and axes[-1] == "None":
        axes.pop()
    return f"P({', '.join(axes)})"


def _placement(leaf: Any) -> str:
    if not isinstance(leaf, jax.Array) or isinstance(leaf, jax.core.Tracer):
        return ""
    return _place(leaf.sharding)


def _weak_reference(fun: Callable) -> Callable[[], Any]:
    try:
        return weakref.ref(fun)
    except TypeError:  # an object without weak references is kept
        return lambda: fun


def _split_static(call: _internals.JitCall) -> tuple[list, dict, dict[str, Any], _Form]:
    """The dynamic positions and names, the static values by name, and the form."""
    parameters = call.signature.parameters if call.signature else {}
    names, count = list(parameters), len(call.args)
    positions = {n % count for n in call.static_argnums if -count <= n < count}
    static = {
        names[i] if i < len(names) else f"argument {i}": call.args[i]
        for i in sorted(positions)
    }
    by_position = [f"{name} by position" for name in static]
    static |= {k: v for k, v in call.kwargs.items() if k in call.static_argnames}
    by_name = [f"{k}=" for k in call.kwargs if k in call.static_argnames]
    dynamic = [arg for i, arg in enumerate(call.args) if i not in positions]
    named = {k: v for k, v in call.kwargs.items() if k not in call.static_argnames}
    form = _Form(
        len(dynamic), tuple(sorted(named)), (*sorted(by_position), *sorted(by_name))
    )
    for name in call.static_argnames:
        default = getattr(parameters.get(name), "default", inspect.Parameter.empty)
        if name not in static and default is not inspect.Parameter.empty:
            static[name] = default
    return dynamic, named, static, form


def signature_of(call: _internals.JitCall, raised: bool) -> Signature:
    dynamic, named, static, form = _split_static(call)
    values, tree = jax.tree.flatten((tuple(dynamic), named))
    same = len(values) == len(call.avals)
    leaves = {}
    for i, (name, aval) in enumerate(zip(call.arg_names, call.avals, strict=True)):
        leaves[name or f"leaf {i}"] = _Leaf(
            shape=tuple(getattr(aval, "shape", ())),
            dtype=str(getattr(aval, "dtype", aval)),
            weak=bool(getattr(aval, "weak_type", False)),
            sharding=_place(getattr(aval, "sharding", None)),
            place=_placement(values[i]) if same else "",
        )
    return Signature(
        fun=_weak_reference(call.fun),
        leaves=leaves,
        static=static,
        tree=tree,
        form=form,
        context=_internals.trace_context(),
        raised=raised,
    )


# Why it was not known.


def why(new: Signature, earlier: Sequence[Signature]) -> tuple[Reason, ...]:
    """The reasons for `new`, against the nearest of the earlier signatures."""
    if not earlier:
        return (Reason("first call", ""),)
    fun = new.fun()
    same = [old for old in earlier if old.fun() is fun][-_COMPARED:]
    if not same:
        text = "made anew, and JAX caches by function object"
        return (Reason("fresh function object", text),)
    # Nearest: the fewest differences; among equals, the latest.
    nearest = min(reversed(same), key=lambda old: _distance(new, old))
    return _differences(new, nearest) or _unexplained(nearest)


def _unexplained(old: Signature) -> tuple[Reason, ...]:
    if old.raised:
        text = "the trace before ended in an exception, and JAX keeps nothing of it"
        return (Reason("earlier trace raised", text),)
    text = "the same call was traced before: its entry was cleared or dropped"
    return (Reason("cache emptied", text),)


def _distance(new: Signature, old: Signature) -> int:
    """How many things differ; a text for each is made for the nearest only."""
    static = sum(
        not _equal(value, old.static.get(name)) for name, value in new.static.items()
    )
    leaves = sum(
        _apart(leaf, old.leaves.get(name)) for name, leaf in new.leaves.items()
    )
    context = not _equal(new.context, old.context)
    return static + leaves + context + (new.form != old.form) + (new.tree != old.tree)


def _apart(new: _Leaf, old: _Leaf | None) -> int:
    if old is None:
        return 1
    return (
        (new.shape != old.shape)
        + (new.dtype != old.dtype)
        + (new.weak != old.weak)
        + (new.sharding != old.sharding)
    )


def _differences(new: Signature, old: Signature) -> tuple[Reason, ...]:
    found = [
        *_configuration(new, old),
        *_static(new, old),
        *_structure(new, old),
        *_types(new, old),
    ]
    return tuple(found)


def _equal(a: Any, b: Any) -> bool:
    try:
        return type(a) is type(b) and bool(a == b)
    except Exception:  # a value that cannot be compared counts as another value
        return a is b


def _configuration(new: Signature, old: Signature) -> Iterator[Reason]:
    changed = [
        name
        for name in new.context
        if not _equal(new.context[name], old.context.get(name))
    ]
    if not changed:
        return
    texts = []
    for name in changed:
        before, now = _words(old.context.get(name)), _words(new.context[name])
        plain = name.removesuffix("_context_manager").replace("_", " ")
        name = plain if name.endswith("_context_manager") else name
        texts.append(f"{name} was {before}, now {now}")
    yield Reason("changed configuration", "; ".join(texts[:3]))


def _static_changes(new: Signature, old: Signature) -> list[str]:
    return [
        name
        for name, value in new.static.items()
        if name in old.static and not _equal(value, old.static[name])
    ]


def _static(new: Signature, old: Signature) -> Iterator[Reason]:
    texts = [
        f"{name} was {_words(old.static[name])}, now {_words(new.static[name])}"
        for name in _static_changes(new, old)
    ]
    texts += [f"{n} is now static" for n in new.static if n in old.leaves]
    texts += [f"{n} is no longer static" for n in old.static if n in new.leaves]
    if texts:
        yield Reason("static value", "; ".join(texts))


def _structure(new: Signature, old: Signature) -> Iterator[Reason]:
    valued = bool(_static_changes(new, old))
    dynamic = (new.form.positional, new.form.named)
    if dynamic != (old.form.positional, old.form.named) or (
        new.form.static != old.form.static and not valued
    ):
        yield Reason("call form", f"called with {old.form}, now with {new.form}")
    elif new.tree != old.tree:
        gained = [name for name in new.leaves if name not in old.leaves]
        lost = [name for name in old.leaves if name not in new.leaves]
        texts = [f"{_few(gained)} appeared"] * bool(gained)
        texts += [f"{_few(lost)} went"] * bool(lost)
        texts = texts or [f"was {_tree(old.tree)}, now {_tree(new.tree)}"]
        yield Reason("tree structure", "; ".join(texts))


def _tree(tree: Any) -> str:
    return re.sub(r"^PyTreeDef\(\(\((.*?),?\), \{\}\)\)$", r"\1", _words(tree))


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" * (len(names) > 3)
    return ", ".join(names[:3]) + more


def _types(new: Signature, old: Signature) -> Iterator[Reason]:
    pairs = [
        (name, old.leaves[name], leaf)
        for name, leaf in new.leaves.items()
        if name in old.leaves
    ]
    yield from _of_kind("new shape", pairs, lambda leaf: leaf.shape, _short)
    yield from _of_kind("new dtype", pairs, lambda leaf: leaf.dtype, _short)
    yield from _of_kind("weak type", pairs, lambda leaf: leaf.weak, _strength)
    yield from _of_kind("sharding", pairs, lambda leaf: leaf.sharding, _leaf_place)


def _of_kind(
    kind: str, pairs: list, key: Callable[[_Leaf], Any], text: Callable[[_Leaf], str]
) -> Iterator[Reason]:
    changed = [(name, a, b) for name, a, b in pairs if key(a) != key(b)]
    if changed:
        name, before, now = changed[0]
        more = f" (and {len(changed) - 1} more)" * (len(changed) > 1)
        yield Reason(kind, f"{name} was {text(before)}, now {text(now)}{more}")


def _short(leaf: _Leaf) -> str:
    return leaf.short


def _strength(leaf: _Leaf) -> str:
    return f"a {'weak' * leaf.weak or 'strong'} {leaf.dtype}"


def _leaf_place(leaf: _Leaf) -> str:
    return leaf.place or leaf.sharding or "on no mesh"


def placements(run: _internals.JitRun) -> tuple[Placement, ...]:
    return tuple(
        (name, _placement(leaf))
        for name, leaf in zip(run.arg_names, run.leaves, strict=False)
    )
