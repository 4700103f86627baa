"""The policies: frozen dataclasses of hyper-parameters, and the scalar formulas they need.

How a policy plays is a rule: `lighttail.online.rules` has each rule in plain Python,
`lighttail.kernels` the same rules compiled.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Literal

from lighttail.bonuses import Bonus
from lighttail.validation import accept, number, one_of, positive, refuse


class Policy(ABC):
    """What every policy has."""

    @property
    @abstractmethod
    def needs_horizon(self) -> bool:
        """Whether the policy must know how many pulls there will be."""

    @property
    def light_tailed(self) -> bool:
        """Whether a theorem of the paper makes the chance of a large regret exponentially small."""
        return False

    @abstractmethod
    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        """The floats its formulas take; `horizon` is nan where none is known."""

    def check(self, horizon: float, arms: int) -> None:
        """Refuse a policy whose formulas fail on so many pulls and arms."""
        return


@dataclass(frozen=True)
class _BonusPolicy(Policy):
    """A policy that is a rule applied to a bonus."""

    bonus: Bonus

    def __post_init__(self) -> None:
        if not isinstance(self.bonus, Bonus):
            raise refuse("bonus", self.bonus, "a bonus such as LightTailed(kappa=0.2)")

    @property
    def needs_horizon(self) -> bool:
        return self.bonus.needs_horizon

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return tuple(float(value) for value in self.bonus.params(horizon, arms))

    def check(self, horizon: float, arms: int) -> None:
        self.bonus.check(horizon, arms)


def _check_not_negative(bonus: Bonus, horizon: float, arms: int) -> None:
    for n, t, radius in bonus.sample(horizon, arms):
        if radius < 0.0:
            raise refuse(f"the radius of {bonus!r} at n={n:g}, t={t:g}", radius, "0 or more with elimination")


@dataclass(frozen=True)
class UCB(_BonusPolicy):
    """Pull the arm with the highest index, mean + radius (Alg. 2 of the paper).

    An arm never pulled has an infinite index. Ties are broken at random.

    >>> from lighttail import LightTailed
    >>> str(UCB(LightTailed(kappa=0.2)))
    'UCB + LightTailed(0.2)'
    """

    @property
    def light_tailed(self) -> bool:
        return self.bonus.light_tailed

    def __str__(self) -> str:
        return f"UCB + {self.bonus}"


@dataclass(frozen=True)
class SuccessiveElimination(_BonusPolicy):
    """Pull every active arm once a phase, then drop those that another one dominates (Alg. 1).

    Arm k goes once mean_j - radius_j > mean_k + radius_k for some arm j. A phase that the horizon
    cuts short ends there.

    >>> from lighttail import LightTailed
    >>> str(SuccessiveElimination(LightTailed(kappa=0.1)))
    'SE + LightTailed(0.1)'
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.bonus.needs_horizon:
            warnings.warn(
                f"SuccessiveElimination with {type(self.bonus).__name__} is not light-tailed: an arm "
                "dropped while t is small never comes back (the paper, after Thm any-time); use UCB",
                stacklevel=3,
            )

    def check(self, horizon: float, arms: int) -> None:
        super().check(horizon, arms)
        _check_not_negative(self.bonus, horizon, arms)

    @property
    def light_tailed(self) -> bool:
        return self.bonus.light_tailed and self.bonus.needs_horizon

    def __str__(self) -> str:
        return f"SE + {self.bonus}"


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

    @property
    def needs_horizon(self) -> bool:
        return False

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return self.kappa, (self.kappa / self.prior_sd) ** 2, self.prior_mean

    @staticmethod
    def posterior_mean(n: float, total: float, kappa: float, weight: float, prior_mean: float) -> float:
        """The prior counts as `weight` = (kappa / prior_sd)^2 observations of `prior_mean`."""
        return (weight * prior_mean + total) / (weight + n)

    @staticmethod
    def posterior_sd(n: float, kappa: float, weight: float, prior_mean: float) -> float:
        return kappa / math.sqrt(weight + n)

    def __str__(self) -> str:
        prior = (self.prior_mean, self.prior_sd)
        return f"TS({self.kappa:g})" if prior == (0.0, 1.0) else f"TS({self.kappa:g}, prior {prior})"


@dataclass(frozen=True)
class Exp3IX(Policy):
    """Exponential weights with implicit exploration (Lattimore & Szepesvari, Alg. 10).

    Arm k is drawn with probability p_k proportional to exp(eta * score_k); the score of the arm
    drawn then grows by (reward - shift) / (p_k + gamma).

    estimator: "loss" takes shift = upper, an upper bound C on the rewards that must be known
        (losses C - r, 0 or more); "reward" takes shift = 0, which the paper shows to fail.
    upper: that bound C; 1 unless given.
    eta, gamma: by Thm 12.1 eta = sqrt(2 ln(K + 1) / (T K)) and gamma = eta / 2, unless given.

    >>> eta, gamma, shift = Exp3IX("loss", upper=1.0).params(horizon=500, arms=2)
    >>> round(eta, 5), round(gamma, 5), shift
    (0.04687, 0.02344, 1.0)
    """

    estimator: Literal["loss", "reward"] = "loss"
    upper: float | None = None
    eta: float | None = None
    gamma: float | None = None

    def __post_init__(self) -> None:
        accept(self, estimator=lambda field, value: one_of(field, value, ("loss", "reward")))
        if self.estimator == "reward" and self.upper is not None:
            raise refuse("upper", self.upper, "left out with the 'reward' estimator, which has no bound")
        given = {"upper": number, "eta": positive, "gamma": positive}
        accept(self, **{name: check for name, check in given.items() if getattr(self, name) is not None})

    @property
    def needs_horizon(self) -> bool:
        return self.eta is None

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        eta = self.eta if self.eta is not None else math.sqrt(2 * math.log(arms + 1) / (horizon * arms))
        gamma = self.gamma if self.gamma is not None else eta / 2
        shift = 0.0 if self.estimator == "reward" else 1.0 if self.upper is None else self.upper
        return eta, gamma, shift

    @staticmethod
    def weight(score: float, best: float, eta: float, gamma: float, shift: float) -> float:
        """Unnormalised; measured from the best score so that it never overflows."""
        return math.exp(eta * (score - best))

    @staticmethod
    def gain(reward: float, probability: float, eta: float, gamma: float, shift: float) -> float:
        """What the arm drawn adds to its score."""
        return (reward - shift) / (probability + gamma)

    def __str__(self) -> str:
        given = {f.name: getattr(self, f.name) for f in fields(self)[1:]}
        extra = [f"{name} {value:g}" for name, value in given.items() if value is not None]
        return f"EXP3-IX({', '.join([self.estimator, *extra])})"
