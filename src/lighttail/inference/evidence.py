"""Evidence against a mean: a bet whose capital grows if the mean is wrong, and seldom if the mean is right.

If the mean of an arm is mu, the capital M_n(mu) after n rewards of the arm is a non-negative supermartingale
that starts at 1, whatever rule decides when the arm is pulled. By Ville's inequality the capital ever reaches
1/alpha with a chance of at most alpha. The means whose capital is below 1/alpha are therefore a confidence
set that contains mu at all times together, with a chance of at least 1 - alpha.

Only one arm is pulled at a time, so the product of the capitals of two arms is a supermartingale, too: the
differences of two means whose product is below 1/alpha are a confidence set for the difference.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from lighttail.checks import accept, number, positive, refuse
from lighttail.noises import Bernoulli, Gaussian, Noise
from lighttail.records import Floats

Between = tuple[float, float] | None

TUNED_AT = 1000  # rewards of an arm at which the intervals for sub-Gaussian rewards are narrowest
STEPS = 100  # halvings of an interval, at most


class Heard(NamedTuple):
    """The rewards of an arm: how many, and their sum. For `posterior` alone the number may be a fraction."""

    times: float
    total: float

    @property
    def mean(self) -> float:
        """The mean reward; nan if nothing was heard."""
        return self.total / self.times if self.times else math.nan


class Evidence(ABC):
    """What is known about the rewards of every arm, and which means the rewards speak against.

    low, high: the limits of a reward.
    """

    low: float = -math.inf
    high: float = math.inf

    @abstractmethod
    def check(self, field: str, heard: Heard) -> None:
        """Raise BadInput if no such rewards can add up to this total."""

    @abstractmethod
    def log_capital(self, heard: Heard, mean: float) -> float:
        """ln M_n(mean): convex in the mean, and least at the mean of the rewards."""

    @abstractmethod
    def limits(self, heard: Heard, log_limit: float) -> tuple[float, float]:
        """The ends of the interval of all means whose log capital is below `log_limit`."""

    @abstractmethod
    def difference(self, one: Heard, other: Heard, log_limit: float) -> tuple[float, float]:
        """The ends of the interval of mean(other) - mean(one), over all pairs of means whose log capitals
        add up to less than `log_limit`."""

    @property
    @abstractmethod
    def noise(self) -> Noise:
        """The noise with which rewards to come are simulated."""

    @abstractmethod
    def posterior(
        self, arms: Sequence[Heard], rng: np.random.Generator, count: int, between: Between = None
    ) -> Floats:
        """Draws of all means from their posterior law, [draw, arm].

        between: two numbers between which every mean is believed to lie, all values equally likely before
        rewards are seen. Without them, the prior is the one that the class states.
        """


@dataclass(frozen=True)
class SubGaussianRewards(Evidence):
    """Rewards whose noise is sub-Gaussian with this sigma, such as Gaussian rewards.

    The capital is the normal mixture of Robbins (1970), as in Howard, Ramdas, McAuliffe and Sekhon (Annals of
    Statistics 49, 2021, eq. 14). With S the sum of the rewards minus n mu,

        ln M_n(mu) = S^2 / (2 sigma^2 (n + rho)) - ln((n + rho) / rho) / 2.

    tuned_at: the number of rewards of an arm at which its interval is narrowest. The number must be chosen
    before rewards are seen.

    Prior of the means: normal around the mean of all rewards, with the deviation sigma. The posterior law is
    that of normal rewards: an arm has one more reward, which equals the mean of all rewards.

    >>> low, high = SubGaussianRewards(1.0).limits(Heard(1000, 0.0), math.log(1 / 0.05))
    >>> round(high, 4)  # 1.96 / sqrt(1000) = 0.062 would hold at one time alone
    0.096
    """

    sigma: float
    tuned_at: float = TUNED_AT

    def __post_init__(self) -> None:
        accept(self, sigma=positive, tuned_at=positive)

    @cached_property
    def rho(self) -> float:
        """n / (-W(-alpha^2 / e) - 1) for n = `tuned_at` and alpha = 5 %, where W is the lower branch of
        Lambert's function (eq. 26)."""
        from scipy.special import lambertw

        return float(self.tuned_at / (-lambertw(-(0.05**2) / math.e, -1).real - 1.0))

    def check(self, field: str, heard: Heard) -> None:
        number(field, heard.total)

    def log_capital(self, heard: Heard, mean: float) -> float:
        off = (heard.total - heard.times * mean) / self.sigma
        return off * off / (2.0 * (heard.times + self.rho)) - self._grown(heard)

    def limits(self, heard: Heard, log_limit: float) -> tuple[float, float]:
        if heard.times == 0:
            return -math.inf, math.inf
        radius = math.sqrt(2.0 * self._spread(heard) * (log_limit + self._grown(heard)))
        return heard.mean - radius, heard.mean + radius

    def difference(self, one: Heard, other: Heard, log_limit: float) -> tuple[float, float]:
        """In closed form: for a difference that is off by D, the least sum of the two squares is
        D^2 / (2 (v_1 + v_2)) with v = sigma^2 (n + rho) / n^2."""
        if one.times == 0 or other.times == 0:
            return -math.inf, math.inf
        spread = self._spread(one) + self._spread(other)
        radius = math.sqrt(2.0 * spread * (log_limit + self._grown(one) + self._grown(other)))
        middle = other.mean - one.mean
        return middle - radius, middle + radius

    @property
    def noise(self) -> Noise:
        return Gaussian(self.sigma)

    def posterior(
        self, arms: Sequence[Heard], rng: np.random.Generator, count: int, between: Between = None
    ) -> Floats:
        return _normal_posterior(arms, self.sigma, rng, count, between)

    def _spread(self, heard: Heard) -> float:
        return self.sigma**2 * (heard.times + self.rho) / heard.times**2

    def _grown(self, heard: Heard) -> float:
        return 0.5 * math.log1p(heard.times / self.rho)


