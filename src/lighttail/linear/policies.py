"""The policies for linear bandits. A policy keeps V = ridge * I + sum a a' and theta-hat = V^-1 sum a r."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from lighttail.checks import accept, positive, refuse
from lighttail.linear.bonuses import LinearBonus
from lighttail.policies import Policy
from lighttail.records import Floats
from lighttail.rules import Rule

TIE = 1e-9  # indices are tied if they differ by less than this share of their terms, which exceeds rounding


class LinearPolicy(Policy):
    """The members that every linear policy has. The second argument of its methods is the dimension."""

    needs_horizon = False
    draws: ClassVar[bool] = False  # whether the best action for a draw of theta is taken
    ridge: float
    linear = True

    @abstractmethod
    def params(self, horizon: float, dim: int) -> tuple[float, ...]:
        """The ridge, then the floats that the formulas receive. `horizon` is nan if it is not known."""

    def rule(self) -> Rule:
        """Raise BadInput, because the actions are vectors and not arms."""
        raise refuse("policy", self, "a policy of arms such as UCB(AnyTime(kappa=0.5)), not of vectors")


@dataclass(frozen=True)
class LinearUCB(LinearPolicy):
    """Take the action with the highest index, a' theta-hat + radius(a' V^-1 a) (Alg. UCB-L of the paper).

    bonus: a linear bonus. ridge: V before the first round is ridge * I; ridge = 1 gives the paper's V0 = I.
    Indices that differ only by rounding are tied. Ties are broken at random.

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
        """Whether the bonus is light-tailed and the ridge is 1: the theorem assumes V0 = I."""
        return self.bonus.light_tailed and self.ridge == 1.0

    def for_noise(self, noise: Any) -> Self:
        return replace(self, bonus=self.bonus.for_noise(noise))

    def params(self, horizon: float, dim: int) -> tuple[float, ...]:
        return self.ridge, *(float(value) for value in self.bonus.params(horizon, dim))

    def check(self, horizon: float, dim: int) -> None:
        self.bonus.check(horizon, dim, self.ridge)

    def __str__(self) -> str:
        return f"LinearUCB + {self.bonus}{_ridge(self.ridge)}"


@dataclass(frozen=True)
class LinearThompson(LinearPolicy):
    """Take the action that is best for a draw of theta from N(theta-hat, scale^2 V^-1).

    If scale is the sigma of the noise, this law is the posterior under the prior N(0, sigma^2 / ridge * I).

    scale: the assumed standard deviation of the noise, or a multiple of it. ridge: V before the first round
    is ridge * I. No horizon is needed.

    >>> LinearThompson(scale=0.5).params(horizon=100, dim=4)
    (1.0, 0.5)
    """

    draws = True
    scaled = ("scale",)
    scale: float
    ridge: float = 1.0

    def __post_init__(self) -> None:
        accept(self, scale=positive, ridge=positive)

    def params(self, horizon: float, dim: int) -> tuple[float, ...]:
        return self.ridge, self.scale

    def __str__(self) -> str:
        return f"LinearTS({self.scale:g}){_ridge(self.ridge)}"


def _ridge(ridge: float) -> str:
    return "" if ridge == 1.0 else f", ridge {ridge:g}"


def solved(v: Floats, sums: Floats, ridge: float) -> Floats:
    """V^-1 sums."""
    root = root_of(v, ridge)
    with np.errstate(all="ignore"):  # the callers check whether the result is finite
        return np.linalg.solve(root, np.linalg.solve(root.T, sums))


def root_of(v: Floats, ridge: float) -> Floats:
    """R, an upper triangular matrix with a positive diagonal and R' R = V, for a V of any condition.

    No eigenvalue of the exact V is below the ridge. If rounding has made V indefinite, its eigenvalues are
    raised to the ridge.
    """
    try:
        return np.linalg.cholesky(v).T  # type: ignore[return-value]
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(v)
        root = np.linalg.qr(np.sqrt(np.maximum(values, ridge))[:, None] * vectors.T, mode="r")
        signs = np.where(np.diag(root) < 0.0, -1.0, 1.0)
        lost = np.diag(np.where(np.diag(root) == 0.0, math.sqrt(ridge), 0.0))  # no pivot is below the ridge
        return root * signs[:, None] + lost
