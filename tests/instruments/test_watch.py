"""watch: counts, reasons, and what must not change while one watches."""

import functools
import gc
import operator
import re
import sys
import textwrap
import weakref

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from justafter import Log, Reason, RetraceError, lens, watch
from justafter._internals import _events

from .running import printed


def make_step():
    """A new jitted function: no test depends on another's traces."""

    @functools.partial(jax.jit, static_argnames="n")
    def step(x, y=None, *, n=1):
        return jax.tree.map(lambda leaf: leaf * n, (x, y))

    return step


def why(log, name="step"):
    return log[name].history[-1].why


def test_the_error_of_a_call_is_the_users():
    @jax.jit
    def step(x):
        raise LookupError("mine")

    with watch() as log, pytest.raises(LookupError, match="mine") as caught:
        step(1.0)
    assert log["step"].history[0].raised == "LookupError"
    files = [str(entry.path) for entry in caught.traceback]
    assert not any("_internals" in file for file in files)


def test_a_second_jit_of_the_same_function_is_no_trace():
    ran = []

    def step(x):
        ran.append(1)
        return x

    x = jnp.ones(3)
    with watch() as log:
        jax.jit(step)(x)
        jax.jit(step, donate_argnums=0)(x)
    assert log["step"].traces == len(ran) == 1
    assert log["step"].compilations == 2


def retraced(first, second):
    step = make_step()
    with watch() as log:
        first(step)
        second(step)
    assert log["step"].traces == 2, "the second call did not retrace"
    return why(log)


def on_a_mesh(step):
    kinds = (jax.sharding.AxisType.Auto,)
    with jax.set_mesh(jax.make_mesh((1,), ("row",), kinds)):
        step(1.0)


def emptied(step):
    step.clear_cache()
    step(1.0)


def with_x(x, **options):
    return lambda step: step(x, **options)


THREE, LAYERS = jnp.ones(3), {"layer": {"w": 1.0, "b": 1.0}, "depth": [1.0, 1.0]}
DROPPED = (
    "the same call was known: its entry was cleared or dropped, or a static value was "
    "changed in place"
)
SMALLER = "x was float32[3], now int32[]"
BY_NAME = "called with 2 by position, now with 1 by position, y by name"
# Two calls of one function, and the reasons why the second one is traced: beside those
# of the page on watch.
REASONS = [
    (with_x(1.0), with_x(jnp.float32(1.0)),
     "weak type: x was weak float32[], now float32[]"),
    (with_x(1.0, n=1), with_x(1.0, n=1.0), "static value: n was 1, now 1.0"),
    (with_x([1.0]), with_x((1.0,)),
     "tree structure: x was [a leaf], now (a leaf,)"),
    (with_x(LAYERS), with_x(LAYERS | {"layer": {"w": 1.0}}),
     "tree structure: x['layer']['b'] went"),
    (with_x(LAYERS), with_x(LAYERS | {"depth": (1.0, 1.0)}),
     "tree structure: x['depth'] was [a leaf, a leaf], now (a leaf, a leaf)"),
    (with_x(LAYERS), with_x(LAYERS | {"depth": [1.0, None]}),
     "tree structure: x['depth'][1] was a leaf, now None"),
    (lambda f: f(1.0, 2.0), lambda f: f(1.0, y=2.0), f"call form: {BY_NAME}"),
    (with_x(1.0), on_a_mesh,
     "changed configuration: abstract mesh was None, now mesh (row=1 auto)"),
    (with_x(1.0), emptied,
     f"cache emptied: {DROPPED}"),
    (with_x(THREE), with_x(jnp.int32(1)),
     f"new shape: {SMALLER}", f"new dtype: {SMALLER}"),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second", "expected"), [
    (first, second, expected) for first, second, *expected in REASONS
])  # fmt: skip
def test_the_reasons_for_a_second_call(first, second, expected):
    assert [str(reason) for reason in retraced(first, second)] == expected