@dataclass(frozen=True)
class BoundedRewards(Evidence):
    """Rewards between two known numbers, such as conversions, which are 0 or 1.

    The capital comes from bets on the next reward, mixed over the bets by Beta(1/2, 1/2). With rewards scaled
    to [0, 1], their sum s and f = n - s,

        ln M_n(mu) = ln B(s + 1/2, f + 1/2) - ln B(1/2, 1/2) - s ln mu - f ln(1 - mu).

    For coins M is a ratio of likelihoods. For other rewards x in [0, 1], the factor
    (q/mu)^x ((1-q)/(1-mu))^(1-x) of a bet q is convex in x, so its expectation is at most that for a coin
    with the same mean, which is 1 (Howard et al. 2021, sub-Bernoulli processes; Waudby-Smith and Ramdas,
    JRSS B 86, 2024, for the view as bets).

    Prior of the means: Beta(1/2, 1/2) for rewards of 0 or 1. Rewards in another range are simulated as normal
    with half of the range as deviation, which is the most that they can have.

    >>> low, high = BoundedRewards(0, 1).limits(Heard(1000, 40.0), math.log(1 / 0.05))
    >>> round(low, 4), round(high, 4)
    (0.0213, 0.0668)
    """

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        low, high = number("low", self.low), number("high", self.high)
        if not (low < high and math.isfinite(high - low)):
            raise refuse("high", self.high, f"a finite number above low ({low:g})")
        accept(self, low=number, high=number)

    def check(self, field: str, heard: Heard) -> None:
        least, most = heard.times * self.low, heard.times * self.high
        slack = 1e-9 * (abs(least) + abs(most))  # sums are rounded
        if not least - slack <= heard.total <= most + slack:
            why = f"because each of {heard.times:,} rewards is from {self.low:g} to {self.high:g}"
            raise refuse(field, heard.total, f"between {least:g} and {most:g}, {why}")

    def log_capital(self, heard: Heard, mean: float) -> float:
        return _coin_capital(*self._wins(heard), (mean - self.low) / (self.high - self.low))

    def limits(self, heard: Heard, log_limit: float) -> tuple[float, float]:
        wins, fails = self._wins(heard)

        def inside(share: float) -> bool:
            return _coin_capital(wins, fails, share) < log_limit

        middle = _share((wins, fails))
        width = self.high - self.low
        return self.low + width * _end(inside, middle, 0.0), self.low + width * _end(inside, middle, 1.0)

    def difference(self, one: Heard, other: Heard, log_limit: float) -> tuple[float, float]:
        first, second = self._wins(one), self._wins(other)

        def inside(difference: float) -> bool:
            share = _likeliest(first, second, difference)
            return _coin_capital(*first, share) + _coin_capital(*second, share + difference) < log_limit

        middle = _share(second) - _share(first)
        width = self.high - self.low
        return width * _end(inside, middle, -1.0), width * _end(inside, middle, 1.0)

    @property
    def noise(self) -> Noise:
        return Bernoulli() if self._coins else Gaussian(0.5 * (self.high - self.low))

    def posterior(
        self, arms: Sequence[Heard], rng: np.random.Generator, count: int, between: Between = None
    ) -> Floats:
        if not self._coins:
            draws = _normal_posterior(arms, 0.5 * (self.high - self.low), rng, count, between)
            return np.clip(draws, self.low, self.high)
        wins, fails = np.array([self._wins(heard) for heard in arms]).T
        if between is None:
            return rng.beta(wins + 0.5, fails + 0.5, size=(count, len(arms)))
        from scipy.stats import beta

        return _cut(beta(wins + 1.0, fails + 1.0), between, rng, (count, len(arms)))

    @property
    def _coins(self) -> bool:
        return self.low == 0.0 and self.high == 1.0

    def _wins(self, heard: Heard) -> tuple[float, float]:
        """The sum of the rewards, scaled to [0, 1], and the number of rewards minus this sum."""
        wins = (heard.total - heard.times * self.low) / (self.high - self.low)
        wins = min(max(wins, 0.0), float(heard.times))
        return wins, heard.times - wins


