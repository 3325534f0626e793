"""A quantity seen several times: its middle, its spread, and how sure the middle is."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float64]

# Fewer samples than this say nothing about how sure their median is.
FEWEST = 9
# Fewer than this hardly tell how they depend on each other: their interval is wide.
FEW = 20

# The samples are cut into this many blocks, in the order in which they were taken.
_BLOCKS = (5, 10, 20)
# Blocks that follow each other closely come from a drift or from long waves, of which
# the samples may hold a part only: then the interval reaches further than the blocks
# do. By the number of samples: from which correlation on, and how many times the
# blocks' range for one of 1. Found by simulation, as the tests repeat it.
_SIZES, _FOLLOWING, _REACH = (FEWEST, FEW, 60), (-0.25, 0.2, 0.3), (13.0, 9.0, 7.0)

# What 95% of Student's t lies within, by degrees of freedom.
_STUDENT = {
    4: 2.776,
    5: 2.571,
    6: 2.447,
    7: 2.365,
    8: 2.306,
    9: 2.262,
    10: 2.228,
    14: 2.145,
    19: 2.093,
}


@dataclass(frozen=True, slots=True)
class Spread:
    """A quantity that was seen several times: its middle and its spread.

    Attributes:
        median: the middle value, in seconds for a time, without a unit for a ratio.
        low: the lower quartile: a quarter of the samples lie below.
        high: the upper quartile.
        least: the lower end of a 95% interval for the median. It is estimated from
            how blocks of samples differ that were taken one after the other, so it
            is wide where samples depend on each other: where they drift, or come in
            runs of fast and slow ones. Fewer than 20 samples hardly tell whether they
            do, and the interval is wide for that; of fewer than 9 it is no more than
            their range.
        most: the upper end of that interval.
        samples: how many samples.
        calls: how many calls one sample is the mean of.
        follows: how closely blocks of samples follow the one before, from 0 for
            independent ones to 1.

    Example:
        >>> spread = Spread.of([3.0, 1.0, 2.0, 3.0, 1.0, 2.0])
        >>> spread.median, spread.samples
        (2.0, 6)
    """

    median: float
    low: float
    high: float
    least: float
    most: float
    samples: int
    calls: int = 1
    follows: float = 0.0

    @classmethod
    def of(cls, values: Any, calls: int = 1) -> Self:
        """Summarize samples in the order they were taken.

        Args:
            values: numbers, each the mean of `calls` calls.
            calls: how many calls each is the mean of.

        Raises:
            ValueError: there is no sample.
        """
        values = np.asarray([*values], float)
        if not values.size:
            raise ValueError("a spread needs at least one sample")
        low, median, high = map(float, np.quantile(values, [0.25, 0.5, 0.75]))
        least, most, follows = interval(values)
        return cls(
            median, low, high, least, most, int(values.size), int(calls), follows
        )

    def widened(self, share: float) -> Self:
        """The same, of a process that waited this share of its time for a CPU.

        At another moment it may wait for none, or twice as long: no sample says which.
        """
        # Squared, since waiting makes more waiting that is not in the share: a thread
        # sleeps, or spins and counts as running, until another one gets its CPU.
        slower = (1 - share) ** 2
        least = min(self.least, self.median * slower)
        most = max(self.most, self.median / slower)
        return replace(self, least=least, most=most)

    @property
    def precision(self) -> float:
        """Half the width of the interval for the median, relative to the median."""
        if self.samples < FEWEST:
            return math.inf
        return (self.most - self.least) / 2 / self.median if self.median else 0.0

    @property
    def is_dependent(self) -> bool:
        """Whether the samples drift or come in long runs, so that little is known."""
        return self.follows > _FOLLOWING[-1]


def interval(values: Samples) -> tuple[float, float, float]:
    """The 95% interval for the median of samples in order, and how they follow.

    Blocks of samples are compared with each other: their medians say how far the
    median of a short measurement is off, whatever made it so. Where neighboring
    blocks are alike, each says less that is new, and the interval widens.
    """
    if values.size < FEWEST:
        return float(values.min()), float(values.max()), 0.0
    widths, closest = [], 0.0
    for count in _counts(values.size):
        medians = _medians(values, count)
        following = _following(medians)
        widths.append(_width(medians, min(max(following, 0.0), 0.95)))
        if count > 5:
            bound, reach = _reach(values.size)
            over = max((following - bound) / (1 - bound), 0.0)
            widths.append(reach * over * float(np.ptp(medians)))
            closest = max(closest, following)
    median, half = float(np.median(values)), max(widths)
    return max(median - half, min(0.0, median)), median + half, min(closest, 1.0)


def _medians(values: Samples, count: int) -> Samples:
    """The median of each block; the first blocks may be longer by one."""
    size, longer = divmod(values.size, count)
    cut = longer * (size + 1)
    parts = (values[:cut].reshape(longer, size + 1), values[cut:].reshape(-1, size))
    return np.concatenate([np.median(part, axis=1) for part in parts if part.size])


def _counts(size: int) -> list[int]:
    """Into how many blocks to cut so many samples, each way in turn."""
    return [5, size] if size < FEW else list(_BLOCKS)


def _reach(size: int) -> tuple[float, float]:
    """From where on following widens, and how many times the blocks' range it adds."""
    following, reach = (
        float(np.interp(size, _SIZES, at)) for at in (_FOLLOWING, _REACH)
    )
    return following, reach


def _following(medians: Samples) -> float:
    """The correlation of each block with the next, without its bias."""
    away = medians - medians.mean()
    total = float((away * away).sum())
    raw = float((away[1:] * away[:-1]).sum()) / total if total else 0.0
    return raw + 1 / medians.size if total else 0.0


def _width(medians: Samples, following: float) -> float:
    count = medians.size
    student = _STUDENT.get(count - 1) or _STUDENT[min(_STUDENT, key=_away_from(count))]
    wider = (1 + following) / (1 - following)
    return student * float(medians.std(ddof=1)) * math.sqrt(wider / count)


def _away_from(count: int) -> Any:
    return lambda degrees: abs(degrees - count + 1)
