"""Times each kernel of a program, from a profile of several calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._model import Kernel
from ._trace import Program


def timed(
    program: Program, kernels: Sequence[Kernel], args: Any, kwargs: Any, calls: int
) -> tuple[float | None, ...]:
    """See :meth:`Lens.timed`."""
    raise NotImplementedError