def _normal_posterior(
    arms: Sequence[Heard], sigma: float, rng: np.random.Generator, count: int, between: Between
) -> Floats:
    """Draws of the means of normal rewards. Without `between`, every arm has one more reward: the mean of all
    rewards."""
    times = np.array([heard.times for heard in arms], dtype=np.float64)
    totals = np.array([heard.total for heard in arms])
    if between is None:
        overall = totals.sum() / max(1.0, times.sum())
        middle, scale = (totals + overall) / (times + 1.0), sigma / np.sqrt(times + 1.0)
        return np.asarray(middle + scale * rng.standard_normal((count, len(arms))), dtype=np.float64)
    from scipy.stats import norm

    many = np.maximum(times, 1e-12)  # without a reward, all values between the limits are alike
    return _cut(norm(totals / many, sigma / np.sqrt(many)), between, rng, (count, len(arms)))


def _cut(law: Any, between: tuple[float, float], rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Draws from laws that are cut off outside two numbers, by their quantiles from the nearer side."""
    low, high = between
    upper = law.cdf(low) > 0.5  # then the chances above are more exact
    first = np.where(upper, law.sf(high), law.cdf(low))
    last = np.where(upper, law.sf(low), law.cdf(high))
    share = first + (last - first) * rng.random(shape)
    draws = np.where(upper, law.isf(share), law.ppf(share))
    draws = np.where(last > first, draws, law.median())  # no chance in between: the nearer limit
    return np.asarray(np.clip(draws, low, high), dtype=np.float64)


def _share(counts: tuple[float, float]) -> float:
    """The share of wins among wins and fails; one half if there are none."""
    wins, fails = counts
    return wins / (wins + fails) if wins + fails > 0.0 else 0.5


def _coin_capital(wins: float, fails: float, share: float) -> float:
    """ln M of `BoundedRewards` at a mean in [0, 1]."""
    mixed = math.lgamma(wins + 0.5) + math.lgamma(fails + 0.5) - math.lgamma(wins + fails + 1.0)
    return mixed - math.log(math.pi) - _times_log(wins, share) - _times_log(fails, 1.0 - share)


def _times_log(count: float, share: float) -> float:
    """count ln share, with 0 ln 0 = 0."""
    if count == 0.0:
        return 0.0
    return count * math.log(share) if share > 0.0 else -math.inf


def _likeliest(one: tuple[float, float], other: tuple[float, float], difference: float) -> float:
    """The share p for which coins with p and p + difference have the highest likelihood, by bisection of
    its slope."""
    low, high = max(0.0, -difference), min(1.0, 1.0 - difference)
    for _ in range(STEPS):
        share = 0.5 * (low + high)
        if share in (low, high):
            break
        there = share + difference
        slope = one[0] / share - one[1] / (1.0 - share)
        slope += other[0] / there - other[1] / (1.0 - there) if 0.0 < there < 1.0 else 0.0
        low, high = (share, high) if slope > 0.0 else (low, share)
    return 0.5 * (low + high)


def _end(inside: Callable[[float], bool], middle: float, far: float) -> float:
    """The end, towards `far`, of the interval around `middle` in which `inside` holds, by bisection."""
    if inside(far):
        return far
    for _ in range(STEPS):
        half = 0.5 * (middle + far)
        if half in (middle, far):
            break
        middle, far = (half, far) if inside(half) else (middle, half)
    return far  # the outer end, so that rounding makes the interval wider


def evidence_of(known: Mapping[str, float] | None) -> Evidence:
    """What the setting `rewards` of an experiment says; without it, rewards are taken to be from 0 to 1.

    >>> evidence_of({"sigma": 2.0}), evidence_of(None)
    (SubGaussianRewards(sigma=2.0, tuned_at=1000.0), BoundedRewards(low=0.0, high=1.0))
    """
    if known is not None and "sigma" in known:
        return SubGaussianRewards(known["sigma"])
    return BoundedRewards() if known is None else BoundedRewards(known["low"], known["high"])
