"""A quantity seen several times: its middle, its spread, and how sure the middle is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

# Fewer values than this say nothing about how sure their median is: even the smallest
# and the largest of five are on one side of it more often than one time in twenty.
FEWEST = 6
# A group's median is that of so many samples at least.
_OF_A_GROUP = 9
# Samples are taken in so many groups, one after the other over the time that is spent.
GROUPS = 20


@dataclass(frozen=True, slots=True)
class Spread:
    """A quantity that was seen several times, and how sure its median is.

    Attributes:
        median: the middle value, in seconds for a time, without a unit for a ratio.
        least: the lower end of a 95% interval for the median: an order statistic of
            the medians of six to twenty groups of nine samples or more, or of the
            samples themselves where there are too few. It assumes that the groups are
            independent. Of fewer than six samples it is the smallest.
        most: the upper end of that interval.
        minimum: the smallest sample, and the least disturbed.
        samples: how many samples.
        calls: how many calls one sample is the mean of.
    """

    median: float
    least: float
    most: float
    minimum: float
    samples: int
    calls: int = 1

    @classmethod
    def of(cls, values: Any, calls: int = 1) -> Self:
        """Summarize samples, each the mean of `calls` calls, in the order taken."""
        values = np.asarray([*values], float)
        if not values.size:
            raise ValueError("a spread needs at least one sample")
        median = float(np.median(values))
        count = min(GROUPS, values.size // _OF_A_GROUP)
        groups = np.array_split(values, count if count >= FEWEST else values.size)
        ordered = np.sort([np.median(one) for one in groups])
        outside = _outside(ordered.size)
        least, most = float(ordered[outside]), float(ordered[-1 - outside])
        return cls(
            median=median,
            least=min(least, median),
            most=max(most, median),
            minimum=float(values.min()),
            samples=int(values.size),
            calls=int(calls),
        )

    @property
    def precision(self) -> float:
        """Half the width of the interval for the median, relative to the median."""
        if self.samples < FEWEST:
            return math.inf
        return (self.most - self.least) / 2 / self.median if self.median else 0.0


def _outside(count: int) -> int:
    """How many of the sorted values lie below a 95% interval for their median.

    Each value is below the median with probability one half, so the count of those
    below it is binomial.

    >>> _outside(6), _outside(20)
    (0, 5)
    """
    outside, tail = 0, 0.5**count
    while outside < count // 2:
        tail += math.comb(count, outside + 1) * 0.5**count
        if 2 * tail > 0.05:
            break
        outside += 1
    return outside
