"""Policies with an index other than mean + radius: KL-UCB, IMED and Bayes-UCB.

The versions for Bernoulli rewards work with all rewards in [0, 1]. A mean below 0 counts as 0, and a mean
above 1 counts as 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from lighttail.checks import accept, non_negative, positive, refuse
from lighttail.policies.policy import IndexPolicy, Policy
from lighttail.rules import Formula, Params, Rule, highest, learn_nothing, mean_heard, never_settled

MOST_POWER = 50.0  # the largest power of ln T in Bayes-UCB, for which its chance 1/(t (ln T)^c) is not 0
NEWTON_STEPS = 10  # steps of Newton's method at most; eight steps reach the root up to rounding
QUANTILE_STEPS = 60  # the same for the quantile of a beta law
FRACTION_TERMS = 5000  # terms of a fraction at most; about the square root of the larger shape is needed
HALF_LOG_TWO_PI = 0.9189385332046728


def bernoulli_divergence(p: float, q: float) -> float:
    """KL(Bernoulli(p), Bernoulli(q)) for p <= q in [0, 1]; infinite if q = 1 > p."""
    if q >= 1.0:
        return 0.0 if p >= 1.0 else math.inf
    miss = (1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if p < 1.0 else 0.0
    return miss + p * math.log(p / q) if p > 0.0 else miss


def gaussian_divergence(p: float, q: float, sigma: float) -> float:
    """KL(N(p, sigma^2), N(q, sigma^2))."""
    distance = (q - p) / sigma
    return 0.5 * distance * distance


def bernoulli_upper(p: float, most: float) -> float:
    """The largest q with KL(Bernoulli(p), Bernoulli(q)) <= most, by Newton's method.

    The divergence is convex and grows with q, so every step from the right of the root comes closer to it.
    Two bounds give the start: KL(p, q) >= 2 (q - p)^2, and KL(p, q) >= -H(p) - (1 - p) ln(1 - q).

    >>> round(bernoulli_upper(0.3, 0.1), 6)
    0.521028
    """
    if p >= 1.0:
        return 1.0
    rest = 1.0 - p
    base = rest * math.log(rest) + (p * math.log(p) if p > 0.0 else 0.0)  # -H(p)
    q = min(p + math.sqrt(0.5 * most), 1.0 - math.exp((base - most) / rest))
    for _ in range(NEWTON_STEPS):
        if q <= p or q >= 1.0:
            break
        over = base - rest * math.log(1.0 - q) - (p * math.log(q) if p > 0.0 else 0.0) - most
        if over <= 0.0:  # q is the root, up to rounding
            break
        q -= over * q * (1.0 - q) / (q - p)
    return min(1.0, max(p, q))


def bernoulli_index(n: float, mean: float, clock: float, c: float) -> float:
    return bernoulli_upper(min(1.0, max(0.0, mean)), clock / n)


def gaussian_index(n: float, mean: float, clock: float, c: float, sigma: float) -> float:
    return mean + sigma * math.sqrt(2.0 * clock / n)


@dataclass(frozen=True)
class KlUcb(IndexPolicy):
    """KL-UCB: the index is the largest mean that the rewards do not rule out (Garivier & Cappe 2011, Alg. 1):

    index = max{q: n KL(mean, q) <= ln t + c ln ln t}; ln ln t counts as 0 while ln t < 1.

    t: the round, from 1. n: the pulls of the arm. No horizon is needed.
    c: 0 or more. The authors recommend 0; their theorem needs 3.
    sigma: None for the divergence of Bernoulli laws, for rewards in [0, 1]. A number for the divergence of
        normal laws with this noise; the index is then mean + sigma sqrt(2 (ln t + c ln ln t) / n)
        (Cappe et al. 2013).

    >>> policy = KlUcb(0.5)
    >>> params = policy.params(horizon=math.nan, arms=2)
    >>> round(policy.index_formula()(10.0, 0.3, policy.clock(100.0, *params), *params), 4)
    0.7847
    """

    needs_horizon = False
    pulls_every_arm_first = True  # no index is infinite
    scaled = ("sigma",)
    c: float = 0.0
    sigma: float | None = None

    def __post_init__(self) -> None:
        accept(self, c=non_negative, **({} if self.sigma is None else {"sigma": positive}))

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.c,) if self.sigma is None else (self.c, self.sigma)

    def index_formula(self) -> Callable[..., float]:
        return bernoulli_index if self.sigma is None else gaussian_index

    @staticmethod
    def clock(t: float, c: float, *sigma: float) -> float:
        return math.log(t) + c * math.log(max(1.0, math.log(t)))

    def __str__(self) -> str:
        return f"KL-UCB({self.c:g})" if self.sigma is None else f"KL-UCB({self.c:g}, sigma {self.sigma:g})"


def bernoulli_cost(p: float, q: float) -> float:
    return bernoulli_divergence(min(1.0, max(0.0, p)), min(1.0, max(0.0, q)))


@cache
def imed_rule(divergence: Formula) -> Rule:
    """The rule of IMED. note[k, 0] is minus the index of arm k."""

    def choose(rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: Params) -> int:
        best = -math.inf
        for k in range(len(tried)):
            if tried[k] > 0.0:
                best = max(best, mean_heard(k, heard, total))
        for k in range(len(tried)):
            note[k, 0] = math.inf
            if tried[k] > 0.0:
                cost = divergence(mean_heard(k, heard, total), best, *params)
                note[k, 0] = -(tried[k] * cost + math.log(tried[k]))
        return highest(rng, note)

    return Rule(choose, learn_nothing, 1, 0, never_settled)


@dataclass(frozen=True)
class Imed(Policy):
    """Indexed minimum empirical divergence (Honda & Takemura 2015, Alg. 1): pull the arm with the smallest

    n KL(mean, best mean) + ln n.

    n: the pulls of the arm. No horizon is needed. An arm that was never pulled comes first. Ties are broken
    at random.
    sigma: None for the divergence of Bernoulli laws, for rewards in [0, 1]. A number for the divergence of
        normal laws with this noise.

    >>> round(10.0 * bernoulli_cost(0.3, 0.5) + math.log(10.0), 4)
    3.1254
    """

    needs_horizon = False
    scaled = ("sigma",)
    amendable = True
    arms_may_change = True
    sigma: float | None = None

    def __post_init__(self) -> None:
        accept(self, **({} if self.sigma is None else {"sigma": positive}))

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return () if self.sigma is None else (self.sigma,)

    def rule(self) -> Rule:
        return imed_rule(bernoulli_cost if self.sigma is None else gaussian_divergence)

    def __str__(self) -> str:
        return "IMED" if self.sigma is None else f"IMED(sigma {self.sigma:g})"


def log_gamma(x: float) -> float:
    """ln Gamma(x) for x > 0, with an error of about 1e-13. The function of the standard library does not give
    the same bits in compiled code and in plain Python.

    Stirling's series is used from x = 10 on, and x Gamma(x) = Gamma(x + 1) below.
    """
    product = 1.0
    while x < 10.0:
        product *= x
        x += 1.0
    square = 1.0 / (x * x)
    series = 1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square * (1.0 / 1680.0)))
    return (x - 0.5) * math.log(x) - x + HALF_LOG_TWO_PI + series / x - math.log(product)


def beta_fraction(y: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method."""
    c, d = 1.0, 1.0 / (1.0 - (a + b) * y / (a + 1.0))
    value = d
    for m in range(1, FRACTION_TERMS):
        even = m * (b - m) * y / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        d = 1.0 / (1.0 + even * d)
        c = 1.0 + even / c
        value *= c * d
        odd = -(a + m) * (a + b + m) * y / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        d = 1.0 / (1.0 + odd * d)
        c = 1.0 + odd / c
        value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return value