def test_the_nearest_structure_is_of_the_same_classes():
    step = jax.jit(lambda x: x)
    with watch() as log:
        step({"a": 1.0}), step((1.0,)), step({"a": 1.0, "b": 1.0})
    (reason,) = log[step].history[-1].why
    assert str(reason) == "tree structure: x['b'] appeared"


def test_the_nearest_earlier_trace_is_the_one_compared_with():
    step = make_step()
    with watch() as log:
        step(jnp.ones(3))
        step(jnp.ones(4, int))
        step(jnp.ones(3, int))
    assert why(log) == (Reason("new shape", "x was int32[4], now int32[3]"),)
    with log.start():
        step(jnp.ones(3), n=2)
    assert why(log) == (Reason("static value", "n was 1, now 2"),)


def moved(*placements):
    step, x = jax.jit(lambda x: x * 2), jnp.ones(4)
    with watch(only=step) as log:
        step(x)
        for placement in placements:
            step(jax.device_put(x, placement))
    return log[step]


def test_another_device_compiles_again_without_a_trace():
    first, second = jax.devices()
    record = moved(second, first)
    assert (record.traces, record.compilations) == (1, 3)
    # The last one is compared with the call before it, not with the first one.
    assert [str(reason) for one in record.compiled[1:] for reason in one.why] == [
        "sharding: x was on cpu:0, now on cpu:1",
        "sharding: x was on cpu:1, now on cpu:0",
    ]


@pytest.mark.parametrize("kind", [AxisType.Explicit, AxisType.Auto])
def test_sharding(kind):
    mesh = jax.make_mesh((2,), ("i",), axis_types=(kind,))
    record = moved(NamedSharding(mesh, PartitionSpec("i")))
    assert (record.traces, record.compilations) == (2, 2)
    assert str(record.history[-1].why[0]) == (
        f"sharding: x was on cpu:0, now P('i') on mesh (i=2 {kind.name.lower()})"
    )


def test_a_program_after_one_under_vmap():
    step = make_step()
    with watch() as log:
        jax.vmap(lambda x: step(x)[0])(jnp.ones((2, 3)))
        step(jnp.ones(3))
    assert (log["step"].traces, log["step"].compilations) == (1, 2)
    (reason,) = log["step"].compiled[-1].why
    assert reason.kind == "transformation"
    assert "another program of the same trace" in reason.text


def test_the_backward_pass_of_a_function_traced_before():
    step, x = make_step(), jnp.ones(3)
    step(x)
    with watch() as log, watch(only=step) as chosen:
        jax.grad(lambda x: step(x)[0].sum())(x)
    assert "step" not in log.eager
    assert log["step"].compilations == chosen[step].compilations >= 1
    assert {c.why[0].kind for c in log["step"].compiled} == {"transformation"}
    assert log[step] is log["step"]


def test_a_log_keeps_no_function_alive():
    class Model:
        def apply(self, x):
            return x

    model = Model()
    with watch() as log:
        for _ in range(2):
            jax.jit(model.apply)(1.0)  # a new object each time, gone after the call
    assert log["apply"].traces == 2
    assert log["apply"].why == ("fresh function object",)

    def step(x):
        return x

    gone = weakref.ref(step)
    with watch() as log:
        jax.jit(step)(1.0)
    del step
    gc.collect()
    assert gone() is None
    assert log["step"].traces == 1


def test_two_functions_of_one_full_name_are_told_by_their_lines():
    def step(x):
        return x

    first = step

    def step(x):
        return x + 1

    with watch() as log:
        jax.jit(first)(1.0), jax.jit(step)(1.0)
    with pytest.raises(KeyError) as caught:
        log["step"]
    places = re.findall(r"\(test_watch.py:(\d+)\)", str(caught.value))
    assert len(set(places)) == 2


