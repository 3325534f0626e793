"""measure: a timing that can be trusted."""

from __future__ import annotations

from ._results import Comparison, Measurement
from ._run import measure
from ._spread import Spread

__all__ = ["Comparison", "Measurement", "Spread", "measure"]
