"""What a lens says is so, or it says that it cannot tell."""

import importlib.util
import inspect
import re

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from justafter import Lens, lens
from justafter._internals import _equations
from justafter._lens import _hlo, _jaxpr, _marks, _source

X = jax.ShapeDtypeStruct((8, 4), "float32")
W = jax.ShapeDtypeStruct((4, 4), "float32")
V = jax.ShapeDtypeStruct((4,), "float32")


def of(view: Lens, primitive: str):
    found = [eqn for eqn in view.equations if eqn.primitive == primitive]
    assert found, f"no {primitive} in {[e.primitive for e in view.equations]}"
    return found


def marks_of(traced, edit):
    """The equations of a traced function, and what its text says, edited, of them."""
    numbered = _equations.Numbered.of(traced)
    text = edit(numbered.traced.lower().compile().as_text())
    jaxpr = _jaxpr.opened(traced.jaxpr)
    found = _jaxpr.Collector(_source.Sources(), numbered, jaxpr)
    module = _hlo.parse(text)
    return found.equations, module, _marks.Marks(found.equations, module, found.reads())


def test_an_inferred_equation_has_the_dtype_and_the_size():
    def sums(x, n):  # two in one equation: of two dtypes, and of two sizes
        chosen = lax.select(jnp.any(n > 0, 0), jnp.sum(x, 0), -x[0])
        return chosen, lax.concatenate([jnp.sum(x * x, 1), jnp.max(x, 0)], 0)

    def cut(text):  # as XLA does, now and then, where it writes an instruction anew
        return re.sub(r"( reduce\(.*)op_name=\"[^\"]*\"", r"\1", text)

    traced = jax.jit(sums).trace(X, jax.ShapeDtypeStruct((8, 4), "int32"))
    equations, module, marks = marks_of(traced, cut)
    raws = [raw for raw in module.instructions() if raw.opcode == "reduce"]
    found = [equations[marks.inferred[raw.name]] for raw in raws]
    assert len({eqn.index for eqn in found}) == 4
    for raw, eqn in zip(raws, found, strict=True):
        assert eqn.primitive.startswith("reduce_")
        assert eqn.outputs == (raw.type.replace("pred", "bool"),)


def test_a_path_that_was_cut_is_not_guessed():
    @jax.jit
    def inner(x):
        return jnp.tanh(x)

    traced = jax.jit(lambda x: inner(x) + inner(x * 2)).trace(V)

    def cut(text):  # as XLA does, now and then, where it inlines
        path = r'op_name="(jit\(<lambda>\)/ja_eqn\d+\./jit\(inner\)/)'
        paths = set(re.findall(path, text))
        assert len(paths) == 2
        for path in paths:
            text = text.replace(path, "")
        return text

    equations, module, marks = marks_of(traced, cut)
    both = tuple(e.index for e in equations if e.primitive == "tanh")
    tanhs = [raw for raw in module.instructions() if raw.opcode == "tanh"]
    assert len(tanhs) == len(both) == 2
    for raw in tanhs:
        assert marks.of(raw) == ()
        assert raw.name in marks.lost


def test_a_linear_solve():
    view = lens(jnp.linalg.solve, W, V)
    solves = [eqn for eqn in of(view, "triangular_solve") if eqn.fate != "unused"]
    assert len(solves) == 2
    assert all(eqn.fate == "kernel" for eqn in solves)
    assert solves[0].kernels != solves[1].kernels
    # The product that it inverts, and the transposed solve, are for derivatives.
    assert {eqn.fate for eqn in of(view, "dot_general")} == {"unused"}


def three(x, w):
    a = jax.nn.relu(x @ w)
    b = jax.nn.relu(a @ w)
    return jax.nn.relu(b @ w)


def test_constants_that_are_merged_light_nothing_else():
    view = lens(three, X, W)
    links = [link for link in view.links if link.expression.startswith("jax.nn.relu")]
    assert [len(link.kernels) for link in links] == [1, 1, 1]
    assert len({link.kernels for link in links}) == 3