class Plain:
    """Compares by identity, and is written without its contents."""

    def __init__(self, width=1):
        self.width = width


def static_reason(first, second):
    @functools.partial(jax.jit, static_argnums=0)
    def step(config, x):
        return x

    with watch(only=step) as log:
        step(first, 1.0)
        step(second, 1.0)
    (reason,) = log[step].history[-1].why
    assert reason.kind == "static value"
    return reason.text


def test_only_what_differs_is_said():
    assert static_reason(Plain(1), Plain(2)) == "config.width was 1, now 2"
    text = static_reason(Plain(1), Plain(1))
    assert text == "config is another Plain than before, and Plain compares by identity"
    first = lambda x: x  # noqa: E731
    second = lambda x: x  # noqa: E731
    assert re.fullmatch(
        r"config was \S+<lambda> of test_watch.py:\d+, now \S+ of test_watch.py:\d+",
        static_reason(first, second),
    )
    made = [lambda x: x for _ in range(2)]
    assert re.search(r"another \S+ of test_watch.py:\d+ than", static_reason(*made))
    pair = static_reason((1, ("a", 2)), (1, ("a", 3)))
    assert pair == "config[1][1] was 2, now 3"


PROGRAM = """
import sys, re, logging, io, pathlib, tempfile
import jax, jax.numpy as jnp
from justafter import lens, watch

def body(x):
    return jnp.sin(x) * 2

step = jax.jit(body)
if sys.argv[1] == "watched":
    log, chosen = watch(), watch(only=step)
jax.config.update("jax_explain_cache_misses", True)
heard = io.StringIO()
logging.getLogger("jax").addHandler(logging.StreamHandler(heard))
x = jnp.ones(3)
step(x)
step(jnp.ones(4))
print(re.sub(r"id=\\d+", "", heard.getvalue()))

def leaky(x):
    global kept
    kept = x + 1
    return x

leak = jax.jit(leaky)
leak(1.0)
try:
    kept + 1
except jax.errors.UnexpectedTracerError as error:
    print(re.sub(r"0x\\w+|\\d{9,}", "", str(error)))
text = step.lower(x).compile().as_text()
print(text)
print(jax.jit(lambda x: step(x) + 1).lower(x).as_text(debug_info=True))
jaxpr = step.trace(jnp.ones(5)).jaxpr
print(jaxpr.pretty_print(source_info=True))
view = lens(step, jnp.ones(6))
print([(eqn.expression, eqn.kernels) for eqn in view.equations], view.notes)
"""


def test_watching_changes_nothing_that_jax_shows(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("\\\\", "\\"))
    shown = {how: printed(program, how) for how in ("plain", "watched")}
    assert "program.py" in shown["plain"]
    assert "TRACING CACHE MISS" in shown["plain"]
    assert "jnp.sin(x)" in shown["plain"]
    assert shown["watched"] == shown["plain"]


def test_methods_and_partials():
    class Model:
        def __init__(self):
            self.step = jax.jit(self._step)

        def _step(self, x):
            return x

        @functools.partial(jax.jit, static_argnums=0)
        def other(self, x):
            return x

        def __call__(self, x):
            return x

    model = Model()
    with watch() as log:
        model.step(1.0)
        model.other(1.0)
        jax.jit(functools.partial(model._step))(2)
        jax.jit(model)(1.0)
    assert log["_step"].traces == 2
    assert log["other"].traces == 1
    assert log["Model"].traces == 1
    with watch(only=model._step) as chosen:
        jax.jit(model._step)(2j)
        jax.jit(Model()._step)(2j)
    assert chosen["_step"].traces == 1


def test_wrappers_of_one_code_are_told_apart_by_what_they_call():
    def wrapped(fn):
        return lambda x: fn(x)

    with watch() as log:
        for fn in (lambda x: x + 1, lambda x: x * 2):
            jax.jit(wrapped(fn))(1.0)
    assert [record.traces for record in log.records] == [1, 1]


