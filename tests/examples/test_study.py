"""What the studies share: checkpoints, figures, and where a reader gets it."""

import ast
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from .conftest import load
from .figures import EXAMPLES, ROOT

study = load("study")
STUDIES = [
    path for path in sorted(EXAMPLES.glob("*.py")) if "import study" in path.read_text()
]
STATE = {"w": jnp.linspace(0, 1, 7, dtype="bfloat16"), "step": jnp.int32(3)}


def test_arrays_of_every_dtype_come_back(tmp_path: Path):
    """NumPy reads bfloat16 as two bytes without a meaning."""
    path = tmp_path / "one.checkpoint"
    notes = {"settings": {"seed": 0}, "step": 3}
    study.save(path, STATE, notes)
    empty = jax.tree.map(jnp.zeros_like, STATE)
    state, saved = study.restore(path, empty, {"settings": {"seed": 0}})
    assert saved == notes
    for name, leaf in STATE.items():
        assert state[name].dtype == leaf.dtype
        np.testing.assert_array_equal(state[name], leaf)


def test_a_save_that_fails_leaves_the_earlier_checkpoint(tmp_path: Path):
    path = tmp_path / "one.checkpoint"
    study.save(path, STATE, {"settings": {}, "step": 1})
    before = path.read_bytes()

    def fails(file, state):
        file.write(b"half")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        study.save(path, STATE, {"settings": {}, "step": 2}, fails)
    assert path.read_bytes() == before


def counting(state, done):
    for step in range(done, 8):
        state = state + 1
        yield step + 1, state, jnp.float32(step)


@pytest.mark.parametrize("stopped", [3, 5, 8])
def test_a_fit_goes_on_where_it_was_stopped(tmp_path: Path, stopped: int):
    def until(state, done):
        for step, *rest in counting(state, done):
            yield step, *rest
            if step == stopped:
                raise KeyboardInterrupt

    def fit(training, **how):
        options = SimpleNamespace(output=tmp_path, settings={"steps": 8}, **how)
        return study.fit("one", jnp.int32(0), training, 8, options, 2, record=2)

    whole = fit(counting, resume=False)
    with pytest.raises(KeyboardInterrupt):
        fit(until, resume=False)
    assert fit(counting, resume=True) == whole == (8, [1.0, 3.0, 5.0, 7.0])


def test_neighbors_read_digits_and_with_shuffled_labels_do_not():
    (x, y), test = study.digits()
    assert study.neighbors((x, y), test, 3).mean() > 0.9
    shuffled = np.random.default_rng(0).permutation(y)
    assert study.neighbors((x, shuffled), test, 3).mean() < 0.2


def test_the_digits_to_test_on_are_not_among_the_others():
    (x, y), (asked, labels) = study.digits()
    assert (len(x), len(y), len(asked), len(labels)) == (1500, 1500, 297, 297)
    assert (x.min(), x.max(), x.dtype) == (0, 1, np.float32)
    apart = abs(asked[:, None] - x[None]).sum(axis=(2, 3)).min(axis=1)
    assert apart.min() > 0


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_a_study_needs_no_other_file_of_the_folder(path: Path):
    nodes = list(ast.walk(ast.parse(path.read_text())))
    names = {a.name for n in nodes if isinstance(n, ast.Import) for a in n.names}
    names |= {n.module for n in nodes if isinstance(n, ast.ImportFrom)}
    assert {name for name in names if (EXAMPLES / f"{name}.py").exists()} == {"study"}


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_the_page_of_a_study_says_what_to_copy(path: Path):
    include = f"{{literalinclude}} ../../examples/{path.name}\n"
    pages = [page.read_text() for page in (ROOT / "docs/systems").glob("*.md")]
    [page] = [text for text in pages if include in text]
    assert "`study.py`" in page.split("## The whole program")[1]
