"""A wide set of JAX's public functions under the lens: nothing is wrong in silence."""

import jax
import pytest

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
