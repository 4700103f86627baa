"""Estimates with intervals that hold their level even if a sample is skewed or has two humps.

Probabilities get Clopper and Pearson's interval, and quantiles an interval from order statistics; both hold
at every sample size. Means get Gaffke's interval, which extends Clopper and Pearson's from 0-1 outcomes to
any bounded outcome; `mean_limits` explains it. Standard deviation and CVaR use the same construction.

A sample is an array, or a `Sample` whose values stand for many observations each. Each formula serves both.
If an observation is known only up to its bin, the limits assume the worst that the bins allow.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt

from lighttail.checks import refuse
from lighttail.outcomes.tally import Sample, Values, sample_of, total
from lighttail.records import Floats, Ints

FINEST = 0.0025  # the smallest tail that the draws of the CVaR resolve
CHUNK = 1 << 15  # values that are added up together
STRIDES = (1.5, 3.0, 6.0, 12.0)  # steps to a limit of a mean, times the distance to it on a straight line
LEAST = 1e-300  # a chance above 0 whose logarithm is a number
SINGLE = 300  # values up to which the limits of the CVaR weight each value separately


@dataclass(frozen=True)
class Estimate:
    """A number with an interval that covers the truth with probability `level`.

    An end is infinite if the sample is too small for a finite one.

    >>> print(Estimate(0.0, 0.0, 0.0007375, 0.95))
    0 [0, 0.0007375]
    """

    value: float
    low: float
    high: float
    level: float

    def to_dict(self) -> dict[str, float | None]:
        """For JSON, which has no infinity: an infinite end becomes None."""
        values = {"value": self.value, "low": self.low, "high": self.high, "level": self.level}
        return {name: finite(value) for name, value in values.items()}

    def __float__(self) -> float:
        """The value without its interval."""
        return self.value

    def __str__(self) -> str:
        return f"{self:.4g}"

    def _repr_html_(self) -> str:
        from lighttail.outcomes.notebook import table

        return table("", [*(shown := self._shown())], [[*shown.values()]])

    def _shown(self) -> dict[str, str]:
        limits = f"[{self.low:.4g}, {self.high:.4g}]"
        return {"value": f"{self.value:.4g}", f"{100.0 * self.level:g} % interval": limits}

    def __format__(self, form: str) -> str:
        """The three numbers in the given format, as in f"{estimate:.2f}"."""
        if not form:
            return str(self)
        return f"{self.value:{form}} [{self.low:{form}}, {self.high:{form}}]"


def finite(value: float) -> float | None:
    """For JSON, which has no infinity: None in place of a number that is not finite."""
    return value if math.isfinite(value) else None


def proportion(hits: int, sample: int, level: float) -> Estimate:
    """P(event) from `hits` in `sample` independent trials."""
    return Estimate(hits / sample, *_limits_between(hits, hits, sample, level), level)


@lru_cache(maxsize=4096)
def _limits_between(sure: int, possible: int, sample: int, level: float) -> tuple[float, float]:
    """The lower limit of P(event) from the hits that are sure, and the upper limit from all possible hits."""
    low, high = proportion_limits(np.array([sure, possible]), sample, level)
    return float(low[0]), float(high[1])


def proportion_limits(hits: Ints, sample: int, level: float) -> tuple[Floats, Floats]:
    """Clopper and Pearson's limits (1934) for each number of hits."""
    tail = (1.0 - level) / 2.0
    low = np.where(hits > 0, _beta_quantile(np.maximum(hits, 1), sample - hits + 1, tail), 0.0)
    high = np.where(hits < sample, _beta_quantile(hits + 1, np.maximum(sample - hits, 1), 1.0 - tail), 1.0)
    return low, high


def _beta_quantile(a: Ints, b: Ints, share: float) -> Floats:
    """The quantile of Beta(a, b). scipy's quantile is wrong for some a with more than 10^9 trials: if scipy's
    distribution function shows this, the logarithm of the quantile is found by bisection."""
    from scipy.special import betainc, betaincinv

    found = np.asarray(betaincinv(a, b, share), dtype=np.float64)
    wrong = ~(np.abs(betainc(a, b, found) - share) < 1e-6 * min(share, 1.0 - share))
    if np.any(wrong):
        a, b = (np.asarray(part, dtype=np.float64)[wrong] for part in np.broadcast_arrays(a, b))
        low, high = np.full(a.shape, -750.0), np.zeros(a.shape)
        for _ in range(64):
            middle = 0.5 * (low + high)
            above = betainc(a, b, np.exp(middle)) > share
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        found[wrong] = np.exp(0.5 * (low + high))
    return found


def exceedance(values: Values, x: float, level: float) -> Estimate:
    """P(observation >= x). If x lies within a bin, the value counts the share of the bin above x, the lower
    limit none of its observations, and the upper limit all of them."""
    sample = sample_of(values)
    sure, possible = sample.low >= x, sample.high >= x
    hits = int(total(sure.astype(np.int64), sample.counts))
    most = int(total(possible.astype(np.int64), sample.counts))
    value = hits / sample.size
    if most > hits:
        open_ = np.flatnonzero(possible & ~sure)
        share = (sample.high[open_] - x) / (sample.high[open_] - sample.low[open_])
        value += float(total(share, None if sample.counts is None else sample.counts[open_])) / sample.size
    return Estimate(value, *_limits_between(hits, most, sample.size, level), level)