def test_a_lens_under_a_running_watch():
    def step(x):
        return jnp.tanh(x @ x)

    x, jitted = jnp.ones((3, 3)), jax.jit(step)
    with watch() as log, watch(only=jitted) as chosen:
        view = lens(jitted, x)
        assert all(eqn.expression for eqn in view.equations)
        for record in (log["step"], chosen["step"]):
            assert (record.traces, record.compilations) == (1, 1)
        jitted(x)  # finds the trace; the lens' executable is its own
        lens(step, x)  # traces a function of its own, in the same name
    for record in (log["step"], chosen["step"]):
        assert (record.traces, record.compilations) == (2, 3)
    assert len(log) == 1
    assert len(_events._listeners) == 0


def test_two_logs_at_once_and_one_of_hits_alone():
    step = make_step()
    with watch() as outer:
        step(1.0)
        with watch() as inner:
            step(1)
        step(jnp.ones(3))
    assert (outer["step"].traces, inner["step"].traces) == (3, 1)
    with watch() as log:
        step(1.0)
    assert log[step].traces == 0
    assert "step" not in log


def test_builtin_functions_are_told_apart():
    with watch() as log:
        jax.jit(operator.add)(1.0, 2.0)
        jax.jit(operator.mul)(1.0, 2.0)
    assert list(log) == ["add", "mul"]
    assert log[operator.add].traces == log["mul"].traces == 1
    assert log["mul"].history[0].why == (Reason("first call", ""),)


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("of_jax", [
    jnp.linalg.norm, jnp.sin, jnp.positive, jax.nn.softmax, jax.nn.relu,
    jax.grad(lambda x: jnp.sin(x).sum()), jax.vmap(jnp.sin), jax.checkpoint(jnp.cos),
    functools.partial(jnp.sum, axis=0), jax.vmap(jax.grad(jnp.tanh)),
])  # fmt: skip
def test_a_function_of_jax_is_not_zero_in_silence(of_jax, warm):
    x, chosen_one = jnp.ones(3), jax.jit(of_jax)
    jax.clear_caches()
    if warm:
        of_jax(x if of_jax is not jnp.sin else 1.0)
    with watch() as log, watch(only=chosen_one) as chosen:
        chosen_one(x)
    records = log[chosen_one], chosen[chosen_one], *log.records
    assert [(one.traces, one.compilations) for one in records] == [(1, 1)] * 3


def test_what_jax_jits_itself_is_left_out():
    jax.clear_caches()
    with watch() as log:
        jnp.vdot(jnp.ones(3), jnp.ones(3)), jax.nn.relu(1.0), jnp.add(1.0, 2.0)
        jnp.multiply.reduce(jnp.ones(3)), jax.random.normal(jax.random.key(0))
        jax.grad(lambda x: jnp.where(x > 0, jnp.sin(x), 1.0))(1.0)
    assert list(log) == []
    assert {"sin", "_where"} <= {*log.eager}
    assert log.eager["relu"] == log.eager["add"] == 1
    with pytest.raises(KeyError, match=r"JAX's own.*watch\(only="):
        log[jnp.vdot]


def test_a_jit_inside_a_decorator_or_a_transformation():
    def logged(fun):
        @functools.wraps(fun)
        def call(*args):
            return fun(*args)

        return call

    def square(x):
        return x * x

    kinds = [logged, jax.grad, jax.jit, functools.partial]
    kinds += [lambda f: jax.jit(jax.grad(f))]
    for around in [*kinds, lambda f: jax.jit(logged(jax.jit(f)))]:
        jax.clear_caches()
        fun = around(jax.jit(square))
        with watch(only=fun) as chosen, watch() as log:
            fun(1.0)
            fun(2.0)
        assert chosen[fun].traces == log[fun].traces == log["square"].traces == 1
        assert chosen[fun].compilations == log[fun].compilations >= 1
        assert len(log) == 1
    fun = logged(jax.jit(square))
    with watch(only=fun, max_traces=1), pytest.raises(RetraceError):
        fun(jnp.ones(3)), fun(jnp.ones(4))


