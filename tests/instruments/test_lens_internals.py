"""The internals that lens needs, and what happens without them."""

import re

import jax
import jax.numpy as jnp
import pytest

from justafter._internals import _equations
from justafter._lens._jaxpr import Collector
from justafter._lens._source import Sources

V = jax.ShapeDtypeStruct((3,), "float32")


def f(x):
    def body(carry, _):
        return jnp.sin(carry) * 2, None

    return jax.lax.scan(body, jnp.tanh(x) + 1, None, length=3)[0]


def normal(text: str) -> str:
    text = text.split("StackFrames", 1)[1].split("\n\n", 1)[1]
    return re.sub(r"%[\w.\-]+", "%", re.sub(r"metadata=\{[^}]*\}", "", text))


def test_numbering_the_equations_does_not_change_the_program():
    inner = jax.jit(f)  # is shared by its two calls
    traced = jax.jit(lambda x: inner(inner(x))).trace(V)
    numbered = _equations.Numbered.of(traced)
    plain, twin = traced.lower(), numbered.traced.lower()
    assert plain.as_text() == twin.as_text()
    plain, twin = plain.compile(), twin.compile()
    assert normal(plain.as_text()) == normal(twin.as_text())
    assert plain.cost_analysis() == twin.cost_analysis()
    assert _equations.tags(twin.as_text())
    assert not _equations.tags(plain.as_text())


def test_numbers_are_read_and_taken_out():
    assert _equations.tags("jit(f)/ja_eqn3./while/body/ja_eqn4./mul") == (3, 4)
    assert _equations.plain_names("add(%ja_eqn5.7, %x)") == "add(%value5.7, %x)"


def test_in_a_loop_an_equation_reads_what_the_turn_before_made():
    traced = jax.jit(f).trace(V)
    numbered, sources = _equations.Numbered.of(traced), Sources()
    found = Collector(sources, numbered, traced.jaxpr.jaxpr)
    names = [eqn.primitive for eqn in found.equations]
    sin, mul, add = map(names.index, ("sin", "mul", "add"))
    assert found.reads()[sin] == {add, mul}


@pytest.mark.parametrize("params", [None, {}])
def test_a_trace_of_another_make_is_an_error_that_says_so(params):
    class Other:
        _params = params

    with pytest.raises(
        RuntimeError,
        match=r"justafter cannot number equations with JAX .*, which has moved",
    ):
        _equations.Numbered.of(Other())
