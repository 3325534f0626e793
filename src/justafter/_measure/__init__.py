"""measure: a timing that can be trusted."""

from __future__ import annotations

from ._run import Comparison, Measurement, Provenance, Spread, measure

__all__ = ["Comparison", "Measurement", "Provenance", "Spread", "measure"]