CONSTANTS = {
    "ones": lambda: jnp.ones((3, 5)),
    "zeros": lambda: jnp.zeros((3, 5), jnp.int32),
    "full": lambda: jnp.full((3, 5), 2.5),
    "cumsum": lambda: jnp.cumsum(jnp.ones(3000)),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_results_that_are_constants(name):
    view = lens(lambda x: (x + 1, CONSTANTS[name]()), V)
    made = [eqn for eqn in view.equations if eqn.fixed and not eqn.regions]
    assert [k.index for k in view.kernels if k.appeared] == []
    assert made[-1].fate in ("kernel", "unknown")
    assert not any(eqn.gone for eqn in made if eqn.kernels)


@pytest.mark.parametrize("name", ["user@host", "a/b", 'say "x"', "é;ü", "(x"])
def test_scopes_with_any_character(name):
    def fn(x):
        with jax.named_scope(name):
            y = jnp.tanh(x)
            return jnp.exp(y) @ x

    view = lens(fn, V)
    assert {eqn.fate for eqn in view.equations} == {"kernel"}
    assert of(view, "tanh")[0].scope == name
    assert not any(k.appeared for k in view.kernels)


def imported(path, name="changing"):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BEFORE = "import jax.numpy as jnp\n\ndef f(x):\n    return jnp.sin(x) * 2\n"


@pytest.mark.parametrize(
    "after", [BEFORE.replace("sin", "cos"), "# a line more\n" + BEFORE, "def f(x:\n"]
)
def test_a_source_that_changed_on_disk(tmp_path, after):
    path = tmp_path / "changing.py"
    path.write_text(BEFORE)
    module = imported(path)
    path.write_text(BEFORE)  # which does not count as a change
    view = lens(module.f, V)
    assert view.notes == ()
    assert view.at("jnp.sin(x)").equations == (0,)
    path.write_text(after)
    view = lens(module.f, V)
    assert any("changing.py changed on disk" in note for note in view.notes)
    assert view.source == ()
    assert [eqn.expression for eqn in view.equations] == [None, None]
    assert [eqn.fate for eqn in view.equations] == ["kernel", "kernel"]
    assert "changed on disk" in str(view)
    assert "changed on disk" in view._repr_html_()


def twice(x):
    a = jnp.sin(x + 1)
    return a * jnp.cos(x + 1)


def test_an_expression_that_stands_in_several_places():
    line = inspect.getsourcelines(twice)[1]
    view = lens(twice, V)
    places = rf"lens_right.py line {line + 1}, .* line {line + 2}"
    with pytest.raises(KeyError, match=f"in several places: .*{places}"):
        view.at("x + 1")
    assert view.at("x + 1", line=line + 1).equations == (0,)
    with pytest.raises(KeyError, match=rf"no equation .*'x \+ 1' \(L{line + 1}\)"):
        view.at("x + 1", line=line + 999)
    with pytest.raises(KeyError, match="no equation came from"):
        view.at("x + 2")
    pair = lens(lambda x: jnp.sin(x) + jnp.sin(x), V)
    with pytest.raises(KeyError, match="in several places"):
        pair.at("jnp.sin(x)")


def test_a_comment_in_an_expression():
    def fn(x):
        return jnp.where(
            x > 0, x,  # the positive ones
            -x,
        )  # fmt: skip

    view = lens(fn, V)
    assert view.at("jnp.where(x > 0, x, -x)").equations
    assert view.at("jnp.where( x > 0, x, -x, )").equations
    (link,) = [one for one in view.links if one.expression.startswith("jnp.where")]
    assert "#" not in link.expression


def test_a_large_lens_leaves_out_the_instructions():
    def long(x):
        for _ in range(400):
            x = jnp.sin(x) @ jnp.ones((4, 4)) * 1.5
        return x

    view = lens(long, jnp.ones((4, 4)))
    html = view._repr_html_()
    assert sum(len(kernel.instructions) for kernel in view.kernels) > 1500
    assert 'class="ja-i"' not in html
    for eqn in view.equations:
        assert f'data-e="{eqn.index}" data-p="{eqn.primitive}"' in html
    for kernel in view.kernels:
        assert f'data-k="k{kernel.index}"' in html


def test_no_bound_of_a_clamp_is_called_gone():
    view = lens(jax.nn.relu6, jnp.ones((3, 3)))
    bounds = [eqn for eqn in view.equations if eqn.primitive in ("max", "min")]
    assert sorted(eqn.fate for eqn in bounds) == ["kernel", "unknown"]
    view = lens(lambda x: jnp.clip(jnp.maximum(x, 0.0) + 1, 2.0, 3.0), jnp.ones(3))
    fates = {e.fate for e in view.equations if e.primitive in ("max", "min")}
    assert fates <= {"kernel", "unknown"}
