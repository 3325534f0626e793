"""XLA's own estimate for a piece of a program."""

from __future__ import annotations

from typing import Any

import jax


def estimate(text: str) -> dict[str, float] | None:
    """What XLA's analysis says of an HLO module; None where this JAX has none."""
    try:
        import jax._src.lib as library

        lib: Any = library
        module = lib.xla_client.hlo.hlo_module_from_text(text)
        analysis = lib._jax.hlo_module_cost_analysis
        return dict(analysis(jax.devices()[0].client, module))
    except (AttributeError, ImportError, RuntimeError):
        return None