def survival_curve(values: Values, points: int = 400) -> tuple[Floats, Floats, Floats, Floats]:
    """x, P(value >= x) and its Clopper-Pearson limits, at up to `points` order statistics."""
    sample = values if isinstance(values, Sample) else sample_of(np.sort(values))
    n = sample.size
    ranks = np.unique(np.round(np.geomspace(1, n, points)).astype(np.int64))[::-1]
    x = np.array([sample.at(n + 1 - rank) for rank in ranks.tolist()])
    low, high = proportion_limits(ranks, n, 0.95)
    return x, ranks / n, low, high


def histogram(values: Values, edges: Floats) -> Floats:
    """The share of all observations in each bin; those beyond the edges count in the first or last bin.

    >>> print(histogram(np.array([0.2, 0.3, 1.5, 9.0]), np.array([0.0, 1.0, 2.0, 3.0])))
    [0.5  0.25 0.25]
    """
    sample = sample_of(values)
    inside = np.clip(sample.value, edges[0], edges[-1])
    return np.histogram(inside, edges, weights=sample.counts)[0] / sample.size


def quantile(ordered: Values, q: float, level: float) -> Estimate:
    """The q-quantile. Its limits are order statistics, or infinite if the sample has no suitable one.

    The number B of observations up to the quantile is Binomial(n, q): the l-th smallest lies above
    the quantile with probability P(B < l), the u-th smallest below it with P(B >= u).
    """
    sample = sample_of(ordered)
    n = sample.size
    under, over = _ranks_around(n, q, level)
    low = float(sample.low[sample.place(under)]) if under >= 1 else -math.inf
    high = float(sample.high[sample.place(over)]) if over <= n else math.inf
    return Estimate(sample.at(min(n, max(1, math.ceil(n * q)))), low, high, level)


@lru_cache(maxsize=256)
def _ranks_around(n: int, q: float, level: float) -> tuple[int, int]:
    """The ranks of the limits of a q-quantile among n observations: 0 or n + 1 if no rank is sure enough."""
    from scipy.special import betainc

    tail = (1.0 - level) / 2.0

    def below(rank: int) -> float:
        """P(B < rank)."""
        return float(betainc(n - rank + 1, rank, 1.0 - q))

    ranks = range(1, n + 1)
    under = bisect_right(ranks, tail, key=below)
    return under, 1 + bisect_left(ranks, True, key=lambda rank: 1.0 - below(rank) <= tail)


def interpolated(ordered: Values, q: float) -> float:
    """The q-quantile of the sample itself, interpolated between order statistics as in NumPy."""
    sample = sample_of(ordered)
    rank = (sample.size - 1) * q
    before, after = (sample.at(1 + round_(rank)) for round_ in (math.floor, math.ceil))
    return before + (after - before) * (rank - math.floor(rank))


def mean(values: Values, ends: tuple[float, float], level: float) -> Estimate:
    """The mean of an outcome that lies between `ends`."""
    low, high = mean_limits(values, ends, level)
    return _holding(_mean_of(sample_of(values)), low, high, level)


def _holding(value: float, low: float, high: float, level: float) -> Estimate:
    """An estimate whose interval contains its value, even if rounding puts the value outside the limits."""
    return Estimate(value, min(low, value), max(high, value), level)


def std(values: Values, ends: tuple[float, float], level: float) -> Estimate:
    """The standard deviation: the root of the mean squared distance from the sample's mean.

    The lower limit allows for the error of this mean, which is at most the width of its own interval.
    """
    sample = sample_of(values)
    centre = _mean_of(sample)
    squares = _squares(sample, centre)
    furthest = max((end - centre) ** 2 for end in ends)
    low, high = mean_limits(squares, (0.0, furthest), level)
    off = max(abs(limit - centre) for limit in mean_limits(sample, ends, level))
    return _holding(
        math.sqrt(_mean_of(squares)), math.sqrt(max(0.0, low - off * off)), math.sqrt(high), level
    )


def _squares(sample: Sample, centre: float) -> Sample:
    """The sample of the squared distances from the centre."""
    if sample.low is sample.high:
        value = (sample.value - centre) ** 2
        return Sample(value, value, value, sample.counts)
    ends = (sample.low - centre) ** 2, (sample.high - centre) ** 2
    across = (sample.low < centre) & (sample.high > centre)
    low, high = np.where(across, 0.0, np.minimum(*ends)), np.maximum(*ends)
    return Sample(0.5 * (low + high), low, high, sample.counts, None if sample.std is None else sample.std**2)


def _mean_of(sample: Sample) -> float:
    return float(total(sample.value, sample.counts)) / sample.size if sample.mean is None else sample.mean


