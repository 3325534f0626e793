"""What the studies share: checkpoints, figures, and where a reader gets it."""

import ast
from pathlib import Path

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


def test_a_save_that_fails_leaves_the_earlier_checkpoint(tmp_path: Path):
    """Also of bfloat16, which NumPy reads as two bytes without a meaning."""
    path, notes = tmp_path / "one.checkpoint", {"settings": {"seed": 0}, "step": 1}
    state = {"w": jnp.linspace(0, 1, 7, dtype="bfloat16"), "step": jnp.int32(3)}
    study.save(path, state, notes)

    def fails(file, state):
        file.write(b"half")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        study.save(path, state, notes | {"step": 2}, fails)
    empty = jax.tree.map(jnp.zeros_like, state)
    again, saved = study.restore(path, empty, {"settings": {"seed": 0}})
    assert saved == notes
    for name, leaf in state.items():
        assert again[name].dtype == leaf.dtype
        np.testing.assert_array_equal(again[name], leaf)


def test_neighbors_read_digits_and_with_shuffled_labels_do_not():
    (x, y), test = study.digits()
    assert study.neighbors((x, y), test, 3).mean() > 0.9
    shuffled = np.random.default_rng(0).permutation(y)
    assert study.neighbors((x, shuffled), test, 3).mean() < 0.2


def test_the_accuracy_is_the_share_of_rows_read_as_their_label():
    logits = jnp.array([[0.0, 2.0], [3.0, 1.0], [0.0, 1.0], [5.0, 4.0]])
    assert study.accuracy(logits, np.array([1, 0, 1, 1])) == 0.75


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
    parts = (ROOT / "docs" / part for part in ("systems", "science"))
    pages = [page.read_text() for part in parts for page in part.glob("*.md")]
    [page] = [text for text in pages if include in text]
    assert "`study.py`" in page.split("## The whole program")[1]
