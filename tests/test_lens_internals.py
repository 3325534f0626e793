"""The internals that lens needs, and what happens without them."""

import re

import jax
import jax.numpy as jnp
import pytest

from justafter import lens
from justafter._internals import _equations as _internals

V = jax.ShapeDtypeStruct((3,), "float32")


def f(x):
    def body(carry, _):
        return jnp.sin(carry) * 2, None

    return jax.lax.scan(body, jnp.tanh(x) + 1, None, length=3)[0]


def normal(text: str) -> str:
    """Take names and metadata out of HLO text."""
    text = text.split("StackFrames", 1)[1].split("\n\n", 1)[1]
    return re.sub(r"%[\w.\-]+", "%", re.sub(r"metadata=\{[^}]*\}", "", text))


def test_numbering_the_equations_does_not_change_the_program():
    traced = jax.jit(f).trace(V)
    twin = _internals.tagged(traced)
    plain, numbered = traced.lower().compile(), twin.lower().compile()
    assert normal(plain.as_text()) == normal(numbered.as_text())
    assert plain.cost_analysis() == numbered.cost_analysis()
    assert _internals.tags(numbered.as_text())
    assert not _internals.tags(plain.as_text())


def test_untagged_restores_a_scope():
    assert _internals.untagged("transpose(jvp(ja_eqn3.))") == "transpose(jvp())"
    assert _internals.plain_names("add(%ja_eqn5.7, %x)") == "add(%value5.7, %x)"
    assert _internals.plain_names('"jit(f)/ja_eqn5./mul"') == '"jit(f)/ja_eqn5./mul"'
    assert _internals.untagged("block/ja_eqn12.") == "block"
    assert _internals.tags("jit(f)/jvp(ja_eqn3.)/while/ja_eqn4./mul") == (3, 4)


def test_without_numbers_links_fall_back_to_spans(monkeypatch):
    exact = lens(f, V)
    monkeypatch.setattr(_internals, "tagged", lambda traced: None)
    view = lens(f, V)
    assert any("number the equations" in note for note in view.notes)
    assert "number the equations" in view._repr_html_()
    assert view.at("jnp.tanh(x)") == exact.at("jnp.tanh(x)")
    assert view.at("jnp.sin(carry)").kernels == exact.at("jnp.sin(carry)").kernels


def test_without_spans_the_other_columns_still_show(monkeypatch):
    monkeypatch.setattr(_internals, "_source_info", None)
    view = lens(f, V)
    assert any("no source spans" in note for note in view.notes)
    assert [eqn.primitive for eqn in view.equations][:2] == ["tanh", "add"]
    assert view.kernels[0].members


@pytest.mark.parametrize("broken", ["_params", "jaxpr"])
def test_a_trace_of_another_make_is_left_alone(broken):
    class Other:
        _params = {} if broken == "jaxpr" else None

    assert _internals.tagged(Other()) is None