def beta_upper_quantile(chance: float, a: float, b: float) -> float:
    """The x with P(Beta(a, b) > x) = chance, for a, b >= 1 and a chance of at most about a half.

    With y = 1 - x the equation is I_y(b, a) = chance. Newton's method solves it for ln I as a function of ln
    y. This function is concave, because the shapes are 1 or more, and I_y(b, a) <= y^b / (b B(b, a)) gives a
    start on the left of the root. So every step stays on the left of the root and comes closer.

    >>> round(beta_upper_quantile(0.05, 3.0, 2.0), 6)
    0.902389
    """
    target, whole = math.log(chance), log_gamma(b) + log_gamma(a) - log_gamma(b + a)
    log_y = (target + math.log(b) + whole) / b
    for _ in range(QUANTILE_STEPS):
        y = math.exp(log_y)
        fraction = beta_fraction(y, b, a)
        log_share = b * log_y + a * math.log(1.0 - y) - whole + math.log(fraction / b)
        step = (target - log_share) * fraction * (1.0 - y) / b  # d ln I / d ln y = b / ((1 - y) fraction)
        log_y += max(0.0, step)
        if step < 1e-14:
            break
    return 1.0 - math.exp(log_y)


@dataclass(frozen=True)
class BayesUcb(IndexPolicy):
    """Bayes-UCB: the index is a quantile of the arm's posterior (Kaufmann, Cappe & Garivier 2012, Alg. 1).

    index = the 1 - 1/(t (ln T)^c) quantile of Beta(1 + s, 1 + n - s), s = n mean; ln T counts as at least 1.

    t: the round, from 1. n: the pulls of the arm. T: the horizon, which must be known unless c = 0.
    c: from 0 to 50. The authors recommend 0; their theorem needs 5.

    >>> policy = BayesUcb()
    >>> params = policy.params(horizon=math.nan, arms=2)
    >>> round(policy.index(10.0, 0.3, policy.clock(100.0, *params), *params), 4)
    0.6604
    """

    pulls_every_arm_first = True  # no index is infinite
    c: float = 0.0

    def __post_init__(self) -> None:
        accept(self, c=non_negative)
        if self.c > MOST_POWER:
            raise refuse("c", self.c, f"a number from 0 to {MOST_POWER:g}")

    @property
    def needs_horizon(self) -> bool:  # type: ignore[override]
        return self.c > 0.0

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (max(1.0, math.log(horizon)) ** self.c if self.c > 0.0 else 1.0,)

    @staticmethod
    def clock(t: float, scale: float) -> float:
        """The posterior chance that the mean of an arm is above its index."""
        return 1.0 / (t * scale)

    @staticmethod
    def index(n: float, mean: float, clock: float, scale: float) -> float:
        earned = n * min(1.0, max(0.0, mean))
        return beta_upper_quantile(clock, 1.0 + earned, 1.0 + (n - earned))

    def __str__(self) -> str:
        return f"Bayes-UCB({self.c:g})"
