"""Why JAX did not know a call: what it looked like, against what came before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ._signature import Place, Signature
from ._words import changes, equal, said, tree_change

# A retrace is compared with this many earlier traces: enough to find the nearest,
# few enough that a thousand retraces stay cheap.
_COMPARED = 16


@dataclass(frozen=True, slots=True)
class Reason:
    """Why JAX traced or compiled again.

    Attributes:
        kind: one of "first call", "new shape", "new dtype", "weak type",
            "static value", "tree structure", "call form", "fresh function object",
            "changed configuration", "sharding", "earlier trace raised",
            "transformation", "commitment", "layout", "cache emptied", "cannot tell".
        text: what changed, from what to what; what did not change is left out.
    """

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}" if self.text else self.kind


FIRST = Reason("first call", "")
UNKNOWN = Reason("cannot tell", "an argument raised an error when it was compared")
FRESH = Reason("fresh function object", "another function object, and JAX caches by it")
RAISED = Reason(
    "earlier trace raised",
    "the trace before it raised an exception, so JAX kept no result",
)
DROPPED = Reason(
    "cache emptied",
    "the same call was known: its entry was cleared or dropped, or a static value was "
    "changed in place",
)
DERIVED = Reason(
    "transformation", "another program of the same trace, such as a derivative's"
)


def why(new: Signature, earlier: Sequence[Signature]) -> tuple[Reason, ...]:
    """The reasons for `new`, against the nearest of the earlier signatures."""
    if not earlier:
        return (FIRST,)
    fun = new.fun()
    same = [old for old in earlier if old.fun() is fun][-_COMPARED:]
    if not same:
        return (FRESH,)
    # Nearest: the fewest kinds of difference, in a structure of the same classes;
    # among equals, the latest.
    found = [(tuple(_differences(new, old)), old) for old in reversed(same)]

    def distance(pair: tuple[tuple[Reason, ...], Signature]) -> tuple[int, bool]:
        return len(pair[0]), _classes(pair[1].tree) != _classes(new.tree)

    reasons, nearest = min(found, key=distance)
    return reasons or (RAISED if nearest.raised else DROPPED,)


def _classes(tree: Any) -> list[Any]:
    """The classes of a structure's nodes, without keys and leaves."""
    inner = [one for child in tree.children() for one in _classes(child)]
    data = tree.node_data()
    return [data[0], *inner] if data else []


def _differences(new: Signature, old: Signature) -> Iterator[Reason]:
    yield from _configuration(new.context, old.context)
    valued = [k for k in new.static if k in old.static]
    valued = [k for k in valued if not equal(new.static[k], old.static[k])]
    found = [c for k in valued for c in changes(k, old.static[k], new.static[k])]
    found += [(name, "is now static") for name in new.static if name in old.leaves]
    found += [(n, "is no longer static") for n in old.static if n in new.leaves]
    if found:
        yield Reason("static value", said(found))
    if new.form != old.form and not valued:
        yield Reason("call form", f"called with {old.form}, now with {new.form}")
    elif new.tree != old.tree:
        yield Reason("tree structure", tree_change(new.names, old.tree, new.tree))
    pairs = {k: (old.leaves[k], new.leaves[k]) for k in new.leaves if k in old.leaves}
    for kind, part in _OF_TYPES.items():
        texts = {
            name: [
                leaf.place.sharding if kind == "sharding" and leaf.place else str(leaf)
                for leaf in pair
            ]
            for name, pair in pairs.items()
            if getattr(pair[0], part) != getattr(pair[1], part)
        }
        if texts:
            yield _changed(kind, texts)


_OF_TYPES = {
    "new shape": "shape",
    "new dtype": "dtype",
    "weak type": "weak",
    "sharding": "sharding",
}


def _changed(kind: str, texts: Mapping[str, Sequence[str]]) -> Reason:
    """A reason that names the first of the arguments that changed."""
    (name, (old, new)), *others = texts.items()
    more = f" (and {len(others)} more)" * bool(others)
    return Reason(kind, f"{name} was {old}, now {new}{more}")


def _configuration(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Reason]:
    changed = [name for name in new if not equal(new[name], old.get(name))]
    # The axes of vmap and shard_map are in the settings, and are no settings.
    if "axis_env_state" in changed:
        changed.remove("axis_env_state")
        text = "the call is inside other named axes of vmap or shard_map"
        yield Reason("transformation", text)
    found = [c for k in changed for c in changes(_setting(k), old.get(k), new[k])]
    if found:
        yield Reason("changed configuration", said(found))


def _setting(name: str) -> str:
    plain = name.removesuffix("_context_manager").replace("_", " ")
    return plain if name.endswith("_context_manager") else name


def why_moved(
    now: Mapping[str, Place | None], earlier: Mapping[str, Place | None]
) -> Reason | None:
    """The reason why a traced program was compiled for arrays in other places."""
    for kind in Place._fields:
        texts = {
            name: (getattr(earlier[name], kind), getattr(place, kind))
            for name, place in now.items()
            if place and earlier.get(name)
        }
        texts = {name: pair for name, pair in texts.items() if pair[0] != pair[1]}
        if texts:
            return _changed(kind, texts)
    return None
