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
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from lighttail.checks import refuse
from lighttail.outcomes.mean_limits import mean_limits, with_count
from lighttail.outcomes.tally import Sample, Values, sample_of, total
from lighttail.records import Floats, Ints

FINEST = 0.0025  # the smallest tail that the draws of the CVaR resolve
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


def proportion(hits: int, trials: int, level: float) -> Estimate:
    """P(event) from `hits` in independent trials."""
    return Estimate(hits / trials, *_limits_between(hits, hits, trials, level), level)


@lru_cache(maxsize=4096)
def _limits_between(sure: int, possible: int, trials: int, level: float) -> tuple[float, float]:
    """The lower limit of P(event) from the hits that are sure, and the upper limit from all possible hits."""
    low, high = proportion_limits(np.array([sure, possible]), trials, level)
    return float(low[0]), float(high[1])


def proportion_limits(hits: Ints, trials: int, level: float) -> tuple[Floats, Floats]:
    """Clopper and Pearson's limits (1934) for each number of hits."""
    tail = (1.0 - level) / 2.0
    low = np.where(hits > 0, _beta_quantile(np.maximum(hits, 1), trials - hits + 1, tail), 0.0)
    high = np.where(hits < trials, _beta_quantile(hits + 1, np.maximum(trials - hits, 1), 1.0 - tail), 1.0)
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


def survival_curve(values: Values) -> tuple[Floats, Floats, Floats, Floats]:
    """x, P(value >= x) and its Clopper-Pearson limits, at up to 400 order statistics."""
    sample = values if isinstance(values, Sample) else sample_of(np.sort(values))
    n = sample.size
    ranks = np.unique(np.round(np.geomspace(1, n, 400)).astype(np.int64))[::-1]
    x = np.array([sample.at(n + 1 - rank) for rank in ranks.tolist()])
    low, high = proportion_limits(ranks, n, 0.95)
    return x, ranks / n, low, high


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
    low = max(0.0, low - off * off)
    return _holding(math.sqrt(_mean_of(squares)), math.sqrt(low), math.sqrt(high), level)


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
    low = float(np.quantile(_dirichlet_cvar(under, with_count(counts, 1), q), tail))
    high = ends[1] if bounded else math.inf
    if math.isfinite(v.high):
        over = np.append(ends[1], sample.high[::-1])
        high = float(np.quantile(_dirichlet_cvar(over, with_count(1, counts), q), 1.0 - tail))
    return _holding(v.value + excess / (1.0 - q), low, high, level)


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
