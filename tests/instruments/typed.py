"""What the pages write, for the type checker alone: `mypy --strict` reads this file."""

import jax

from justafter import lens, measure, watch


@jax.jit
def double(x: jax.Array) -> jax.Array:
    """Twice a number."""
    return 2 * x


def shown(x: jax.Array) -> tuple[int, float, float, str]:
    """One line of each page."""
    m = measure(double, x, budget=0.1)
    c = measure.compare({"a": double, "b": double}, x, budget=0.1)
    view = lens(double, x)
    with watch(only=double, max_traces=2) as log:
        text = f"{view.kernels[0].kind} {double(x)} {double.lower(x)}"
    return log["double"].traces, m.compile.median, c.ratios["b"].median, text
