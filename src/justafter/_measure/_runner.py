"""Runs one function on one set of arguments, and waits for what it started."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import io
import time
import types
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any

import jax

from ._arrays import Change, Path, State, everything, is_concrete, newest, reach

# One sample lasts at least this long, by timing several calls together where one is
# shorter: a hundred times what reading the clock costs.
_SAMPLE_SECONDS = 50e-6

_NOTHING = (
    "returns nothing to wait for: timed until the calls had returned and their side "
    "effects were done"
)

Wait = Callable[[Any], None]


def _copy(leaf: Any) -> Any:
    return leaf.copy().block_until_ready() if is_concrete(leaf) else leaf


def _deleted(tree: Any) -> bool:
    leaves = jax.tree.leaves(tree, is_leaf=is_lazy)
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


def finish(value: Any) -> None:
    """Wait for one thing that was started: an array, a future, a thread."""
    if isinstance(value, Future):
        value = jax.block_until_ready(value.result())
    elif isinstance(value, Thread | BaseProcess):
        value.join()
    elif is_concrete(value) and not value.is_deleted():
        value.block_until_ready()


def _path_wait(found: list[Path]) -> Wait:
    """Wait for what is started in objects that JAX does not look into."""

    def wait(result: Any) -> None:
        for path in found:
            finish(reach(result, path))

    return wait


def _state_wait(wait: Wait, changed: list[Change]) -> Wait:
    """Wait for the result and for what the call put elsewhere."""
    places = [(root, path) for _, root, path in changed]
    arrays = [place for place in places if is_concrete(reach(*place))]
    grown = [
        place for place in places if any(True for _ in _started(newest(reach(*place))))
    ]

    def both(result: Any) -> None:
        wait(result)
        for place in arrays:
            finish(reach(*place))
        for place in grown:
            for _, one in everything(newest(reach(*place))):
                finish(one)

    return both if arrays or grown else wait


def is_lazy(result: Any) -> bool:
    """Whether a value is work that is still to be done; a file is none."""
    if inspect.iscoroutine(result) or inspect.isasyncgen(result):
        return True
    return isinstance(result, Iterator) and not isinstance(result, io.IOBase)


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
        self._changes: list[Change] = []

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
        with self._blaming():
            result = self.fn(*args, **kwargs)
        self.wait, note = _way_to_wait(result)
        self.wait(result)
        changed = state.changed()
        _state_wait(no_wait, changed)(result)
        seconds = time.perf_counter() - start
        self.donates = _deleted((args, kwargs))
        if _lazy_in(result) is not None:
            self.is_timed = False
        self._changes = self._kept(changed)
        wait = _state_wait(self.wait, self._changes)
        if note and (note != _NOTHING or wait is self.wait):
            self.notes.append(note)
        self.wait = wait
        return seconds

    def _kept(self, changed: list[Change]) -> list[Change]:
        """The changes that the next call meets: not those of a copy that it got."""
        own = {id(self.args), *map(id, self.args), *map(id, self.kwargs.values())}
        return [one for one in changed if not self.donates or id(one[1]) not in own]

    def confirm(self) -> None:
        """Call once more, to tell state from what the first call made for all others.

        What is changed again starts each call from where the last one ended.
        """
        if not self._changes:
            return
        if self.made + 1 < self.limit:  # one call is left for a sample
            args, kwargs = self._arguments(copied=self.donates)
            state = State.of(self.fn, args, kwargs)
            self.made += 1
            with self._blaming():
                self.wait(self.fn(*args, **kwargs))
            self._changes = self._kept(state.changed())
        if self._changes:
            names = ", ".join(dict.fromkeys(_described(*one) for one in self._changes))
            self.notes.append(
                f"changes its own state ({_cut(names)}): each call starts from where "
                "the last one ended"
            )

    def _arguments(self, copied: bool) -> tuple[Any, Any]:
        if not copied:
            return self.args, self.kwargs
        given = (self.args, self.kwargs)
        args, kwargs = jax.tree.map(_copy, given, is_leaf=is_lazy)
        return args, kwargs

    @contextlib.contextmanager
    def _blaming(self) -> Iterator[None]:
        """Say which call an error is of, where earlier ones had none."""
        try:
            yield
        except Exception as error:
            first = self.made - self.calls + 1
            which = f"call {first}" if self.calls == 1 else f"calls {first}"
            which += f" to {self.made}" * (self.calls > 1)
            if first > 1:
                error.add_note(
                    f"raised in {which} of those that measure makes, all with the same "
                    "arguments; the ones before raised nothing"
                )
            raise

    def sample(self) -> float:
        """Seconds a call, over `self.calls` calls."""
        self.made += self.calls
        with self._blaming():
            return self._sample_donating() if self.donates else self._sample()

    def _sample(self) -> float:
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
        self.confirm()
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


def _lazy_in(result: Any) -> Any | None:
    """The first such value in a result."""
    return next((one for _, one in everything(result) if is_lazy(one)), None)


def _way_to_wait(result: Any) -> tuple[Wait, str]:
    """How to wait for a result, and what must be said about it."""
    if isinstance(result, jax.Array):
        return method_wait, ""
    if asyncio.isfuture(result):
        return no_wait, "returns an asyncio future, which cannot be waited for here"
    started = list(dict(_started(result)).values())
    wait = _path_wait(started) if started else no_wait
    if (lazy := _lazy_in(result)) is not None:
        return _lazy_wait(result, lazy, wait)
    if isinstance(result, types.FunctionType | types.MethodType | functools.partial):
        return wait, (
            "returns a function, which was not called: timed is the making of it"
        )
    leaves = jax.tree.leaves(result)
    if started and len(started) == sum(map(is_concrete, leaves)):
        return jax.block_until_ready, ""
    if leaves:
        return wait, ""
    return effects_wait, _NOTHING


def _started(result: Any) -> Iterator[tuple[int, Path]]:
    """How to get at what runs already: arrays, futures, threads; each once."""
    for path, one in everything(result):
        if is_concrete(one) or isinstance(one, Future | Thread | BaseProcess):
            yield id(one), path


def _lazy_wait(result: Any, lazy: Any, wait: Wait) -> tuple[Wait, str]:
    if inspect.iscoroutine(result):
        result.close()
        wait = close_wait
    kind = type(lazy).__name__
    verb = f"returns a {kind}" if lazy is result else f"returns a {kind} inside"
    return wait, (
        f"{verb}, whose work was not run: timed is the making of it. "
        "Measure what uses it up, such as lambda: list(f(x))"
    )


def _described(name: str, root: Any, path: Path) -> str:
    parts = (
        f".{key}" if kind == "attribute" else f"[{key!r}]" if kind == "item" else ""
        for kind, key in path[:2]
    )
    return name + "".join(parts)


def _cut(names: str) -> str:
    return names if len(names) <= 60 else names[:57] + "..."
