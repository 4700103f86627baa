"""Gaffke's limits for the mean of a bounded outcome, by a saddlepoint approximation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

import numpy as np

from lighttail.outcomes.tally import Sample, Values, sample_of, total
from lighttail.records import Floats, Ints

CHUNK = 1 << 15  # values that are added up together
STRIDES = (1.5, 3.0, 6.0, 12.0)  # steps to a limit of a mean, times the distance to it on a straight line
LEAST = 1e-300  # a chance above 0 whose logarithm is a number


def mean_limits(values: Values, ends: tuple[float, float], level: float) -> tuple[float, float]:
    """Gaffke's limits for the mean of an outcome between `ends` (Gaffke 2005; Phan et al. 2021).

    Put one more observation at the end of the range and weight all n + 1 observations by a flat Dirichlet
    law: the upper limit is the 1 - (1 - level)/2 quantile of this random mean. For 0-1 outcomes this is
    Clopper and Pearson's limit; for large samples it is the usual normal limit, corrected for skew.
    The extra observation stands for the disaster that the sample may have missed.
    """
    sample = sample_of(values)
    if (ends, level) not in sample.limits:
        sample.limits[ends, level] = _mean_limits(sample, ends, level)
    return sample.limits[ends, level]


def with_count(first: Ints | int | None, second: Ints | int | None) -> Ints | None:
    """Two counts one after the other, such as those of a sample and of one more observation."""
    return None if first is None or second is None else np.append(first, second)


def _mean_limits(sample: Sample, ends: tuple[float, float], level: float) -> tuple[float, float]:
    tail = (1.0 - level) / 2.0
    counts = with_count(sample.counts, 1)
    low = -_upper_limit(np.append(-sample.value, -ends[0]), counts, tail)
    high = _upper_limit(np.append(sample.value, ends[1]), counts, tail)
    if sample.mean is None:
        return low, high
    off, slack = _within_bins(sample, tail)
    return max(ends[0], low + off - slack), min(ends[1], high + off + slack)


def _within_bins(sample: Sample, tail: float) -> tuple[float, float]:
    """The corrections of limits that come from the middles of the bins, if the exact mean is known: the
    difference between the exact mean and the mean of the middles, and the additional width.

    An observation is at most h from the middle of its bin. So the Dirichlet weights move the mean of these
    distances by a standard deviation of at most sqrt(mean h^2 / n), in the worst case in the same direction
    as the middles.
    """
    from scipy.special import ndtri

    assert sample.mean is not None
    off = sample.mean - float(total(sample.value, sample.counts)) / sample.size
    square = float(total((0.5 * (sample.high - sample.low)) ** 2, sample.counts)) / sample.size
    return off, float(ndtri(1.0 - tail)) * math.sqrt(square / sample.size)


def _upper_limit(points: Floats, counts: Ints | None, tail: float) -> float:
    """The value that the Dirichlet mean of the points exceeds with probability `tail`."""
    from scipy.optimize import brentq
    from scipy.special import ndtri

    n = points.size if counts is None else int(counts.sum())
    top = float(points.max())
    spread = top - float(points.min())
    if spread <= 0.0:
        return top
    gaps = (top - points) / spread
    middle = float(total(gaps, counts)) / n
    # From next to the top, where m has nothing above it, to where m almost equals the mean of the sample.
    deviation = math.sqrt(float(total((gaps - middle) ** 2, counts)) / n)
    lowest, highest = math.log(1e-13), math.log(100.0 * math.sqrt(n) * deviation)

    @cache  # brentq asks for the ends again, and the last place that it asked for is the root
    def limit(log_distance: float) -> tuple[float, float]:
        return _saddlepoint(math.exp(log_distance), gaps, counts, n, middle)

    if limit(lowest)[1] > tail:
        return top
    wanted = -float(ndtri(tail))

    def too_far(log_distance: float) -> float:
        """By what factor m is too many standard deviations away, on a log scale: for a large sample this is
        a line that falls with slope -1, and a few steps lead to its root."""
        sigmas = -float(ndtri(min(max(limit(log_distance)[1], LEAST), 0.5)))
        return math.log(max(sigmas, LEAST) / wanted)

    here = min(highest, math.log(math.sqrt(n) * deviation / wanted))  # the root of a very large sample
    low, high = lowest, highest
    for stride in STRIDES:  # past the root
        off = too_far(here)
        low, high = (here, high) if off > 0.0 else (low, here)
        here += stride * off
        if not low < here < high or lowest < low < high < highest:
            break
    root = brentq(too_far, low, high, xtol=1e-10)
    found = min(top, top + spread * limit(root)[0])
    gaps = np.zeros(0)  # brentq's wrapper refers to itself and would keep the array until garbage collection
    return found


def _saddlepoint(
    distance: float, gaps: Floats, counts: Ints | None, n: int, middle: float
) -> tuple[float, float]:
    """m, measured upwards from the top, and the chance to exceed m, for a pole at `distance` above the top.

    With independent exponentials E_i the Dirichlet mean exceeds m when sum E_i (x_i - m) > 0; Lugannani and
    Rice's formula gives the probability of this event. Its saddlepoint has a closed form if the pole
    v > max x_i of the tilted sum is the unknown instead of m.

    Everything is measured from the middle, v - x_i = (v - mean)(1 + e_i), where the e_i sum to 0: terms that
    would cancel in a sample of 10^12 are left out before the sums.
    """
    from scipy.special import ndtr

    over = logs = square = 0.0
    parts = list(_seen_from(distance, middle, gaps, counts)) if gaps.size <= CHUNK else None
    for e, room, many in parts or _seen_from(distance, middle, gaps, counts):
        over += float(total(e * e / room, many)) / n  # the mean of 1 / (1 + e), minus 1
        terms = np.log1p(e)
        if distance < middle:  # otherwise e >= -middle / (distance + middle) >= -0.5
            near = e < -0.5
            terms[near] = np.log(room[near])
        logs += float(total(terms - e, many))
    for e, room, many in parts or _seen_from(distance, middle, gaps, counts):
        square += float(total(((over + e + over * e) / ((1.0 + over) * room)) ** 2, many))
    w, u = math.sqrt(max(0.0, 2.0 * (n * math.log1p(over) + logs))), math.sqrt(square)
    density = math.exp(-0.5 * w * w) / math.sqrt(2.0 * math.pi)
    m = (distance * over - middle) / (1.0 + over)
    return m, float(ndtr(-w)) + density * (1.0 / u - 1.0 / w)


def _seen_from(
    distance: float, middle: float, gaps: Floats, counts: Ints | None
) -> Iterator[tuple[Floats, Floats, Ints | None]]:
    """e, 1 + e (exact next to the pole) and the counts, in parts that fit into the processor's cache."""
    far = distance + middle
    for first in range(0, gaps.size, CHUNK):
        part = gaps[first : first + CHUNK]
        many = None if counts is None else counts[first : first + CHUNK]
        yield (part - middle) / far, (distance + part) / far, many
