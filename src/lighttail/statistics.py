"""Estimates with intervals that hold their level for skewed and two-humped samples too.

Probabilities get Clopper and Pearson's interval, quantiles one from order statistics; both hold
at every sample size. A mean gets Gaffke's interval, which is to any bounded outcome what Clopper
and Pearson's is to a 0-1 outcome; `mean_limits` says how. Standard deviation and CVaR get theirs
from the same construction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lighttail.validation import refuse

Floats = npt.NDArray[np.float64]
FINEST = 0.0025  # the smallest tail that the CVaR's draws resolve
SINGLE = 300  # values that the CVaR's limits weight one by one


@dataclass(frozen=True)
class Estimate:
    """A number with an interval that covers the truth with probability `level`.

    An end that the sample is too small to name is infinite.

    >>> print(Estimate(0.0, 0.0, 0.0007375, 0.95))
    0 [0, 0.0007375]
    """

    value: float
    low: float
    high: float
    level: float

    def to_dict(self) -> dict[str, float | None]:
        """For JSON, which has no infinity: an open end is None."""
        values = {"value": self.value, "low": self.low, "high": self.high, "level": self.level}
        return {name: value if math.isfinite(value) else None for name, value in values.items()}

    def __str__(self) -> str:
        return f"{self:.4g}"

    def __format__(self, form: str) -> str:
        """Each of the three numbers in the given form: f"{estimate:.2f}"."""
        if not form:
            return str(self)
        return f"{self.value:{form}} [{self.low:{form}}, {self.high:{form}}]"


def proportion(hits: int, sample: int, level: float) -> Estimate:
    """P(event) from `hits` in `sample` independent trials."""
    low, high = proportion_limits(np.array([hits]), sample, level)
    return Estimate(hits / sample, float(low[0]), float(high[0]), level)


def proportion_limits(hits: npt.NDArray[np.int64], sample: int, level: float) -> tuple[Floats, Floats]:
    """Clopper and Pearson's limits (1934) for each number of hits."""
    from scipy.special import betaincinv

    tail = (1.0 - level) / 2.0
    low = np.where(hits > 0, betaincinv(np.maximum(hits, 1), sample - hits + 1, tail), 0.0)
    high = np.where(hits < sample, betaincinv(hits + 1, np.maximum(sample - hits, 1), 1.0 - tail), 1.0)
    return low, high


def quantile(ordered: Floats, q: float, level: float) -> Estimate:
    """The q-quantile; limits are order statistics, infinite where the sample has none far enough.

    The number B of observations up to the quantile is Binomial(n, q): the l-th smallest lies above
    the quantile with probability P(B < l), the u-th smallest below it with P(B >= u).
    """
    from scipy.special import bdtr

    n = ordered.size
    tail = (1.0 - level) / 2.0
    reach = 12.0 * math.sqrt(n * q * (1.0 - q)) + 12.0
    ranks = np.arange(max(1, int(n * q - reach)), min(n, int(n * q + reach) + 1) + 1)
    below = bdtr(ranks - 1, n, q)  # P(B < rank)
    lows = ranks[below <= tail]
    highs = ranks[1.0 - below <= tail]
    low = float(ordered[lows[-1] - 1]) if lows.size else -math.inf
    high = float(ordered[highs[0] - 1]) if highs.size else math.inf
    middle = min(n, max(1, math.ceil(n * q)))
    return Estimate(float(ordered[middle - 1]), low, high, level)


def mean(sample: Floats, ends: tuple[float, float], level: float) -> Estimate:
    """The mean of an outcome that lies between `ends`."""
    low, high = mean_limits(sample, ends, level)
    return Estimate(float(np.mean(sample)), low, high, level)


def std(sample: Floats, ends: tuple[float, float], level: float) -> Estimate:
    """The standard deviation: the root of the mean squared distance from the sample's mean.

    That mean is off by at most the width of its own interval, which the lower limit allows for.
    """
    centre = float(np.mean(sample))
    squares = (sample - centre) ** 2
    furthest = max((end - centre) ** 2 for end in ends)
    low, high = mean_limits(squares, (0.0, furthest), level)
    off = max(abs(limit - centre) for limit in mean_limits(sample, ends, level))
    return Estimate(float(np.std(sample)), math.sqrt(max(0.0, low - off * off)), math.sqrt(high), level)


def cvar(ordered: Floats, q: float, ends: tuple[float, float], bounded: bool, level: float) -> Estimate:
    """The mean of the highest 1 - q of the outcomes (conditional value at risk).

    Its limits are Gaffke's as well: quantiles of the CVaR under a flat Dirichlet law on the sample
    and one more observation at the end of the range. Where the sample is too small to bound the
    q-quantile from above, the upper limit is that end: infinite unless the outcome is `bounded`.
    """
    tail = (1.0 - level) / 2.0
    if tail < FINEST:
        raise refuse("level", level, f"at most {1.0 - 2.0 * FINEST:g} for a CVaR")
    v = quantile(ordered, q, level)
    value = v.value + float(np.mean(np.maximum(ordered - v.value, 0.0))) / (1.0 - q)
    falling = ordered[::-1]
    low = float(np.quantile(_dirichlet_cvar(np.append(falling, ends[0]), q), tail))
    high = ends[1] if bounded else math.inf
    if math.isfinite(v.high):
        high = float(np.quantile(_dirichlet_cvar(np.append(ends[1], falling), q), 1.0 - tail))
    return Estimate(value, low, high, level)


