"""Thompson sampling: pull the arm whose draw from its posterior is highest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from lighttail.policies.policy import Policy
from lighttail.streams import standard_normal
from lighttail.validation import accept, number, positive, refuse


def posterior_mean(n: float, total: float, kappa: float, weight: float, prior_mean: float) -> float:
    """The prior counts as `weight` = (kappa / prior_sd)^2 observations of `prior_mean`."""
    return (weight * prior_mean + total) / (weight + n)


def posterior_sd(n: float, kappa: float, weight: float, prior_mean: float) -> float:
    return kappa / math.sqrt(weight + n)


@dataclass(frozen=True)
class ThompsonSampling(Policy):
    """Pull the arm whose draw from its posterior is highest; normal prior, normal likelihood.

    The mean of an arm is N(prior_mean, prior_sd^2) beforehand, a reward N(mean, kappa^2). Draws
    are continuous, so there are no ties.

    kappa: the assumed noise. No horizon is needed.

    >>> policy = ThompsonSampling(kappa=0.8)
    >>> params = policy.params(horizon=math.nan, arms=2)
    >>> round(policy.posterior_mean(4.0, 2.0, *params), 4), round(policy.posterior_sd(4.0, *params), 4)
    (0.431, 0.3714)
    """

    needs_horizon: ClassVar[bool] = False
    plays_by: ClassVar[str] = "posterior"
    draws_for_itself: ClassVar[bool | None] = True
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
            raise refuse(
                "kappa / prior_sd", self.kappa / self.prior_sd, "a ratio whose square is a float above 0"
            )

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return self.kappa, (self.kappa / self.prior_sd) ** 2, self.prior_mean

    posterior_mean = staticmethod(posterior_mean)
    posterior_sd = staticmethod(posterior_sd)

    @staticmethod
    def choose(
        rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: tuple[float, ...]
    ) -> int:
        """Open pulls narrow the posterior, so that a batch spreads over the arms."""
        best, arm = -math.inf, 0
        for k in range(len(tried)):
            spread = posterior_sd(tried[k], *params)
            draw = posterior_mean(heard[k], total[k], *params) + spread * standard_normal(rng)
            if draw > best:
                best, arm = draw, k
        return arm

    def __str__(self) -> str:
        prior = (self.prior_mean, self.prior_sd)
        return f"TS({self.kappa:g})" if prior == (0.0, 1.0) else f"TS({self.kappa:g}, prior {prior})"
