"""Which equation reads which equation's result, through inner jaxprs as well."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

# A search that reaches further than this explains nothing any more.
_FARTHEST, _MOST = 12, 400


@dataclass(frozen=True)
class Scope:
    """One jaxpr at one place: the equation that holds it, and the jaxpr."""

    holder: int | None
    around: int | None
    jaxpr: Any


class Graph:
    """The flow of values between the equations of a jaxpr and of those inside it.

    Args:
        nodes: each equation of JAX, with the number of its scope.
        scopes: the jaxprs that they are in.
    """

    def __init__(self, nodes: list[tuple[Any, int]], scopes: list[Scope]) -> None:
        self._nodes, self._scopes = nodes, scopes
        self._defined = {
            (scope, id(var)): (index, place)
            for index, (eqn, scope) in enumerate(nodes)
            for place, var in enumerate(eqn.outvars)
        }
        self._inner: dict[int, list[int]] = {}
        for number, scope in enumerate(scopes):
            if scope.holder is not None:
                self._inner.setdefault(scope.holder, []).append(number)
        self._before: dict[int, set[int]] = {}
        self._after: dict[int, set[int]] | None = None

    def producers(self, index: int) -> set[int]:
        """The equations whose results an equation reads."""
        if index not in self._before:
            eqn, scope = self._nodes[index]
            found: set[int] = set()
            for var in eqn.invars:
                self._makers(scope, var, found, set())
            self._before[index] = found
        return self._before[index]

    def consumers(self, index: int) -> set[int]:
        """The equations that read an equation's results."""
        if self._after is None:
            self._after = {}
            for reader in range(len(self._nodes)):
                for maker in self.producers(reader):
                    self._after.setdefault(maker, set()).add(reader)
        return self._after.get(index, set())

    def results(self) -> set[int]:
        """The equations that make the outermost jaxpr's results."""
        found: set[int] = set()
        for var in self._scopes[0].jaxpr.outvars:
            self._makers(0, var, found, set())
        return found

    def _makers(
        self, scope: int, var: Any, found: set[int], seen: set[tuple[int, int]]
    ) -> None:
        if hasattr(var, "val") or (scope, id(var)) in seen:
            return
        seen.add((scope, id(var)))
        if (scope, id(var)) in self._defined:
            index, place = self._defined[scope, id(var)]
            found.add(index)
            for inner in self._inner.get(index, []):
                for one in _aligned(self._scopes[inner].jaxpr.outvars, place, index):
                    self._makers(inner, one, found, seen)
            return
        self._passed(scope, var, found, seen)

    def _passed(
        self, scope: int, var: Any, found: set[int], seen: set[tuple[int, int]]
    ) -> None:
        """Follow an inner jaxpr's input to what the equation around it passes."""
        here = self._scopes[scope]
        if here.holder is None or here.around is None:
            return
        eqn, _ = self._nodes[here.holder]
        inputs = list(here.jaxpr.invars)
        places = [place for place, one in enumerate(inputs) if one is var]
        if not places:  # a constant of the jaxpr
            return
        # A branch gets all operands but the first, which chooses it.
        operands = eqn.invars[1:] if eqn.primitive.name == "cond" else eqn.invars
        known = len(operands) == len(inputs)
        for one in [operands[places[0]]] if known else operands:
            self._makers(here.around, one, found, seen)
        if eqn.primitive.name in ("scan", "while"):  # a carry comes round again
            for one in here.jaxpr.outvars:
                self._makers(scope, one, found, seen)


def _aligned(variables: Any, place: int, index: int) -> list[Any]:
    values = list(variables)
    return [values[place]] if place < len(values) else values


def nearest(
    starts: Iterable[int],
    step: Callable[[int], set[int]],
    wanted: Callable[[int], bool],
    passes: Callable[[int], bool],
) -> set[int]:
    """The wanted equations that the fewest steps lead to, past others that pass."""
    layer, seen = set(starts), set(starts)
    for _ in range(_FARTHEST):
        layer = {after for one in layer for after in step(one)} - seen
        if found := set(filter(wanted, layer)):
            return found
        seen |= layer
        layer = set(filter(passes, layer))
        if not layer or len(seen) > _MOST:
            break
    return set()