def _dirichlet_cvar(falling: Floats, q: float) -> Floats:
    """Draws of the CVaR of `falling`, sorted downwards, under flat Dirichlet weights.

    Only the weights of the highest values matter, until they add up to 1 - q. Long samples are
    cut into groups: a group of g neighbours has a Gamma(g) weight and counts at its mean. The draws
    are the same at every call, so that an estimate is a function of its sample.
    """
    rng = np.random.Generator(np.random.SFC64(0))
    edges = _group_edges(falling.size, 1.0 - q)
    sizes = np.diff(edges)
    values = np.add.reduceat(falling[: edges[-1]], edges[:-1]) / sizes
    if edges[-1] <= SINGLE:
        weights = rng.standard_exponential((4000, sizes.size))
    else:
        weights = rng.standard_gamma(sizes, (2000, sizes.size))
    rest = rng.standard_gamma(falling.size - edges[-1], len(weights))
    share = np.cumsum(weights, axis=1)
    share /= (share[:, -1] + rest)[:, None]
    taken = np.diff(np.minimum(share, 1.0 - q), axis=1, prepend=0.0)
    return taken @ values / np.sum(taken, axis=1)  # type: ignore[no-any-return]


def _group_edges(n: int, tail: float) -> npt.NDArray[np.int64]:
    """Where the groups of a falling sample begin and end: single values if they are few, else ever
    longer groups, with short ones again around the rank where the tail ends."""
    expected = n * tail
    reach = 8.0 * math.sqrt(expected) + 20.0
    top = min(n, math.ceil(expected + reach))
    if top <= SINGLE:
        return np.arange(top + 1)
    around = np.linspace(max(0.0, expected - reach), top, SINGLE)
    ranks = np.concatenate([[0.0], np.geomspace(1, top, SINGLE), around])
    return np.unique(np.round(ranks).astype(np.int64))


def mean_limits(sample: Floats, ends: tuple[float, float], level: float) -> tuple[float, float]:
    """Gaffke's limits for the mean of an outcome between `ends` (Gaffke 2005; Phan et al. 2021).

    Put one more observation at the end of the range and weight all n + 1 by a flat Dirichlet law:
    the upper limit is the 1 - (1 - level)/2 quantile of that random mean. For 0-1 outcomes this is
    Clopper and Pearson's limit; for large samples it is the usual normal one, corrected for skew.
    The extra observation stands for the disaster that the sample may have missed.
    """
    tail = (1.0 - level) / 2.0
    return -_upper_limit(-sample, -ends[0], tail), _upper_limit(sample, ends[1], tail)


def _upper_limit(sample: Floats, end: float, tail: float) -> float:
    """The value that the Dirichlet mean of `sample` and `end` exceeds with probability `tail`.

    With independent exponentials E_i that mean exceeds m when sum E_i (x_i - m) > 0; Lugannani and
    Rice's formula gives the probability of that. Its saddlepoint is known in closed form once the
    pole v > max x_i of the tilted sum is the unknown instead of m.
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr

    points = np.append(sample, end)
    top = float(points.max())
    spread = top - float(points.min())
    if spread <= 0.0:
        return top
    gaps = (top - points) / spread

    def limit(log_distance: float) -> tuple[float, float]:
        """(m, log of the chance to exceed it) for a pole at that log distance above the top."""
        distance = math.exp(log_distance)
        room = distance + gaps
        tilt = float(np.mean(1.0 / room))  # s, in units of 1 / spread
        m = distance - 1.0 / tilt  # measured upwards from the top
        cumulant = -float(np.sum(np.log(tilt * room)))
        curvature = float(np.sum((1.0 / (tilt * room) - 1.0) ** 2)) / tilt**2
        w = math.sqrt(max(0.0, -2.0 * cumulant))
        u = tilt * math.sqrt(curvature)
        density = math.exp(-0.5 * w * w) / math.sqrt(2.0 * math.pi)
        return m, float(ndtr(-w)) + density * (1.0 / u - 1.0 / w)

    # From next to the top, where nothing is above m, to where m is all but the sample's mean.
    lowest, highest = math.log(1e-13), math.log(100.0 * math.sqrt(points.size) * float(np.std(gaps)))
    if limit(lowest)[1] > tail:
        return top
    root = brentq(lambda place: limit(place)[1] - tail, lowest, highest, xtol=1e-10)
    return min(top, top + spread * limit(root)[0])
