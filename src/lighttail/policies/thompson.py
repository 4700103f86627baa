"""Thompson sampling: pull the arm whose draw from its posterior is highest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from lighttail.checks import accept, number, positive, refuse
from lighttail.policies.policy import Policy
from lighttail.random.streams import standard_normal, uniform
from lighttail.rules import Params, highest, mean_heard


def posterior_mean(n: float, total: float, kappa: float, weight: float, prior_mean: float) -> float:
    """The mean of the posterior after n rewards with sum `total`.

    The prior counts as `weight` = (kappa / prior_sd)^2 observations of `prior_mean`.
    """
    return (weight * prior_mean + total) / (weight + n)


def posterior_sd(n: float, kappa: float, weight: float, prior_mean: float) -> float:
    return kappa / math.sqrt(weight + n)


def inflated_sd(n: float, t: float, scale: float) -> float:
    """scale * sqrt(t) / n with scale = kappa / sqrt(K)."""
    return scale * math.sqrt(t) / n


@dataclass(frozen=True)
class ThompsonSampling(Policy):
    """Pull the arm whose draw from its posterior is highest, with a normal prior and normal rewards.

    The prior of an arm's mean is N(prior_mean, prior_sd^2), and a reward is assumed to be N(mean, kappa^2).
    The draws are continuous, so there are no ties.

    kappa: the assumed standard deviation of the noise. No horizon is needed.
    prior_mean, prior_sd: where the means of the arms lie, in units of reward. `for_noise` changes neither.

    >>> policy = ThompsonSampling(kappa=0.8)
    >>> params = policy.params(horizon=math.nan, arms=2)
    >>> round(policy.posterior_mean(4.0, 2.0, *params), 4), round(policy.posterior_sd(4.0, *params), 4)
    (0.431, 0.3714)
    """

    needs_horizon = False
    plays_by = "posterior"
    draws_for_itself: ClassVar[bool | None] = True
    scaled = ("kappa",)  # the prior is about the means, not about the noise
    amendable = True
    arms_may_change = True
    kappa: float
    prior_mean: float = 0.0
    prior_sd: float = 1.0

    def __post_init__(self) -> None:
        accept(self, kappa=positive, prior_mean=number, prior_sd=positive)
        try:
            weight = (self.kappa / self.prior_sd) ** 2
        except OverflowError:
            weight = math.inf
        if not 0.0 < weight < math.inf:
            allowed = "a ratio whose square is a float above 0"
            raise refuse("kappa / prior_sd", self.kappa / self.prior_sd, allowed)

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return self.kappa, (self.kappa / self.prior_sd) ** 2, self.prior_mean

    posterior_mean = staticmethod(posterior_mean)
    posterior_sd = staticmethod(posterior_sd)

    @staticmethod
    def choose(rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: Params) -> int:
        """An open pull narrows the posterior of its arm, so that a batch spreads over the arms."""
        best, arm = -math.inf, 0
        for k in range(len(tried)):
            spread = posterior_sd(tried[k], *params)
            draw = posterior_mean(heard[k], total[k], *params) + spread * standard_normal(rng)
            if draw > best:
                best, arm = draw, k
        return arm

    def __str__(self) -> str:
        usual = (self.prior_mean, self.prior_sd) == (0.0, 1.0)
        prior = "" if usual else f", prior ({self.prior_mean:g}, {self.prior_sd:g})"
        return f"TS({self.kappa:g}{prior})"


def gamma_draw(rng: Any, shape: float) -> float:
    """One draw of Gamma(shape) for shape >= 1 (Marsaglia & Tsang 2000): d v with v = (1 + c z)^3, if the draw
    is accepted."""
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        z = standard_normal(rng)
        v = 1.0 + c * z
        if v > 0.0:
            v = v * v * v
            if math.log(1.0 - uniform(rng)) < 0.5 * z * z + d - d * v + d * math.log(v):
                return d * v


def beta_draw(rng: Any, a: float, b: float) -> float:
    """One draw of Beta(a, b) for a, b >= 1: G_a / (G_a + G_b) for two independent gamma draws."""
    first = gamma_draw(rng, a)
    return first / (first + gamma_draw(rng, b))


@dataclass(frozen=True)
class BetaThompson(Policy):
    """Thompson sampling for rewards in [0, 1]: pull the arm whose draw from its posterior is highest.

    The prior of an arm's mean is uniform on [0, 1]. After n rewards with sum s the posterior is
    Beta(1 + s, 1 + n - s) (Agrawal & Goyal 2012, Alg. 1). Rewards between 0 and 1 are not rounded to 0 or 1.
    A sum below 0 counts as 0, and a sum above n counts as n. No horizon is needed.

    >>> import lighttail as lt
    >>> problem = lt.Bandit([0.4, 0.6], lt.Bernoulli())
    >>> print(lt.simulate(BetaThompson(), problem, horizon=500, paths=2000, seed=1).mean("pseudo_regret"))
    6.97 [6.713, 7.304]
    """

    amendable = True
    arms_may_change = True
    needs_horizon = False

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return ()

    @staticmethod
    def choose(rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: Params) -> int:
        """An open pull narrows the posterior but keeps its mean, so that a batch spreads over the arms."""
        best, arm = -math.inf, 0
        for k in range(len(tried)):
            won = min(heard[k], max(0.0, total[k]))
            weight = (2.0 + tried[k]) / (2.0 + heard[k])
            draw = beta_draw(rng, weight * (1.0 + won), weight * (1.0 + (heard[k] - won)))
            if draw > best:
                best, arm = draw, k
        return arm

    def __str__(self) -> str:
        return "BetaTS"


@dataclass(frozen=True)
class InflatedThompson(Policy):
    """Thompson sampling whose draws spread like the light-tailed bonus (Zhu & Simchi-Levi 2025):

    pull the arm with the highest draw of N(mean, kappa^2 (t / K) / n^2).

    kappa: sigma_0 of the authors. t: the round, from 1. n: the pulls of the arm. K: the number of arms. An
    arm that was never pulled comes first. No horizon is needed.

    >>> policy = InflatedThompson(kappa=0.5)
    >>> round(inflated_sd(4.0, 100.0, *policy.params(horizon=math.nan, arms=2)), 4)
    0.8839
    """

    needs_horizon = False
    notes = 1
    scaled = ("kappa",)
    amendable = True
    arms_may_change = True
    kappa: float

    def __post_init__(self) -> None:
        accept(self, kappa=positive)

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.kappa / math.sqrt(arms),)

    @staticmethod
    def choose(rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: Params) -> int:
        """An open pull counts in n and not in the mean, so that a batch spreads over the arms."""
        for k in range(len(tried)):
            note[k, 0] = math.inf
            if tried[k] > 0.0:
                spread = inflated_sd(tried[k], t, *params)
                note[k, 0] = mean_heard(k, heard, total) + spread * standard_normal(rng)
        return highest(rng, note)

    def __str__(self) -> str:
        return f"InflatedTS({self.kappa:g})"
