"""One quantity of any number of paths, tallied: counts in fixed bins, exact sums, the largest values.

Nothing depends on the order in which paths come: counts are whole numbers, sums are added without rounding.
docs/streaming.md says what is kept and how far an estimate may be off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from lighttail.checks import refuse
from lighttail.outcomes.samples import Floats, Ints, Sample

FINE = 1024  # bins of width `unit` on either side of 0; further out, bins an octave
OCTAVES = 40
SIDE = FINE * (OCTAVES + 1)  # bins on either side of 0
BINS = 2 * SIDE
END = float(FINE << OCTAVES)  # in units; what lies beyond is in the last bin
TOP = 4096  # largest values that are kept as they are
BITS = 1074  # every float is a multiple of 2^-1074


def place(x: float, unit: float) -> int:
    """The bin of x. With y = |x| / unit: the whole part of y up to 1024, then 1024 bins an octave.

    The unit is a power of two, so that nothing is rounded: 2^p <= y < 2^(p + 1) is in bin
    1024 (p - 9) + floor(1024 (y / 2^p - 1)) from the middle, upwards for x >= 0 and downwards below.

    >>> place(0.3, 0.25) - SIDE, place(-0.3, 0.25) - SIDE, place(1025.5, 0.5) - SIDE
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
    """The smallest and the largest value of a bin, both ends included; those of the outermost are infinite.

    >>> edges(SIDE + 1, 0.25), edges(SIDE - 2, 0.25), edges(SIDE + 2049, 0.5)
    ((0.25, 0.5), (-0.5, -0.25), (1025.0, 1026.0))
    """
    if bin_ < SIDE:
        low, high = edges(BINS - 1 - bin_, unit)
        return -high, -low
    ring = bin_ - SIDE
    return unit * _reach(ring), unit * _reach(ring + 1) if ring + 1 < SIDE else math.inf


def _reach(ring: int) -> float:
    """Where a ring begins, in units."""
    octave, part = divmod(ring, FINE)
    return float(part) if octave == 0 else math.ldexp(1.0 + part / FINE, octave + 9)


def power_below(x: float) -> float:
    """The largest power of two up to x, but none that would lose digits in `place`; 1 for x = 0."""
    return max(math.ldexp(0.5, math.frexp(x)[1]), 2.0**-1000) if x > 0.0 else 1.0


def exact(x: float) -> int:
    """x as a whole number of 2^-1074."""
    above, below = x.as_integer_ratio()
    return above << (BITS + 1 - below.bit_length())


@dataclass(eq=False)
class Tally:
    """Many values of one quantity.

    unit: of the bins (`place`). counts: int64[BINS].
    low, high: float64[BINS], the smallest and the largest value in each bin; inf and -inf in an empty one.
    top: float64[up to TOP], the largest values, ascending.
    total: the sum of the values, a whole number of 2^-1074. squares: that of their squares, of 2^-2148.
        A block's own sums are floats, which depend on that block alone; here nothing is rounded.
    """

    unit: float
    counts: Ints = field(default_factory=lambda: np.zeros(BINS, dtype=np.int64))
    low: Floats = field(default_factory=lambda: np.full(BINS, math.inf))
    high: Floats = field(default_factory=lambda: np.full(BINS, -math.inf))
    top: Floats = field(default_factory=lambda: np.zeros(0))
    total: int = 0
    squares: int = 0
    _waiting: list[Floats] = field(default_factory=list, repr=False)  # for a place at the top
    _bar: float = field(default=-math.inf, repr=False)  # what a value must pass for one

    @property
    def size(self) -> int:
        """How many values."""
        return int(self.counts.sum())

    def add(self, values: Floats) -> None:
        """Take in the values of a block."""
        above = np.empty(values.size)
        bins = self.counts, self.low, self.high
        found, middle, rest, squares = _counter()(values, self.unit, *bins, self._bar, above)
        self.take(values.size, middle, rest, squares, above[:found].copy())

    def take(self, size: int, middle: float, rest: float, squares: float, above: Floats) -> None:
        """Take in the sums of `size` values that are counted already, and those that passed the bar.

        rest, squares: the sums of their distances from `middle`, whatever that is, and of these squared.
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

    @property
    def bar(self) -> float:
        """What a value must pass to be among the largest."""
        return self._bar

    def settle(self) -> None:
        """Give those that wait their place at the top, or none."""
        if self._waiting:
            self.top = np.sort(np.concatenate([self.top, *self._waiting]))[-TOP:]
            self._waiting.clear()
        if self.top.size == TOP:
            self._bar = float(self.top[0])

    def merge(self, other: Tally) -> None:
        """Take in the values of another tally."""
        other.settle()
        self.counts += other.counts
        self.total += other.total
        self.squares += other.squares
        np.minimum(self.low, other.low, out=self.low)
        np.maximum(self.high, other.high, out=self.high)
        self._waiting.append(other.top)
        self.settle()

    def fits(self, paths: int) -> bool:
        """Whether it counts every path once, and every value in its own bin."""
        bins = np.flatnonzero(self.counts)
        homes = np.array([edges(bin_, self.unit) for bin_ in bins.tolist()]).reshape(-1, 2)
        low, high = self.low[bins], self.high[bins]
        inside = np.all((homes[:, 0] <= low) & (low <= high) & (high <= homes[:, 1]))
        return bool(inside and self.counts.min() >= 0 and self.size == paths)

    def sample(self) -> Sample:
        """The largest values as they are, the others by their bins; mean and deviation from the sums."""
        self.settle()
        counts = self.counts.copy()
        np.subtract.at(counts, [place(x, self.unit) for x in self.top.tolist()], 1)
        bins = np.flatnonzero(counts)
        high = np.minimum(self.high[bins], self.top[0])  # those above it are at the top
        value = np.append(0.5 * (self.low[bins] + high), self.top)
        low, high = np.append(self.low[bins], self.top), np.append(high, self.top)
        many = np.append(counts[bins], np.ones(self.top.size, dtype=np.int64))
        n = self.size
        mean = self.total / (n << BITS)
        variance = max(0, n * self.squares - self.total**2) / (n * n << 2 * BITS)
        return Sample(value, low, high, many, mean, math.sqrt(variance))


@cache
def _counter() -> Any:
    from lighttail.kernels.tally import value_counter  # imports numba

    return value_counter(place)
