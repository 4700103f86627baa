"""Samples, from which estimates are made: single observations, or values that stand for many of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lighttail.records import Floats, Ints


@dataclass(frozen=True, eq=False)
class Sample:
    """Observations, as values that stand for one observation or for many.

    value: float64[values]. Quantiles and CVaR need them ascending, and counted values always are.
    low, high: float64[values], the ends between which the observations of a value lie; the value is the
        middle of its ends. All three are the same array if the values are exact.
    counts: int64[values], the number of observations per value; None if each value is one observation.
    mean, std: of the observations, if they are known more exactly than the values tell; otherwise None.

    >>> halves = Sample(*3 * [np.array([0.0, 1.0])], counts=np.array([50, 50]))
    >>> halves.size, halves.at(50), halves.at(51)
    (100, 0.0, 1.0)
    """

    value: Floats
    low: Floats
    high: Floats
    counts: Ints | None = None
    mean: float | None = None
    std: float | None = None

    @cached_property
    def size(self) -> int:
        """The number of observations."""
        return int(self.value.size if self.counts is None else np.sum(self.counts))

    @cached_property
    def limits(self) -> dict[tuple[tuple[float, float], float], tuple[float, float]]:
        """Limits of the mean that are known, by the ends of the range and the level: a mean and a standard
        deviation ask for the same ones."""
        return {}

    @cached_property
    def _up_to(self) -> Ints:
        return np.cumsum(np.ones(self.value.size, dtype=np.int64) if self.counts is None else self.counts)

    @property
    def ascending(self) -> Sample:
        """The same observations in ascending order."""
        return self._sorted if self.counts is None else self

    @cached_property
    def _sorted(self) -> Sample:
        return sample_of(np.sort(self.value))

    def place(self, rank: int) -> int:
        """The index of the value that has the observation of a rank, where the lowest has rank 1."""
        return rank - 1 if self.counts is None else int(np.searchsorted(self._up_to, rank))

    def at(self, rank: int) -> float:
        """The observation of a rank. The observations of one value are spread evenly between its ends."""
        place = self.place(rank)
        if self.counts is None:
            return float(self.value[place])
        share = (rank - 0.5 - (self._up_to[place] - self.counts[place])) / self.counts[place]
        return float(self.low[place] + share * (self.high[place] - self.low[place]))

    def mirrored(self, origin: float = 0.0) -> Sample:
        """The sample of origin - x for each observation x."""
        value = origin - self.value[::-1]
        if self.low is self.high:
            low = high = value
        else:
            low, high = origin - self.high[::-1], origin - self.low[::-1]
        counts = None if self.counts is None else self.counts[::-1]
        return Sample(value, low, high, counts, None if self.mean is None else origin - self.mean, self.std)


Values = Floats | Sample


def sample_of(values: Values) -> Sample:
    """The sample of an array, in which every value is one observation, and exact."""
    return values if isinstance(values, Sample) else Sample(values, values, values)


def total(values: npt.NDArray[np.generic], counts: Ints | None) -> np.generic:
    """The sum of the values over all observations; np.sum would take as long to call as a short sum takes."""
    return np.add.reduce(values if counts is None else values * counts)  # type: ignore[no-any-return, operator]
