"""What people write, seen through a lens, on every supported JAX."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from justafter import Lens, lens
from justafter._lens import _rows

X = jax.ShapeDtypeStruct((4, 3), "float32")
V = jax.ShapeDtypeStruct((3,), "float32")
Q = jax.ShapeDtypeStruct((1, 8, 2, 4), "float32")


def primitives(view: Lens) -> list[str]:
    return [eqn.primitive for eqn in view.equations]


def only(view: Lens, primitive: str, **wanted):
    found = [
        eqn
        for eqn in view.equations
        if eqn.primitive == primitive
        and all(getattr(eqn, key) == value for key, value in wanted.items())
    ]
    assert len(found) == 1, f"{primitive}: {len(found)} in {primitives(view)}"
    return found[0]


def assert_consistent(view: Lens) -> None:
    for i, eqn in enumerate(view.equations):
        assert eqn.index == i
        assert (eqn.fate == "kernel") == bool(eqn.kernels)
        for k in eqn.kernels:
            assert i in view.kernels[k].members
    for k, kernel in enumerate(view.kernels):
        assert kernel.index == k
        assert set(kernel.inferred) <= set(kernel.members)
        assert not (kernel.lost and kernel.members)
        for i in kernel.members:
            assert k in view.equations[i].kernels
    linked = sorted(i for link in view.links for i in link.equations)
    assert linked == list(range(len(view.equations)))
    assert str(view)
    assert view._repr_html_().count('class="ja-pane"') == 3


def helper(x):
    return jnp.tanh(x) * 2


def model(x):
    return helper(x @ x.T) + 1.0


def test_expression_equation_and_kernel():
    view = lens(model, X)
    tanh = only(view, "tanh")
    assert tanh.expression == "jnp.tanh(x)"
    assert tanh.span.file == "test_lens.py"
    assert tanh.span.function == "helper"
    assert tanh.span.end_column - tanh.span.column == len("jnp.tanh(x)")
    assert tanh.outputs == ("f32[4,4]",)
    assert only(view, "dot_general").expression == "x @ x.T"
    assert only(view, "add").expression == "helper(x @ x.T) + 1.0"
    (kernel,) = tanh.kernels
    assert any("tanh(" in one.text for one in view.kernels[kernel].instructions)
    assert_consistent(view)


def test_a_product_without_any_metadata_is_found_by_what_it_computes():
    # In attention XLA drops the metadata of the first product.
    view = lens(lambda q: jax.nn.dot_product_attention(q, q, q), Q)
    products = [eqn for eqn in view.equations if eqn.primitive == "dot_general"]
    assert len(products) == 2
    assert [eqn.fate for eqn in products] == ["kernel", "kernel"]
    assert_consistent(view)
    convolution = lens(
        lambda x: lax.conv_general_dilated(x, jnp.ones((3, 1, 3, 3)), (1, 1), "SAME"),
        jax.ShapeDtypeStruct((1, 1, 8, 8), "float32"),
    )
    index = only(convolution, "conv_general_dilated").index
    (kernel,) = [k for k in convolution.kernels if k.kind == "convolution"]
    assert kernel.members == (index,)
    running = lens(lambda x: jnp.cumsum(x) * 2, V)
    assert only(running, "cumsum").fate == "kernel"


def test_what_cannot_be_told_apart_is_said_to_be_unknown():
    # Four products of one size without metadata: no way to say which is which.
    def twice(q):
        q = jax.nn.dot_product_attention(q, q, q)
        return jax.nn.dot_product_attention(q, q, q)

    view = lens(twice, Q)
    products = [eqn for eqn in view.equations if eqn.primitive == "dot_general"]
    assert {eqn.fate for eqn in products} <= {"kernel", "unknown"}
    assert not any(eqn.gone for eqn in products)
    assert_consistent(view)


def test_merged_instructions_keep_all_their_equations():
    # Attention ends in two transposes in a row, which XLA makes into one.
    view = lens(lambda q: jax.nn.dot_product_attention(q, q, q), Q)
    merged = {
        one.equations
        for kernel in view.kernels
        for one in kernel.instructions
        if len(one.equations) > 1
    }
    names = {view.equations[i].primitive for pair in merged for i in pair}
    assert names == {"transpose"}
    assert all(view.equations[i].kernels for pair in merged for i in pair)


@pytest.mark.parametrize("fn", [
    lambda x: x.reshape(6, 2), lambda x: x[None], lambda x: x.T.T.reshape(12),
    lambda x: (x.reshape(12), jnp.squeeze(x[:, None])), lambda x: x.reshape(12, 1).T,
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_a_shape_that_became_a_bitcast_costs_nothing(fn, dtype):
    # XLA notes the argument's name on the bitcast, and the copy of it is its own.
    view = lens(fn, jax.ShapeDtypeStruct((4, 3), dtype))
    assert "bitcast" in view._compiled.hlo
    assert {eqn.fate for eqn in view.equations} <= {"view", "gone"}
    assert view.equations[-1].fate == "view"
    assert all(kernel.appeared for kernel in view.kernels)


def test_jitted_function_and_nested_jit():
    @jax.jit
    def inner(x):
        return jnp.cos(x)

    @jax.jit
    def outer(x):
        return inner(x) + inner(x * 2)

    view = lens(outer, V)
    calls = [eqn for eqn in view.equations if eqn.primitive == "jit"]
    cosines = [eqn for eqn in view.equations if eqn.primitive == "cos"]
    assert [c.parent for c in cosines] == [c.index for c in calls]
    assert [c.depth for c in cosines] == [1, 1]
    assert {c.expression for c in cosines} == {"jnp.cos(x)"}
    assert all(c.fate == "kernel" for c in cosines)
    assert {c.fate for c in calls} == {"wrapper"}
    assert len(view.primitives) == len(view.equations) - 2
    assert [piece.name for piece in view.source] == ["outer", "inner"]
    assert_consistent(view)


def test_while():
    def f(x):
        return lax.while_loop(lambda s: jnp.sum(s) < 9.0, lambda s: s * 2, x)

    view = lens(f, V)
    loop = only(view, "while")
    assert [r.split()[0] for r in loop.regions] == ["test", "body"]
    assert [e.region for e in view.equations if e.parent == loop.index] == [0, 0, 1]
    assert only(view, "mul").expression == "s * 2"
    assert_consistent(view)


def test_cond():
    def f(flag, x):
        return lax.cond(flag, lambda v: jnp.sin(v), lambda v: jnp.cos(v) * 3, x)

    view = lens(f, True, V)
    cond, sin, cos = only(view, "cond"), only(view, "sin"), only(view, "cos")
    assert len(cond.regions) == 2
    assert sin.parent == cos.parent == cond.index
    assert sin.region == 1
    assert cos.region == 0
    if sin.kernels and view.kernels[sin.kernels[0]].where:
        assert view.kernels[sin.kernels[0]].where[-1] == "conditional branch 1"
    assert sin.fate == cos.fate == "kernel"
    assert_consistent(view)


def test_custom_jvp():
    @jax.custom_jvp
    def f(x):
        return jnp.sin(x)

    @f.defjvp
    def f_jvp(primals, tangents):
        return f(primals[0]), jnp.cosh(primals[0]) * tangents[0]

    view = lens(f, V)
    assert only(view, "custom_jvp_call").fate == "wrapper"
    assert only(view, "sin").fate == "kernel"
    assert " at 0x" not in str(view)
    slope = lens(jax.grad(lambda x: f(x)), 1.0)
    assert only(slope, "cosh").expression == "jnp.cosh(primals[0])"
    assert "f_jvp" in {piece.name for piece in slope.source}


def power(x, n):
    return x**n


class Layer:
    def __init__(self):
        self.weight = jnp.ones((3, 2))

    def apply(self, x):
        return x @ self.weight

    def __call__(self, x):
        return self.apply(x) + 1


def test_methods_callable_objects_and_partials():
    view = lens(functools.partial(power, n=3), V)
    assert view.name == view.source[0].name == "power"
    layer = Layer()
    view = lens(layer.apply, X)
    assert only(view, "dot_general").expression == "x @ self.weight"
    assert view.source[0].text.startswith("def apply(self, x):")
    called = lens(layer, X)
    assert called.name == "Layer"
    assert [piece.name for piece in called.source] == ["__call__", "apply"]


def test_sharded_inputs():
    mesh = jax.make_mesh((2,), ("i",), axis_types=(AxisType.Auto,))
    x = jax.device_put(np.ones((4, 3)), NamedSharding(mesh, PartitionSpec("i")))
    view = lens(lambda x: jnp.sum(jnp.tanh(x)), x)
    kinds = [view.kernels[k].kind for k in only(view, "reduce_sum").kernels]
    assert any(kind.startswith("all-reduce") for kind in kinds)
    assert only(view, "tanh").expression == "jnp.tanh(x)"
    assert only(view, "tanh").fate == "kernel"
    assert view.costs.devices == 2
    assert "on each of 2 devices" in str(view)
    assert_consistent(view)


def test_the_function_does_not_run():
    ran = []

    def f(x):
        jax.debug.callback(lambda _: ran.append(1), x)
        return x + 1

    lens(f, np.ones(3, np.float32))
    jax.effects_barrier()
    assert ran == []


def test_a_changed_global_is_seen():
    space = {"jnp": jnp, "scale": 2.0}
    exec("def f(x):\n    return x * scale", space)
    assert " 2.0" in lens(space["f"], V).equations[0].text
    space["scale"] = 5.0
    assert " 5.0" in lens(space["f"], V).equations[0].text


def test_columns_count_characters_not_bytes():
    def f(größe):
        return (größe, jnp.sin(größe))

    assert lens(f, V).equations[0].expression == "jnp.sin(größe)"


def test_arguments_that_do_not_fit_and_the_users_own_error():
    with pytest.raises(TypeError, match=r"model\(\) takes 1 positional argument but 2"):
        lens(model, X, X)
    with pytest.raises(TypeError, match=r"missing .*argument: 'x'"):
        lens(jax.jit(model))

    error = ValueError("my own words")

    def f(x):
        raise error

    with pytest.raises(ValueError, match="my own words") as caught:
        lens(f, V)
    assert caught.value is error
    assert error.args == ("my own words",)


def layer(x, w):
    least = jnp.min(w)
    h = jnp.tanh(x @ w)
    return jnp.sum(h * 2) + least


def test_the_rows_of_the_table_add_up():
    x, w = jnp.ones((64, 32)), jnp.ones((32, 16))
    view = lens(layer, x, w)
    costs = view.table()
    assert costs.rows[0].expression == "x @ w"
    assert costs.rows[0].flops >= 2 * 64 * 32 * 16
    assert sum(row.bytes for row in costs.rows) == view.costs.bytes_accessed
    assert {row.seconds for row in costs.rows} == {None}
    assert "time" not in repr(costs)
    timed = view.table(x, w, calls=2)
    assert timed.rows[0].seconds
    assert "µs" in repr(timed)
    assert not x.is_deleted()
    with pytest.raises(TypeError, match="arrays with values"):
        view.table(jax.ShapeDtypeStruct((64, 32), "float32"), w)
    with pytest.raises(ValueError, match="calls must be 1 or more"):
        view.table(x, w, calls=0)
    assert '<span class="measured">' in timed._repr_html_()
    assert '<span class="measured">' not in costs._repr_html_()
    first, *others = view.kernels
    seen = _rows.table(view, [1e-6 if k is first else None for k in view.kernels])
    assert others
    assert {row.seconds for row in seen.rows} == {1e-6, None}
    assert seen.total.untimed == len(others)
    total, _, below = repr(seen).splitlines()[-3:]
    assert total.endswith("1.0 µs + ?")
    assert below.startswith("? of the time")


@pytest.mark.parametrize("first", [
    lambda x: jax.nn.softplus(x[0]), lambda x: jax.nn.softplus(x + 1.0),
    lambda x: jax.nn.softplus(x[jnp.array([5, 2])]),
])  # fmt: skip
def test_a_kernel_counts_for_the_expression_with_most_of_its_work(first):
    rows = lens(first, jnp.ones((64, 8))).table().rows
    (own,) = [row for row in rows if row.flops]
    assert own.expression.startswith("jax.nn.softplus(")
    assert any(set(row.shared) & set(own.kernels) for row in rows if row is not own)


def test_the_most_expensive_row_comes_first():
    def last_costs_most(x, w):
        return (w * jnp.max(x)) @ w

    w = jax.ShapeDtypeStruct((32, 32), "float32")
    view = lens(last_costs_most, V, w)
    order = ["(w * jnp.max(x)) @ w", "w * jnp.max(x)", "jnp.max(x)"]
    assert [row.expression for row in view.table().rows] == order
    assert [row.kernels for row in view.table().rows] == [(2,), (1,), (0,)]
    # A measured time decides where there is one.
    timed = _rows.table(view, [3e-6, 2e-6, 1e-6])
    assert [row.expression for row in timed.rows] == order[::-1]
    lines = [line.partition("  ")[0] for line in repr(timed).splitlines()]
    assert lines == ["last_costs_most", "expression", *order[::-1], "total"]
    # FLOPs decide before bytes, and bytes where FLOPs are equal.
    view = lens(lambda x, w: (jnp.tile(x, 2), jnp.tile(w, 9), w @ w), V, w)
    rows = view.table().rows
    order = ["w @ w", "jnp.tile(w, 9)", "jnp.tile(x, 2)"]
    assert [row.expression for row in rows] == order
    assert rows[0].bytes < rows[1].bytes
    assert rows[1].flops == rows[2].flops == 0


def test_a_row_is_no_wider_than_a_line_has_room_for():
    def six_sums(the_first_of_two_long_names, the_second_of_two_long_names):
        x = the_first_of_two_long_names @ the_second_of_two_long_names.T
        return sum(jnp.cumsum(x[0] * n).max() for n in range(1, 7))

    table = lens(six_sums, X, X).table()
    longest = "the_first_of_two_long_names @ the_second_of_two_long_names.T"
    assert longest in [row.expression for row in table.rows]
    cut = "the_first_of_two_long_names @…two_long_names.T"
    cells = [re.split(r"  +", line)[0] for line in repr(table).splitlines()[2:]]
    assert cut in cells
    assert max(map(len, cells[:-2])) == len(cut) == 46
    several = [row for row in table.rows if len(row.kernels + row.shared) > 4]
    for row in several:
        shown = [f"k{i}" for i in row.kernels] + [f"(k{i})" for i in row.shared]
        assert f"  {' '.join(shown[:4])} +{len(shown) - 4}" in repr(table)
    assert several


def test_a_timed_program_keeps_what_it_consumes():
    step = jax.jit(lambda x, n: x * n, static_argnums=1, donate_argnums=0)
    x = jnp.ones(1000)
    assert lens(step, x, 3).table(x, 3, calls=2).total.seconds > 0
    assert not x.is_deleted()


def test_what_is_unknown_in_the_table():
    costs = lens(lambda x: jnp.linalg.svd(x)[1], X).table()
    (row,) = [row for row in costs.rows if row.unknown]
    assert row.expression == "jnp.linalg.svd(x)"
    assert " + ?" in repr(costs)
    assert "call out of the program" in repr(costs)
