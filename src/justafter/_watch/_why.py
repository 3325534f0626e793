"""Why JAX did not know a call: what it looked like, against what came before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ._signature import LOOSE, Leaf, Placement, Signature
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

    Example:
        >>> print(Reason("static value", "n was 1, now 2"))
        static value: n was 1, now 2
    """

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}" if self.text else self.kind


FIRST = Reason("first call", "")
UNKNOWN = Reason("cannot tell", "an argument raised an error when it was compared")


def why(new: Signature, earlier: Sequence[Signature]) -> tuple[Reason, ...]:
    """The reasons for `new`, against the nearest of the earlier signatures."""
    if not earlier:
        return (FIRST,)
    fun = new.fun()
    same = [old for old in earlier if old.fun() is fun][-_COMPARED:]
    if not same:
        if new.depth > 1 and all(old.depth != new.depth for old in earlier):
            return (Reason("transformation", "what was traced is made of it"),)
        text = "made anew, and JAX caches by function object"
        return (Reason("fresh function object", text),)
    # Nearest: the fewest kinds of difference; among equals, the latest.
    found = [(_reasons(new, old), old) for old in reversed(same)]
    reasons, nearest = min(found, key=lambda pair: len(pair[0]))
    return reasons or (_unexplained(nearest),)


def _reasons(new: Signature, old: Signature) -> tuple[Reason, ...]:
    came = tuple(_differences(new, old))
    if not came or new.passed is None or old.passed is None:
        return came
    # What a library made of the arguments decides; what was passed says it in words.
    return tuple(_differences(new.passed, old.passed)) or came


def _unexplained(old: Signature) -> Reason:
    if old.raised:
        text = "the trace before ended in an exception, and JAX keeps nothing of it"
        return Reason("earlier trace raised", text)
    text = "the same call was traced before: its entry was cleared or dropped"
    # Then its hash is another, and the entry is not found.
    if any(hasattr(value, "__dict__") for value in old.static.values()):
        text += ", or a static value was changed in place"
    return Reason("cache emptied", text)


def _differences(new: Signature, old: Signature) -> Iterator[Reason]:
    yield from _configuration(new.context, old.context)
    valued = [k for k in new.static if k in old.static]
    valued = [k for k in valued if not equal(new.static[k], old.static[k])]
    found = [c for k in valued for c in changes(k, old.static[k], new.static[k])]
    found += [(name, "is now static") for name in new.static if name in old.leaves]
    found += [(n, "is no longer static") for n in old.static if n in new.leaves]
    if found:
        yield Reason("static value", said(found))
    if new.form != old.form or (new.static_form != old.static_form and not valued):
        forms = ((one.form, one.static_form) for one in (old, new))
        was, now = (", ".join(filter(None, one)) or "no arguments" for one in forms)
        yield Reason("call form", f"called with {was}, now with {now}")
    elif new.tree != old.tree:
        yield Reason("tree structure", tree_change(new.names, old.tree, new.tree))
    yield from _types(new.leaves, old.leaves)


def _configuration(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Reason]:
    changed = [name for name in new if not equal(new[name], old.get(name))]
    # The axes of vmap and shard_map are in the settings, and are no settings.
    if "axis_env_state" in changed:
        changed.remove("axis_env_state")
        text = "the named axes of vmap or shard_map around the call are others"
        yield Reason("transformation", text)
    found = [c for k in changed for c in changes(_setting(k), old.get(k), new[k])]
    if found:
        yield Reason("changed configuration", said(found))


def _setting(name: str) -> str:
    plain = name.removesuffix("_context_manager").replace("_", " ")
    return plain if name.endswith("_context_manager") else name


def _types(new: dict[str, Leaf], old: dict[str, Leaf]) -> Iterator[Reason]:
    names = [name for name in new if name in old]
    for kind, field, text in _OF_TYPES:
        changed = [k for k in names if getattr(new[k], field) != getattr(old[k], field)]
        if changed:
            before, now = old[changed[0]], new[changed[0]]
            more = _more(changed)
            text_now = f"was {text(before, now)}, now {text(now, before)}"
            yield Reason(kind, f"{changed[0]} {text_now}{more}")


def _more(changed: Sequence[Any]) -> str:
    return f" (and {len(changed) - 1} more)" * (len(changed) > 1)


# Each text leaves out what another reason for the same pair of types says.


def _shape(one: Leaf, other: Leaf) -> str:
    return one.short if one.dtype == other.dtype else one.short[len(one.dtype) :]


def _dtype(one: Leaf, other: Leaf) -> str:
    return one.short if one.shape == other.shape else one.dtype


def _strength(one: Leaf, other: Leaf) -> str:
    strength = "weak" if one.weak else "strong"
    return f"a {strength} {one.dtype}" if one.dtype == other.dtype else strength


def _sharding(one: Leaf, other: Leaf) -> str:
    return one.place.partition(";")[0] or one.sharding or "on no mesh"


_OF_TYPES: tuple[tuple[str, str, Callable[[Leaf, Leaf], str]], ...] = (
    ("new shape", "shape", _shape),
    ("new dtype", "dtype", _dtype),
    ("weak type", "weak", _strength),
    ("sharding", "sharding", _sharding),
)


def why_moved(now: Sequence[Placement], earlier: Sequence[Placement]) -> Reason | None:
    """The reason why a traced program was compiled for arrays in other places."""
    before = dict(earlier)
    moved = [(k, before.get(k, ""), place) for k, place in now]
    moved = [one for one in moved if one[1] != one[2]]
    if not moved:
        return None
    name, *places = moved[0]
    more = _more(moved)
    (old, *was), (new, *is_) = (one.split("; ") for one in places)
    if old != new:
        text = f"was {old or 'elsewhere'}, now {new or 'elsewhere'}"
        return Reason("sharding", f"{name} {text}{more}")
    if (LOOSE in was) != (LOOSE in is_):
        verbs = ("was not", "is") if LOOSE in was else ("was", "is not")
        text = f"{verbs[0]} committed {old}, now {verbs[1]}"
        return Reason("commitment", f"{name} {text}{more}")
    was, is_ = (
        [one for one in words if one != LOOSE] or ["axes in the usual order"]
        for words in (was, is_)
    )
    return Reason("layout", f"{name} had {was[0]}, now {is_[0]}{more}")
