"""What the instruments once got wrong in silence on code that they did not know."""

import contextlib
import gc
import io
import sys
from collections import deque
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental.layout import Format, Layout

import justafter
from justafter import Lens, lens, measure, watch
from justafter._internals import _events

from .running import in_threads, shaped

QUICK = {"budget": 0.05, "precision": 0.5}


def primitives(view: Lens, kernel: int) -> set[str]:
    return {view.equations[i].primitive for i in view.kernels[kernel].members}


# XLA makes these sums in two halves where there are few rows.
@pytest.mark.parametrize("rows", [(4,), (8, 128)])
def test_gradients_of_a_layer_norm_of_real_size_are_linked(rows):
    def loss(p, x):
        mean = jnp.mean(x, -1, keepdims=True)
        var = jnp.var(x, -1, keepdims=True)
        y = (x - mean) * lax.rsqrt(var + 1e-5) * p["g"] + p["b"]
        return jnp.sum(jnp.square(y))

    weights = {"g": shaped(768), "b": shaped(768)}
    view = lens(jax.grad(loss, (0, 1)), weights, shaped(*rows, 768))
    halves = [k for k in view.kernels if k.kind == "reduce-window"]
    assert halves or len(rows) == 2
    for kernel in view.kernels:
        for one in kernel.instructions:
            names = {view.equations[i].primitive for i in one.equations}
            assert "reduc" not in one.opcode or names == {"reduce_sum"}
    for kernel in halves:  # each has its own second half
        ((eqn,),) = {view.kernels[i].members for i in [kernel.index]}
        assert len(view.equations[eqn].kernels) == 2


def test_what_cannot_be_told_is_left_out():
    ones = jnp.ones(8)

    def f(x):
        return lax.lgamma(x) + ones, jnp.linalg.solve(jnp.eye(8) + x, x)

    view = lens(f, shaped(8))
    for kernel in view.kernels:
        if kernel.kind.startswith("custom call"):
            assert primitives(view, kernel.index) <= {"lu", "triangular_solve"}
        if "s32" in kernel.type and "f32" not in kernel.type:
            assert "lgamma" not in primitives(view, kernel.index)


def test_what_is_read_of_gathered_rows_are_these_rows():
    assert lens(jnp.sin, shaped(64)).costs.flops == 64
    view = lens(lambda x, i: x[i], shaped(100_000, 64), shaped(4, dtype="int32"))
    assert view.costs.bytes_accessed < 5_000


def test_constants_are_not_called_inputs():
    table = jnp.arange(256.0)
    view = lens(lambda x: x * table, shaped(256))
    assert view.inputs == "b:f32[256]"
    assert view.constants == "a:f32[256]"
    assert "  const a:f32[256]" in str(view)
    assert ">const a:f32[256]<" in view._repr_html_()


def interrupted(call, at=0, lines_of=None) -> int:
    """Interrupt a call where the package enters its `at`-th function, as signals do.

    With `lines_of`, at the `at`-th line of the functions with such a name instead.
    Returns how many functions were entered, or lines; with 0 nothing is interrupted.
    """
    points, files = 0, (str(Path(justafter.__file__).parent), contextlib.__file__)

    def trace(frame, event, arg):
        nonlocal points
        is_ours = frame.f_code.co_filename.startswith(files)
        is_inside = is_ours and lines_of is not None and lines_of(frame.f_code.co_name)
        is_point = event == "line" if is_inside else is_ours and lines_of is None
        points += is_point
        if is_point and points == at:
            sys.settrace(before)
            raise KeyboardInterrupt
        return trace if is_inside else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return points


def test_the_work_grows_with_the_layers_and_not_with_their_square():
    def net(x, ws):
        for w in ws:
            h = (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var() + 1e-5)
            h = jax.nn.softmax(h @ w, 0) @ w.T
            x = x + jnp.clip(jnp.cumsum(h), -9, 9).reshape(16, 16)[::-1].T
        return jnp.sum(x)

    views = []

    def shown(count: int) -> None:
        view = lens(jax.grad(net, 1), shaped(16, 16), [shaped(16, 16)] * count)
        for show in (view.table, view._repr_html_, view.__str__):
            show()
        views.append(view)

    steps, sizes = [], []
    for count in (1, 3, 6):
        steps.append(interrupted(partial(shown, count), lines_of=bool))
        inside = sum(len(one.instructions) for one in views[-1].kernels)
        sizes.append(len(views[-1].equations) + inside)
    early, late = np.diff(steps) / np.diff(sizes)
    assert late < 1.05 * early < 600


