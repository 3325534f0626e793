"""Runs one function on one set of arguments, and waits for what it started."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import jax

from ._arrays import Path, State, is_concrete, paths, reach

# One sample lasts at least this long, by timing several calls together where one is
# shorter: a hundred times what reading the clock costs.
_SAMPLE_SECONDS = 50e-6

Wait = Callable[[Any], None]


def _copy(leaf: Any) -> Any:
    return leaf.copy() if is_concrete(leaf) else leaf


def _deleted(tree: Any) -> bool:
    leaves = jax.tree.leaves(tree)
    return any(is_concrete(leaf) and leaf.is_deleted() for leaf in leaves)


def no_wait(result: Any) -> None:
    """A result without JAX arrays is there when the call returns."""


def close_wait(result: Any) -> None:
    """Put away a coroutine that nobody will wait for."""
    result.close()


def method_wait(result: Any) -> None:
    """Wait for one array."""
    result.block_until_ready()


def effects_wait(result: Any) -> None:
    """Wait for side effects."""
    jax.effects_barrier()


def future_wait(result: Any) -> None:
    """Wait for a future, and for what it gives."""
    jax.block_until_ready(result.result())


def _path_wait(found: list[Path]) -> Wait:
    """Wait for arrays in objects that JAX does not look into."""

    def wait(result: Any) -> None:
        for path in found:
            array = reach(result, path)
            if is_concrete(array) and not array.is_deleted():
                array.block_until_ready()

    return wait


def _state_wait(wait: Wait, changed: list[tuple[str, Any, Path]]) -> Wait:
    """Wait for the result and for what the call put elsewhere."""

    def both(result: Any) -> None:
        wait(result)
        for _, root, path in changed:
            array = reach(root, path)
            if is_concrete(array) and not array.is_deleted():
                array.block_until_ready()

    return both


class Runner:
    """Runs one function on one set of arguments, and always waits for the result.

    Attributes:
        calls: how many calls one sample is the mean of.
        made: how many calls were made in all.
        notes: what a reader must know about the numbers.
        is_timed: whether the calls did what they were timed for.
    """

    def __init__(self, fn: Callable[..., Any], args: Any, kwargs: Any, limit: int):
        self.fn, self.args, self.kwargs = fn, args, kwargs
        self.limit = limit
        self.donates = False
        self.wait: Wait = jax.block_until_ready
        self.calls = 1
        self.made = 0
        self.notes: list[str] = []
        self.is_timed = True

    @property
    def is_spent(self) -> bool:
        """Whether another sample would go beyond the calls that are allowed."""
        return self.made + self.calls > self.limit

    def room(self, blocks: int, most: int) -> int:
        """How many samples a block may have, so that all blocks get some."""
        left = (self.limit - self.made) // self.calls // blocks - 1
        return min(max(left, 1), most)

    def first(self) -> float:
        """Seconds for one call; learns how to wait, and whether inputs are consumed.

        The caller's own arrays are never handed over: the call gets copies.
        """
        args, kwargs = self._arguments(copied=True)
        state = State.of(self.fn, args, kwargs)
        self.made += 1
        start = time.perf_counter()
        result = self.fn(*args, **kwargs)
        jax.block_until_ready([reach(result, path) for path in paths(result)])
        changed = state.changed()
        jax.block_until_ready([reach(root, path) for _, root, path in changed])
        seconds = time.perf_counter() - start
        self.donates = _deleted((args, kwargs))
        self._learn(result, changed)
        return seconds

    def _learn(self, result: Any, changed: list[tuple[str, Any, Path]]) -> None:
        self.wait, note = _way_to_wait(result)
        if _is_lazy(result):
            self.is_timed = False
        own = {id(self.args), *map(id, self.args), *map(id, self.kwargs.values())}
        kept = [one for one in changed if not self.donates or id(one[1]) not in own]
        if kept:
            names = ", ".join(dict.fromkeys(_described(*one) for one in kept))
            self.wait = _state_wait(self.wait, kept)
            note = (
                f"changes its own state ({_cut(names)}): each call starts from where "
                "the last one ended"
            )
        if note:
            self.notes.append(note)

    def _arguments(self, copied: bool) -> tuple[Any, Any]:
        if not copied:
            return self.args, self.kwargs
        args, kwargs = jax.block_until_ready(
            jax.tree.map(_copy, (self.args, self.kwargs))
        )
        return args, kwargs

    def sample(self) -> float:
        """Seconds a call, over `self.calls` calls."""
        self.made += self.calls
        if self.donates:
            return self._sample_donating()
        fn, args, kwargs, wait = self.fn, self.args, self.kwargs, self.wait
        again = range(self.calls)
        start = time.perf_counter()
        if kwargs:
            for _ in again:
                wait(fn(*args, **kwargs))
        elif wait is no_wait or wait is effects_wait:
            for _ in again:
                fn(*args)
            wait(None)
        else:
            for _ in again:
                wait(fn(*args))
        return (time.perf_counter() - start) / self.calls

    def _sample_donating(self) -> float:
        seconds = 0.0
        for _ in range(self.calls):
            args, kwargs = self._arguments(copied=True)
            start = time.perf_counter()
            self.wait(self.fn(*args, **kwargs))
            seconds += time.perf_counter() - start
        return seconds / self.calls

    def warm_up(self, budget: float) -> None:
        """Run until a sample is long enough to be timed; a tenth of the budget."""
        end = time.perf_counter() + budget / 10
        seconds = 0.0
        for _ in range(2):
            if self.made + 2 <= self.limit:
                seconds = self.sample()
        while seconds * self.calls < _SAMPLE_SECONDS:
            # Samples enough for an interval must be left.
            if self.made + 80 * self.calls > self.limit:
                break
            self.calls *= 2
            seconds = self.sample()
        for _ in range(18):
            if time.perf_counter() > end or self.made + 40 * self.calls > self.limit:
                break
            self.sample()


def _is_lazy(result: Any) -> bool:
    return (
        inspect.isgenerator(result)
        or inspect.iscoroutine(result)
        or inspect.isasyncgen(result)
        or isinstance(result, map | filter | zip)
    )


def _way_to_wait(result: Any) -> tuple[Wait, str]:
    """How to wait for a result, and what must be said about it."""
    if _is_lazy(result):
        kind, wait = type(result).__name__, no_wait
        if inspect.iscoroutine(result):
            result.close()
            wait = close_wait
        return wait, (
            f"returns a {kind}, whose work was not run: timed is the making of it. "
            "Measure what uses it up, such as lambda: list(f(x))"
        )
    if isinstance(result, jax.Array):
        return method_wait, ""
    if isinstance(result, Future):
        return future_wait, ""
    if asyncio.isfuture(result):
        return no_wait, "returns an asyncio future, which cannot be waited for here"
    leaves, found = jax.tree.leaves(result), paths(result)
    if found and len(found) == sum(map(is_concrete, leaves)):
        return jax.block_until_ready, ""
    if found:
        return _path_wait(found), ""
    if leaves:
        return no_wait, ""
    return effects_wait, (
        "returns nothing to wait for: timed until the calls had returned and "
        "their side effects were done"
    )


def _described(name: str, root: Any, path: Path) -> str:
    parts = (f"[{key!r}]" if kind == "item" else f".{key}" for kind, key in path[:2])
    return name + "".join(parts)


def _cut(names: str) -> str:
    return names if len(names) <= 60 else names[:57] + "..."
