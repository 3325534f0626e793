"""Runs one function on one set of arguments, and waits for what it started."""

from __future__ import annotations

import io
import math
import time
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import jax

from ._state import State, everything, is_concrete, is_lazy, reach

# One sample lasts at least this long, by timing several calls together where one is
# shorter: a hundred times what reading the clock costs.
_SAMPLE_SECONDS = 50e-6
# Calls before the first sample, as far as they fit into a tenth of the budget.
_WARM_UPS = 20
_MAKING = "only making it was timed"

Wait = Callable[[Any], None]


class Runner:
    """Runs one function on one set of arguments, and always waits for the result.

    Attributes:
        calls: how many calls one sample is the mean of.
        notes: what a reader must know about the numbers.
        is_timed: whether the calls did what they were timed for.
    """

    def __init__(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> None:
        for name, value in [*enumerate(args), *kwargs.items()]:
            if any(map(is_lazy, jax.tree.leaves(value, is_leaf=is_lazy))):
                label = f"argument {name}" if isinstance(name, int) else name
                raise ValueError(
                    f"{label} is an iterator, which one call uses up: pass a list, or "
                    "make it anew in each call, measure(lambda: f(iter(items)))"
                )
        self.fn, self.args, self.kwargs = fn, args, kwargs
        self.calls = 1
        self.notes: list[str] = []
        self.is_timed = True
        self._donates = False
        self._wait: Wait = jax.block_until_ready

    def first(self) -> float:
        """Seconds for one call; learns how to wait, and whether inputs are consumed.

        The call never gets the caller's own arrays, only copies.
        """
        args, kwargs = self._copied()
        copies = list(filter(is_concrete, jax.tree.leaves((args, kwargs))))
        state = State(self.fn, args, kwargs)
        start = time.perf_counter()
        result = self.fn(*args, **kwargs)
        self._wait, note = _way_to_wait(result)
        self._wait(result)
        for array in state.arrays():
            _wait_for(array)
        seconds = time.perf_counter() - start
        state.refuse_use()
        self._donates = any(one.is_deleted() for one in copies)
        self.is_timed = not note.endswith(_MAKING)
        self.notes += [note] * bool(note)
        return seconds

    def _find_state(self) -> None:
        """Call once more, to find the arrays that each call puts into objects."""
        args, kwargs = self._copied() if self._donates else (self.args, self.kwargs)
        state, before = State(self.fn, args, kwargs), self._wait
        before(self.fn(*args, **kwargs))
        state.refuse_use()
        arrays = state.replaced()

        def wait(result: Any) -> None:
            before(result)
            for get in arrays:
                _wait_for(get())

        self._wait = wait if arrays else before

    def _copied(self) -> tuple[Any, Any]:
        def copy(leaf: Any) -> Any:
            return leaf.copy().block_until_ready() if is_concrete(leaf) else leaf

        args, kwargs = jax.tree.map(copy, (self.args, self.kwargs))
        return args, kwargs

    def sample(self) -> float:
        """Seconds a call, over `self.calls` calls."""
        fn, wait, clock = self.fn, self._wait, time.perf_counter
        seconds, again = 0.0, range(self.calls)
        if self._donates:
            for _ in again:
                args, kwargs = self._copied()
                start = clock()
                wait(fn(*args, **kwargs))
                seconds += clock() - start
            return seconds / self.calls
        if self.args or self.kwargs:
            fn = partial(fn, *self.args, **self.kwargs)
        start = clock()
        for _ in again:
            wait(fn())
        return (clock() - start) / self.calls

    def warm_up(self, budget: float) -> None:
        """Run until a sample is long enough to be timed; a tenth of the budget."""
        self._find_state()
        end = time.perf_counter() + budget / 10
        seconds = min(self.sample() for _ in range(2))
        while seconds * self.calls < _SAMPLE_SECONDS:
            wanted = _SAMPLE_SECONDS / seconds if seconds else math.inf
            self.calls = min(math.ceil(1.2 * wanted), 8 * self.calls)
            seconds = min(seconds, self.sample())
        for _ in range(_WARM_UPS):
            if time.perf_counter() > end:
                break
            self.sample()


def _wait_for(value: Any) -> None:
    if is_concrete(value) and not value.is_deleted():
        value.block_until_ready()


def _way_to_wait(result: Any) -> tuple[Wait, str]:
    """How to wait for a result, and what must be said about it."""
    if isinstance(result, jax.Array):
        return lambda one: one.block_until_ready(), ""
    inside = list(everything(result))
    paths = list({id(one): p for p, one in inside if is_concrete(one)}.values())

    def wait(result: Any) -> None:
        if isinstance(result, types.CoroutineType):
            result.close()
        for path in paths:
            _wait_for(reach(result, path))

    unrun = (
        one for _, one in inside if is_lazy(one) and not isinstance(one, io.IOBase)
    )
    lazy = next(unrun, None)
    if lazy is not None:
        where = "" if lazy is result else " inside"
        kind = type(lazy).__name__
        return wait, f"returns a {kind}{where}, whose work was not run: {_MAKING}"
    if isinstance(result, types.FunctionType | types.MethodType | partial):
        return wait, f"returns a function, which was not called: {_MAKING}"
    if paths or jax.tree.leaves(result):
        return wait, ""
    return lambda _: jax.effects_barrier(), (
        "returns nothing to wait for: timed until the call had returned and its side "
        "effects were done"
    )