def test_methods_jitted_with_a_static_self():
    class Model:
        def __init__(self):
            self.scale = 3.0

        @partial(jax.jit, static_argnums=0)
        def step(self, x):
            return jnp.sin(x) * self.scale

    x = jnp.ones(3)
    view = lens(Model().step, x)
    assert view.at("jnp.sin(x)").equations == (0,)
    m = measure(Model().step, x, **QUICK)
    assert list(m.stages) == ["trace", "lower", "compile", "first", "steady"]


class Table:
    """A static object that holds an array: equal ones cannot be told by `==`."""

    def __init__(self):
        self.values = np.arange(3)


class Shy(Table):
    def __repr__(self):
        raise RuntimeError("not now")


@pytest.mark.parametrize("kind", [Table, Shy])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_run_of_the_body_counts(kind):
    ran = []

    def step(table, x):
        ran.append(1)
        return x

    with watch() as log:
        for _ in range(5):
            jax.jit(partial(step), static_argnums=0)(kind(), 1.0)
    assert log["step"].traces == len(ran) == 5
    repr(log)
    fresh = jax.jit(step, static_argnums=0)
    ran.clear()
    with watch(only=step, max_traces=2):
        fresh(kind(), 1.0)
        fresh(kind(), 1.0)
        with pytest.raises(RuntimeError, match="step"):
            fresh(kind(), 1.0)
    assert len(ran) == 2


def test_compilations_have_the_reasons_of_their_own_trace():
    step = jax.jit(lambda x: x + 1)
    x3, x4, x5, x6, x7, x8 = (np.ones(n, "float32") for n in range(3, 9))
    with watch(only=step) as log:
        step.trace(x3)  # traced and never compiled
        for x in (x4, x5, x6, jax.device_put(x6, jax.devices()[0])):
            step(x)
        step.trace(x7)
        step.trace(x8).lower().compile()
    texts = [str(one.why[0]) for one in log[step].compiled]
    assert texts[1] == "new shape: x was float32[4], now float32[5]"
    assert texts[2] == "new shape: x was float32[5], now float32[6]"
    assert texts[3].startswith("commitment: ")
    assert texts[4] == "new shape: x was float32[7], now float32[8]"


def test_a_new_layout_is_told():
    step, x = jax.jit(lambda x: x + 1), jnp.ones((3, 4))
    turned = jax.device_put(x, Format(Layout((1, 0)), x.sharding))
    committed = jax.device_put(x, x.sharding)
    with watch(only=step) as log:
        step(committed)
        step(turned)
    kinds = [one.why[0].kind for one in log[step].compiled]
    assert kinds in (["first call", "layout"], ["first call"])


def scaled_by(k):
    def step(x):
        return jnp.sin(x * k).sum()

    return step


def test_two_functions_of_one_code_are_two_entries():
    one, two, never = (scaled_by(k) for k in (1.0, 2.0, 3.0))
    with watch() as log, watch(only=[one, two]) as chosen:
        for fun, n in ((one, 3), (two, 3), (one, 4)):
            jax.grad(jax.jit(fun))(np.ones(n, "float32"))
    for seen in (log, chosen):
        assert [(r.traces, r.compilations) for r in seen.records] == [(2, 4), (1, 2)]
        assert (seen[one].traces, seen[two].traces, seen[never].traces) == (2, 1, 0)
        assert seen[one].why == ("new shape",)
    k = 1.0
    anew = [scaled_by(k) for _ in range(3)]
    with watch() as log:
        for fun in anew:
            jax.jit(fun)(1.0)
    assert log["step"].why == ("fresh function object",) * 2
    assert len(log) == 1


def test_what_a_call_uses_up_is_refused():
    items, rows = deque(range(1000)), iter([1, 2, 3])
    made = (n for n in range(9))
    for says, fn, *args in (
        ("uses up", items.popleft),
        (r"an iterator.*uses up", sum, iter(range(26_283))),
        ("uses up", lambda rows: [*rows], (n for n in range(9))),
        ("uses up", lambda: sum(rows)),
        ("uses up made", lambda: [*made]),
    ):
        with pytest.raises(ValueError, match=says):
            measure(fn, *args, **QUICK)
    assert len(items) >= 998
    with pytest.raises(ValueError, match="uses up"):
        measure.compare({"a": items.popleft, "b": items.pop}, **QUICK)


