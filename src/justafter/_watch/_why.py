"""Why JAX did not know a call: what it looked like, against what came before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ._signature import Leaf, Placement, Signature
from ._words import change, changes, equal, told, tree_change

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
        return (_another_function(new, earlier),)
    # Nearest: the fewest kinds of difference; among equals, the latest.
    found = [(_reasons(new, old), old) for old in reversed(same)]
    reasons, nearest = min(found, key=lambda pair: len(pair[0]))
    return reasons or _unexplained(nearest)


def _reasons(new: Signature, old: Signature) -> tuple[Reason, ...]:
    came = tuple(_differences(new, old))
    if not came or new.passed is None or old.passed is None:
        return came
    # What a library made of the arguments decides; what was passed says it in words.
    return tuple(_differences(new.passed, old.passed)) or came


def _another_function(new: Signature, earlier: Sequence[Signature]) -> Reason:
    if new.depth > 1 and all(old.depth != new.depth for old in earlier):
        return Reason("transformation", "what was traced is made of it")
    text = "made anew, and JAX caches by function object"
    return Reason("fresh function object", text)


def _unexplained(old: Signature) -> tuple[Reason, ...]:
    if old.raised:
        text = "the trace before ended in an exception, and JAX keeps nothing of it"
        return (Reason("earlier trace raised", text),)
    text = "the same call was traced before: its entry was cleared or dropped"
    # Then its hash is another, and the entry is not found.
    if any(hasattr(value, "__dict__") for value in old.static.values()):
        text += ", or a static value was changed in place"
    return (Reason("cache emptied", text),)


def _differences(new: Signature, old: Signature) -> Iterator[Reason]:
    yield from _configuration(new, old)
    yield from _static(new, old)
    yield from _structure(new, old)
    yield from _types(new, old)


def _configuration(new: Signature, old: Signature) -> Iterator[Reason]:
    changed = [
        name
        for name in new.context
        if not equal(new.context[name], old.context.get(name))
    ]
    if not changed:
        return
    # The axes of vmap and shard_map are in the settings, and are no settings.
    if "axis_env_state" in changed:
        text = "the named axes of vmap or shard_map around the call are others"
        yield Reason("transformation", text)
    texts = [
        change(_setting(name), old.context.get(name), new.context[name])
        for name in changed
        if name != "axis_env_state"
    ]
    if texts:
        yield Reason("changed configuration", "; ".join(texts[:3]))


def _setting(name: str) -> str:
    plain = name.removesuffix("_context_manager").replace("_", " ")
    return plain if name.endswith("_context_manager") else name


def _static_changes(new: Signature, old: Signature) -> list[str]:
    return [
        name
        for name, value in new.static.items()
        if name in old.static and not equal(value, old.static[name])
    ]


def _static(new: Signature, old: Signature) -> Iterator[Reason]:
    names = _static_changes(new, old)
    found = [
        one
        for name in names
        for one in changes(name, old.static[name], new.static[name])
    ]
    found += [(name, "is now static") for name in new.static if name in old.leaves]
    found += [(n, "is no longer static") for n in old.static if n in new.leaves]
    if found:
        yield Reason("static value", told(found))


def _structure(new: Signature, old: Signature) -> Iterator[Reason]:
    valued = bool(_static_changes(new, old))
    dynamic = (new.form.positional, new.form.named)
    if dynamic != (old.form.positional, old.form.named) or (
        new.form.static != old.form.static and not valued
    ):
        yield Reason("call form", f"called with {old.form}, now with {new.form}")
    elif new.tree != old.tree:
        yield Reason("tree structure", tree_change(new.names, old.tree, new.tree))


Pair = tuple[str, Leaf, Leaf]


def _types(new: Signature, old: Signature) -> Iterator[Reason]:
    pairs = [
        (name, old.leaves[name], leaf)
        for name, leaf in new.leaves.items()
        if name in old.leaves
    ]
    yield from _of_kind("new shape", pairs, lambda leaf: leaf.shape, _shape)
    yield from _of_kind("new dtype", pairs, lambda leaf: leaf.dtype, _dtype)
    yield from _of_kind("weak type", pairs, lambda leaf: leaf.weak, _strength)
    yield from _of_kind("sharding", pairs, lambda leaf: leaf.sharding, _sharding)


def _of_kind(
    kind: str,
    pairs: list[Pair],
    key: Callable[[Leaf], Any],
    text: Callable[[Leaf, Leaf], str],
) -> Iterator[Reason]:
    changed = [(name, a, b) for name, a, b in pairs if key(a) != key(b)]
    if changed:
        name, before, now = changed[0]
        more = f" (and {len(changed) - 1} more)" * (len(changed) > 1)
        was, is_ = text(before, now), text(now, before)
        yield Reason(kind, f"{name} was {was}, now {is_}{more}")


# Each text leaves out what another reason for the same pair of types says.


def _shape(one: Leaf, other: Leaf) -> str:
    return one.short if one.dtype == other.dtype else one.short[len(one.dtype) :]


def _dtype(one: Leaf, other: Leaf) -> str:
    return one.short if one.shape == other.shape else one.dtype


def _strength(one: Leaf, other: Leaf) -> str:
    strength = "weak" if one.weak else "strong"
    return f"a {strength} {one.dtype}" if one.dtype == other.dtype else strength


def _sharding(one: Leaf, other: Leaf) -> str:
    return _where(one.place) if one.place else one.sharding or "on no mesh"


# --- compilations -----------------------------------------------------------------


def why_moved(now: Sequence[Placement], earlier: Sequence[Placement]) -> Reason | None:
    """The reason why a traced program was compiled for arrays in other places."""
    before = dict(earlier)
    moved = [(name, before.get(name, ""), place) for name, place in now]
    moved = [(name, a, b) for name, a, b in moved if a != b]
    if not moved:
        return None
    name, old, new = moved[0]
    more = f" (and {len(moved) - 1} more)" * (len(moved) > 1)
    axes = ", axes in the order "
    (old, _, was), (new, _, is_) = old.partition(axes), new.partition(axes)
    if old == new:
        was, is_ = was or "the usual order", is_ or "the usual order"
        return Reason("layout", f"{name} had its axes in {was}, now in {is_}{more}")
    loose = ", not committed"
    if old.removesuffix(loose) == new.removesuffix(loose):
        verb = "was committed" if new.endswith(loose) else "was not committed"
        now_text = "is not" if new.endswith(loose) else "is"
        where = old.removesuffix(loose)
        return Reason("commitment", f"{name} {verb} {where}, now {now_text}{more}")
    return Reason("sharding", f"{name} was {_where(old)}, now {_where(new)}{more}")


def _where(place: str) -> str:
    return place.removesuffix(", not committed") or "elsewhere"
