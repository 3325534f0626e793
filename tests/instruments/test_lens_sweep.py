"""A wide set of JAX's public functions under the lens: nothing is wrong in silence."""

import jax
import pytest

from . import lens_sweep
from .lens_sweep import sweep, table


# A part of what the session `instruments` looks at.
@pytest.mark.parametrize(
    ("family", "slopes", "fewest"),
    [
        ("nn", True, 55),
        ("scipy.signal", True, 18),
        ("scipy.stats.norm", True, 14),
    ],
)
def test_nothing_is_wrong(family, slopes, fewest, capsys):
    with jax.numpy_dtype_promotion("standard"):
        found = sweep(family, slopes)
    with capsys.disabled():
        print(f"\n{table(found)}")
    tallies = found.tallies.values()
    assert sum(one.tried for one in tallies) >= fewest
    assert sum(one.watched for one in tallies) > 0
    assert found.wrong == []
    # Of loops and solvers algebra cannot tell all, nor of factors that XLA joins, as it
    # does in two functions of the oldest JAX.
    if family == "nn":
        assert len(found.unproven) <= (0 if jax.__version_info__ >= (0, 11) else 2)
    # Of which equation an instruction is may be open, now and then; never for most.
    watched = sum(one.watched for one in tallies)
    assert sum(one.untold for one in tallies) <= 0.2 * watched
    assert sum(one.exact for one in tallies) >= 0.5 * watched


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