def test_a_file_that_a_call_reads_is_refused(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text("1\n2\n" * 1000)
    with path.open() as file, path.open("rb") as raw, path.open() as line:
        for one in (file, raw):
            with pytest.raises(ValueError, match="argument 0 is an iterator") as caught:
                measure(list, one, **QUICK)
            assert "\n" not in str(caught.value)
            assert one.tell() == 0
        for call in (file.read, lambda: raw.read(), line.readline):
            with pytest.raises(ValueError, match="uses up"):
                measure(call, **QUICK)
        text = io.StringIO("1 2 3")
        with pytest.raises(ValueError, match="uses up self"):
            measure(text.read, **QUICK)
        measure(text.getvalue, **QUICK)
    measure(np.save, io.BytesIO(), np.ones(3), **QUICK)
    with (tmp_path / "log").open("w") as log:
        measure(log.write, "a line", **QUICK)

    class Rows:
        """Reads where it looks for a row, so each call is like the last."""

        def __init__(self, file):
            self.file = file

        def row(self, number):
            self.file.seek(2 * number)
            return self.file.readline()

    with path.open("rb") as file:
        assert not measure(Rows(file).row, 3, **QUICK).note


def state_of_jax() -> dict[str, object]:
    """What the instruments could leave behind: functions, settings, listeners."""
    from jax._src import monitoring, pjit, util

    places = (jax.stages.Traced, jax.stages.Lowered, jax.stages.Compiled, pjit, util)
    state: dict[str, object] = {
        f"{place.__name__}.{name}": value
        for place in places
        for name, value in vars(place).items()
        if callable(value) or value is None
    }
    state |= {name: jax.config._read(name) for name in jax.config.values}
    for name in ("_event_listeners", "_event_duration_secs_listeners"):
        state[name] = tuple(getattr(monitoring, name))
    return state


class Stop(BaseException):
    """Not an Exception: as an interrupt is."""


def raising(error):
    def f(x):
        raise error

    return f


USES = {
    "lens": lambda f: lens(f, shaped(3)),
    "lens of a jit": lambda f: lens(jax.jit(f), shaped(3)),
    "watch": lambda f: _watched(f),
    "measure": lambda f: measure(jax.jit(f), 1.0, **QUICK),
    "compare": lambda f: measure.compare({"a": f, "b": f}, 1.0, **QUICK),
    "timed": lambda f: lens(f, shaped(3)).table(jnp.ones(3), calls=2),
}


def _watched(f):
    with watch():
        jax.jit(f)(1.0)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("where", ["here", "in threads"])
def test_nothing_of_jax_stays_changed(use, where):
    gc.collect()
    ends = [ValueError("mine"), KeyboardInterrupt(), Stop()]
    before = state_of_jax()

    def all_ways(_) -> None:
        USES[use](lambda x: x * 2 + 1)
        for error in ends:
            with pytest.raises(type(error)):
                USES[use](raising(error))

    if where == "here":
        all_ways(0)
    else:
        in_threads(1 if use == "timed" else 4, all_ways)  # one profile at a time
    gc.collect()
    assert state_of_jax() == before


def test_an_interrupt_while_a_watch_begins_or_ends_needs_no_collector():
    def nobody() -> None:
        return None

    before = state_of_jax()
    # Each change is noted before it is made.
    changing = {"_install", "_replace"}.__contains__
    points = interrupted(lambda: _events.listen(nobody), lines_of=changing)
    _events.unlisten(nobody)
    assert points > 20
    for at in range(1, points + 1):
        interrupted(lambda: _events.listen(nobody), at, changing)
        assert (state_of_jax(), _events._listeners) == (before, ()), at
    _events.listen(nobody)
    points = interrupted(lambda: _events.unlisten(nobody))
    for at in range(4, points + 1):  # before, the changes are still to be undone
        _events.listen(nobody)
        interrupted(lambda: _events.unlisten(nobody), at)
        assert state_of_jax() == before, at


@pytest.mark.parametrize("use", ["watch", "lens", "measure"])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_anywhere_leaves_jax_as_it_was(use):
    def call() -> None:
        if use != "watch":
            return USES[use](lambda x: x * 2)
        with watch():
            jax.jit(lambda x: x * 2).trace(1.0)

    call()
    gc.collect()
    before, points = state_of_jax(), interrupted(call)
    assert points > 100
    for at in range(1, points + 1, 1 if use == "watch" else points // 12):
        interrupted(call, at)
        gc.collect(1)  # a log that nobody stopped
        assert state_of_jax() == before, at
    with watch() as log:
        jax.jit(lambda x: x)(1.0)
    assert log.traces == 1


def test_what_cannot_be_undone_keeps_nothing_else_from_it(monkeypatch):
    undone = []

    def fail():
        undone.append("failed")
        assert len(undone) < 5
        raise OSError("gone")

    monkeypatch.setattr(_events, "_undo", [lambda: undone.append("first"), fail])
    with pytest.raises(OSError, match="gone"):
        _events._restore()
    assert undone == ["failed", "first"]
