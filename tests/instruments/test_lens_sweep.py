"""A wide set of JAX's public functions under the lens: nothing is wrong in silence."""

import jax
import pytest

from . import lens_sweep
from .lens_sweep import report, sweep


# A part of what the session `instruments` looks at.
@pytest.mark.parametrize(
    ("family", "slopes", "fewest"), [("nn", False, 28), ("scipy.signal", True, 18)]
)
def test_nothing_is_wrong(family, slopes, fewest, capsys):
    with jax.numpy_dtype_promotion("standard"):
        found = sweep(family, slopes)
    with capsys.disabled():
        print(f"\n{report(found)}")
    counts = found.counts
    assert counts["functions"] >= fewest
    assert found.wrong == []
    # Of which equation an instruction is may be open, now and then; never for most.
    assert counts["heavy"] > 0
    assert counts["untold"] <= 0.2 * counts["heavy"]
    assert counts["exact"] >= 0.5 * counts["heavy"]
    assert counts["unknown"] <= 0.05 * counts["equations"]


def test_the_command_fails_where_something_is_wrong(monkeypatch, capsys):
    broken = ("written", "loss", lambda w, x: lens_sweep.loss(w, x))
    monkeypatch.setattr(lens_sweep, "WRITTEN", {})
    monkeypatch.setattr(lens_sweep, "functions", lambda: iter([broken]))
    assert lens_sweep.main() == 0
    # As if a release of JAX called its products by another name.
    names = {**lens_sweep.WATCHED, "dot": "another_name"}
    monkeypatch.setattr(lens_sweep, "WATCHED", names)
    assert lens_sweep.main() == 1
    assert "dot of ['dot_general']" in capsys.readouterr().out
