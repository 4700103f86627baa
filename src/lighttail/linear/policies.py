"""The policies of linear bandits. They keep V = ridge * I + sum a a' and theta-hat = V^-1 sum a r."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields, replace
from typing import ClassVar

from lighttail.checks import accept, positive, refuse
from lighttail.linear.bonuses import LinearBonus
from lighttail.policies import Policy
from lighttail.rules import Rule

TIE = 1e-9  # indices that differ by less than this share of their terms are tied: rounding is far below


class LinearPolicy(Policy):
    """What every policy of linear bandits has; the second argument of its methods is the dimension."""

    needs_horizon: ClassVar[bool] = False
    draws: ClassVar[bool] = False  # whether it takes the best action of a draw, and not the highest index
    ridge: float
    linear: ClassVar[bool] = True  # it is handed vectors, as a LinearBandit offers them

    @abstractmethod
    def params(self, horizon: float, dim: int) -> tuple[float, ...]:
        """The ridge, then the floats its formulas take; `horizon` is nan where none is known."""

    def rule(self) -> Rule:
        """There is none: its actions are vectors and no arms."""
        raise refuse("policy", self, "a policy of arms such as UCB(AnyTime(kappa=0.5)), not of vectors")


@dataclass(frozen=True)
class LinearUCB(LinearPolicy):
    """Take the action with the highest index, a' theta-hat + radius(a' V^-1 a) (Alg. UCB-L of the paper).

    bonus: a linear bonus. ridge: V before the first round is ridge * I; the paper's V0 = I is ridge = 1.
    Indices that are equal but for rounding are tied; ties are broken at random.

    >>> from lighttail import LinearLightTailed
    >>> str(LinearUCB(LinearLightTailed(kappa=0.2)))
    'LinearUCB + LightTailed(0.2)'
    """

    bonus: LinearBonus
    ridge: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.bonus, LinearBonus):
            raise refuse("bonus", self.bonus, "a linear bonus such as LinearLightTailed(kappa=0.2)")
        accept(self, ridge=positive)

    @property
    def needs_horizon(self) -> bool:  # type: ignore[override]
        return self.bonus.needs_horizon

    @property
    def light_tailed(self) -> bool:  # type: ignore[override]
        """The theorem is for V0 = I."""
        return self.bonus.light_tailed and self.ridge == 1.0

    def for_noise(self, sigma: float) -> LinearUCB:
        noise = [f.name for f in fields(self.bonus) if f.name in ("kappa", "beta", "sigma")]  # type: ignore[arg-type]
        scaled = {name: getattr(self.bonus, name) * sigma for name in noise}
        return replace(self, bonus=replace(self.bonus, **scaled))  # type: ignore[type-var]

    def params(self, horizon: float, dim: int) -> tuple[float, ...]:
        return self.ridge, *(float(value) for value in self.bonus.params(horizon, dim))

    def check(self, horizon: float, dim: int) -> None:
        self.bonus.check(horizon, dim, self.ridge)

    def __str__(self) -> str:
        return f"LinearUCB + {self.bonus}{_ridge(self.ridge)}"


@dataclass(frozen=True)
class LinearThompson(LinearPolicy):
    """Take the best action of a draw from N(theta-hat, scale^2 V^-1).

    With scale the noise's sigma this is the posterior under the prior N(0, sigma^2 / ridge * I).

    scale: the noise that is assumed, or a multiple of it. ridge: V before the first round is ridge * I.
    No horizon is needed.

    >>> LinearThompson(scale=0.5).params(horizon=100, dim=4)
    (1.0, 0.5)
    """

    draws: ClassVar[bool] = True
    scale: float
    ridge: float = 1.0

    def __post_init__(self) -> None:
        accept(self, scale=positive, ridge=positive)

    def for_noise(self, sigma: float) -> LinearThompson:
        return replace(self, scale=self.scale * sigma)

    def params(self, horizon: float, dim: int) -> tuple[float, ...]:
        return self.ridge, self.scale

    def __str__(self) -> str:
        return f"LinearTS({self.scale:g}){_ridge(self.ridge)}"


def _ridge(ridge: float) -> str:
    return "" if ridge == 1.0 else f", ridge {ridge:g}"
