"""Instruments for seeing what JAX does with a function."""

from . import _lens, _measure, _watch
from ._lens import *  # noqa: F403
from ._measure import *  # noqa: F403
from ._watch import *  # noqa: F403

__all__ = [*_lens.__all__, *_measure.__all__, *_watch.__all__]