def test_a_trace_that_has_not_ended_counts_toward_the_limit():
    ran = []

    @jax.jit
    def total(x):
        ran.append(x.shape)
        return x[0] if x.shape == (1,) else x[0] + total(x[1:])

    again = pytest.raises(RetraceError, match=r"total would be traced again.* once:")
    for _ in range(2):  # what was stopped is not running
        with watch(only=total, max_traces=2) as outer:
            with watch(only=total, max_traces=1), again:
                total(jnp.ones(4))
            assert total(jnp.ones(2)) == 2
        assert outer["total"].traces == 2
        assert ran == [(4,), (2,), (1,)]
        ran.clear(), total.clear_cache()


def test_functions_of_one_def_are_counted():
    def scaled(factor):
        return jax.jit(lambda x: factor * x)

    two, three = scaled(2), scaled(3)
    with watch() as log:
        two(1.0), three(1.0)
    with pytest.raises(KeyError, match=r"2 functions: .*lambda.*, made 2 times"):
        log["<lambda>"]


@pytest.mark.parametrize(("call", "error", "says"), [
    (lambda: watch(only=["step"]), TypeError, "only must be a function or several"),
    (lambda: watch(only=3), TypeError, "only must be a function or several, got 3"),
    (lambda: watch(max_traces=0), ValueError, "max_traces must be 1 or more, got 0"),
])  # fmt: skip
def test_bad_input(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_arguments_that_do_not_fit_are_the_users_error():
    step = make_step()
    missing = pytest.raises(TypeError, match="missing 1 required positional argument")
    with watch() as log, missing:
        step()
    assert log.compilations == 0


def test_a_jax_that_moved_says_so(monkeypatch):
    from jax._src import pjit

    for reference in _events._listeners:
        _events.unlisten(reference)
    monkeypatch.delattr(pjit, "_trace_for_jit")
    with pytest.raises(RuntimeError, match=r"watch traces with JAX .* has moved"):
        watch()


def test_a_fault_of_ours_does_not_fail_the_users_call(monkeypatch):
    step = make_step()

    def broken(*args):
        raise ZeroDivisionError

    monkeypatch.setattr(Log, "traced", broken)
    with watch(), pytest.warns(RuntimeWarning, match="could not record"):
        assert step(2.0)[0] == 2.0


def test_the_table_as_text():
    step = make_step()

    def epoch(x):
        step(x)
        return sys._getframe().f_lineno - 1

    with watch(only=[step]) as log:
        step(jnp.ones(3))
        line = epoch(jnp.ones(4))
    assert log["step"].compiled[1].where == f"test_watch.py:{line}"
    assert repr(log) == textwrap.dedent(
        f"""\
        function  traces  compilations  why again
        step           2             2  new shape ×1
        step, trace by trace
          1. x: float32[3], n=1
             first call
          2. x: float32[4], n=1, from test_watch.py:{line}
             new shape: x was float32[3], now float32[4]"""
    )


def test_a_long_history_is_cut():
    step = make_step()
    with watch(only=step) as log:
        for n in range(1, 21):
            step.trace(jnp.ones(n))
    assert "and 12 more" in repr(log)
    assert "new shape ×19" in repr(log)
    assert "and 12 more" in log._repr_html_()


def test_html_escapes_and_an_empty_log_says_so():
    @functools.partial(jax.jit, static_argnames="mode")
    def step(x, mode):
        return x

    with watch() as log:
        step(1.0, mode="<script>alert(1)</script>")
        step(1.0, mode="&")
    shown = log._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    with watch() as log:
        pass
    assert repr(log) == "nothing traced or compiled"
    assert "nothing traced" in log._repr_html_()
