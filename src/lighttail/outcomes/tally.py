"""Samples, from which estimates are made, and the tally, which makes a sample of any number of paths.

A tally holds counts in fixed bins, exact sums, and the largest values. It does not depend on the order of the
paths: counts are whole numbers, and sums are added without rounding. docs/streaming.md says what is kept and
how large the error of an estimate may be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lighttail.checks import refuse
from lighttail.records import Floats, Ints

FINE = 1024  # bins of width `unit` on either side of 0; farther out, bins per octave
OCTAVES = 40
SIDE = FINE * (OCTAVES + 1)  # bins on either side of 0
BINS = 2 * SIDE
END = float(FINE << OCTAVES)  # in units; all values beyond it are in the last bin
TOP = 4096  # largest values that are kept exactly
BITS = 1074  # every float is a multiple of 2^-1074


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

    def interpolated(self, q: float) -> float:
        """The q-quantile of the sample itself, interpolated between order statistics as in NumPy."""
        rank = (self.size - 1) * q
        before, after = (self.at(1 + round_(rank)) for round_ in (math.floor, math.ceil))
        return before + (after - before) * (rank - math.floor(rank))

    def histogram(self, edges: Floats) -> Floats:
        """The share of all observations in each bin; those beyond the edges count in the first or last bin.

        >>> print(sample_of(np.array([0.2, 0.3, 1.5, 9.0])).histogram(np.array([0.0, 1.0, 2.0, 3.0])))
        [0.5  0.25 0.25]
        """
        inside = np.clip(self.value, edges[0], edges[-1])
        return np.histogram(inside, edges, weights=self.counts)[0] / self.size

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


def bin_of(x: float, unit: float) -> int:
    """The bin of x. With y = |x| / unit, it is the whole part of y up to 1024; then an octave has 1024 bins.

    The unit is a power of two, so that nothing is rounded. A y with 2^p <= y < 2^(p + 1) is in bin
    1024 (p - 9) + floor(1024 (y / 2^p - 1)) from the middle, upwards for x >= 0 and downwards for x < 0.

    >>> bin_of(0.3, 0.25) - SIDE, bin_of(-0.3, 0.25) - SIDE, bin_of(1025.5, 0.5) - SIDE
    (1, -2, 2049)
    """
    y = abs(x) / unit
    if y < FINE:
        ring = int(y)
    elif y < END:
        part, power = math.frexp(y)  # y = part * 2^power, 1/2 <= part < 1
        ring = FINE * (power - 10) + int((2.0 * part - 1.0) * FINE)
    else:
        ring = SIDE - 1
    return SIDE + ring if x >= 0.0 else SIDE - 1 - ring


def edges(bin_: int, unit: float) -> tuple[float, float]:
    """The smallest and the largest value of a bin, both included; the outermost bins have an infinite end.

    >>> edges(SIDE + 1, 0.25), edges(SIDE - 2, 0.25), edges(SIDE + 2049, 0.5)
    ((0.25, 0.5), (-0.5, -0.25), (1025.0, 1026.0))
    """
    if bin_ < SIDE:
        low, high = edges(BINS - 1 - bin_, unit)
        return -high, -low
    ring = bin_ - SIDE
    return unit * _reach(ring), unit * _reach(ring + 1) if ring + 1 < SIDE else math.inf


def _reach(ring: int) -> float:
    """The distance from 0 at which a ring begins, in units."""
    octave, part = divmod(ring, FINE)
    return float(part) if octave == 0 else math.ldexp(1.0 + part / FINE, octave + 9)


def power_below(x: float) -> float:
    """The largest power of two up to x, at least 2^-1000 so that `bin_of` loses no digits; 1 for x = 0."""
    return max(math.ldexp(0.5, math.frexp(x)[1]), 2.0**-1000) if x > 0.0 else 1.0


def exact(x: float) -> int:
    """x in units of 2^-1074, which is a whole number for every float."""
    above, below = x.as_integer_ratio()
    return above << (BITS + 1 - below.bit_length())


@dataclass(eq=False)
class Tally:
    """The tally of many values of one quantity.

    unit: the unit of the bins (`bin_of`). counts: int64[BINS], the number of values per bin.
    low, high: float64[BINS], the smallest and the largest value in each bin; inf and -inf in an empty bin.
    top: float64[up to TOP], the largest values, ascending.
    total, squares: the sum of the values in units of 2^-1074, and the sum of their squares in units of
        2^-2148. The sums within a block are floats, which depend on that block alone; they are added up here
        without rounding.
    bar: the value that another value must exceed to be among the largest.
    """

    unit: float
    counts: Ints = field(default_factory=lambda: np.zeros(BINS, dtype=np.int64))
    low: Floats = field(default_factory=lambda: np.full(BINS, math.inf))
    high: Floats = field(default_factory=lambda: np.full(BINS, -math.inf))
    top: Floats = field(default_factory=lambda: np.zeros(0))
    total: int = 0
    squares: int = 0
    bar: float = -math.inf
    _waiting: list[Floats] = field(default_factory=list, repr=False)  # values above the bar, not yet in `top`

    @property
    def size(self) -> int:
        return int(self.counts.sum())

    def add(self, values: Floats) -> None:
        from lighttail.kernels.tally import value_counter  # imports numba

        above = np.empty(values.size)
        bins = self.counts, self.low, self.high
        found, middle, rest, squares = value_counter(bin_of)(values, self.unit, *bins, self.bar, above)
        self.take(values.size, middle, rest, squares, above[:found].copy())

    def take(self, size: int, middle: float, rest: float, squares: float, above: Floats) -> None:
        """Add the sums of `size` values that are in the bins already, and the values above the bar.

        middle: any number. rest, squares: the sums of the distances from it and of the squared distances.
        """
        if not math.isfinite(squares):
            raise refuse("keep", "law", "'paths' where the outcomes of a block overflow")
        m, d = exact(middle), exact(rest)
        self.total += size * m + d
        self.squares += (exact(squares) << BITS) + m * (size * m + 2 * d)
        if above.size:
            self._waiting.append(above)
            if sum(map(len, self._waiting)) >= TOP:
                self.settle()

    def settle(self) -> None:
        """Move the waiting values that are among the largest to `top`, and forget the others."""
        if self._waiting:
            self.top = np.sort(np.concatenate([self.top, *self._waiting]))[-TOP:]
            self._waiting.clear()
        if self.top.size == TOP:
            self.bar = float(self.top[0])

    def merge(self, other: Tally) -> None:
        other.settle()
        self.counts += other.counts
        self.total += other.total
        self.squares += other.squares
        np.minimum(self.low, other.low, out=self.low)
        np.maximum(self.high, other.high, out=self.high)
        self._waiting.append(other.top)
        self.settle()

    def fits(self, paths: int) -> bool:
        """Whether the tally counts every path once, and every value is in its own bin."""
        bins = np.flatnonzero(self.counts)
        homes = np.array([edges(bin_, self.unit) for bin_ in bins.tolist()]).reshape(-1, 2)
        low, high = self.low[bins], self.high[bins]
        inside = np.all((homes[:, 0] <= low) & (low <= high) & (high <= homes[:, 1]))
        return bool(inside and self.counts.min() >= 0 and self.size == paths)

    def sample(self) -> Sample:
        """The largest values exactly and the others by their bins, with mean and deviation from the sums."""
        self.settle()
        counts = self.counts.copy()
        np.subtract.at(counts, [bin_of(x, self.unit) for x in self.top.tolist()], 1)
        bins = np.flatnonzero(counts)
        high = np.minimum(self.high[bins], self.top[0])  # all larger values are in `top`
        value = np.append(0.5 * (self.low[bins] + high), self.top)
        low, high = np.append(self.low[bins], self.top), np.append(high, self.top)
        many = np.append(counts[bins], np.ones(self.top.size, dtype=np.int64))
        n = self.size
        mean = self.total / (n << BITS)
        variance = max(0, n * self.squares - self.total**2) / (n * n << 2 * BITS)
        return Sample(value, low, high, many, mean, math.sqrt(variance))