def cvar(ordered: Values, q: float, ends: tuple[float, float], bounded: bool, level: float) -> Estimate:
    """The mean of the highest 1 - q of the outcomes (conditional value at risk).

    Its limits are Gaffke's as well: quantiles of the CVaR under a flat Dirichlet law on the sample
    and one more observation at the end of the range. If the sample is too small for an upper limit of the
    q-quantile, the upper limit of the CVaR is the end of the range, or infinite if the outcome is not
    `bounded`.
    """
    tail = (1.0 - level) / 2.0
    if tail < FINEST:
        raise refuse("level", level, f"at most {1.0 - 2.0 * FINEST:g} for a CVaR")
    sample = sample_of(ordered)
    v = quantile(sample, q, level)
    excess = float(total(np.maximum(sample.value - v.value, 0.0), sample.counts)) / sample.size
    counts = None if sample.counts is None else sample.counts[::-1]
    under = np.append(sample.low[::-1], ends[0])
    low = float(np.quantile(_dirichlet_cvar(under, _append(counts, 1), q), tail))
    high = ends[1] if bounded else math.inf
    if math.isfinite(v.high):
        over = np.append(ends[1], sample.high[::-1])
        high = float(np.quantile(_dirichlet_cvar(over, _append(1, counts), q), 1.0 - tail))
    return _holding(v.value + excess / (1.0 - q), low, high, level)


def _append(first: Ints | int | None, second: Ints | int | None) -> Ints | None:
    return None if first is None or second is None else np.append(first, second)


def _dirichlet_cvar(falling: Floats, counts: Ints | None, q: float) -> Floats:
    """Draws of the CVaR of `falling`, which is in descending order, under flat Dirichlet weights.

    The draws are the same at every call, so that an estimate is a function of its sample.
    """
    edges, taken, sums = _dirichlet_tails(falling.size if counts is None else int(counts.sum()), q)
    return taken @ (_group_sums(falling, counts, edges) / np.diff(edges)) / sums


@lru_cache(maxsize=1)  # up to 10 MB: both limits of a CVaR, and the CVaRs of all policies of a comparison
def _dirichlet_tails(n: int, q: float) -> tuple[Ints, Floats, Floats]:
    """The groups of n falling values, the weight of each group within the tail in every draw, and the sums
    of these weights.

    Only the weights of the highest values matter, until they add up to 1 - q. Long samples are
    cut into groups: a group of g neighbours has a Gamma(g) weight, and its mean stands for all of them.
    """
    rng = np.random.Generator(np.random.SFC64(0))
    edges = _group_edges(n, 1.0 - q)
    sizes = np.diff(edges)
    if edges[-1] <= SINGLE:
        weights = rng.standard_exponential((4000, sizes.size))
    else:
        weights = rng.standard_gamma(sizes, (2000, sizes.size))
    rest = rng.standard_gamma(n - edges[-1], len(weights))
    share = np.cumsum(weights, axis=1)
    share /= (share[:, -1] + rest)[:, None]
    taken = np.diff(np.minimum(share, 1.0 - q), axis=1, prepend=0.0)
    return edges, taken, np.sum(taken, axis=1)


def _group_sums(falling: Floats, counts: Ints | None, edges: Ints) -> Floats:
    """The sums of the observations between the edges, which may divide the observations of one value."""
    if counts is None:
        return np.add.reduceat(falling[: edges[-1]], edges[:-1])
    up_to = np.cumsum(counts)
    cuts = np.union1d(up_to[up_to < edges[-1]], edges[1:])
    parts = falling[np.searchsorted(up_to, cuts)] * np.diff(cuts, prepend=0)
    return np.add.reduceat(parts, np.searchsorted(cuts, edges[:-1], side="right"))


def _group_edges(n: int, tail: float) -> npt.NDArray[np.int64]:
    """The ranks at which the groups of a falling sample begin and end: groups of one value if the tail is
    short, otherwise longer and longer groups, with short groups again around the end of the tail."""
    expected = n * tail
    reach = 8.0 * math.sqrt(expected) + 20.0
    top = min(n, math.ceil(expected + reach))
    if top <= SINGLE:
        return np.arange(top + 1)
    around = np.linspace(max(0.0, expected - reach), top, SINGLE)
    ranks = np.concatenate([[0.0], np.geomspace(1, top, SINGLE), around])
    return np.unique(np.round(ranks).astype(np.int64))


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


def _mean_limits(sample: Sample, ends: tuple[float, float], level: float) -> tuple[float, float]:
    tail = (1.0 - level) / 2.0
    counts = _append(sample.counts, 1)
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

    place = min(highest, math.log(math.sqrt(n) * deviation / wanted))  # the root of a very large sample
    low, high = lowest, highest
    for stride in STRIDES:  # past the root
        off = too_far(place)
        low, high = (place, high) if off > 0.0 else (low, place)
        place += stride * off
        if not low < place < high or lowest < low < high < highest:
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
