"""Exponential tilts: the laws under which a rare path is a common one.

A reward tilted by `lam` has its density multiplied by exp(lam * reward - psi). A noise states its tilts with
`Noise.tilt` (docs/own-noises.md) where the tilted rewards are those of the same noise around another mean.
docs/rare-events.md has the mathematics.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
TINY, ALMOST = 1e-300, 1.0 - 1e-16
NEVER = 40.0  # a coin with log odds of -40 is as good as one that never pays
SLACK = 1e-9  # by so much a sum of coins may miss a whole number through rounding


class Family(ABC):
    """psi(mean, lam) = ln E exp(lam * reward), the mean of the tilted law, and the tilt to a mean.

    All take arrays. psi is infinite where there is no such law; lam takes means that no tilt leads to, and
    gives a finite tilt in their direction.
    """

    @property
    def unit(self) -> float:
        """The unit of rewards, in which tilts are neither very large nor very small."""
        return 1.0

    @abstractmethod
    def psi(self, mean: Any, lam: Any) -> Floats: ...

    @abstractmethod
    def mean(self, mean: Any, lam: Any) -> Floats: ...

    @abstractmethod
    def lam(self, mean: Any, moved: Any) -> Floats: ...

    def at_most(self, n: Any, mean: Any) -> Floats:
        """The highest mean that n rewards can have if theirs is at most `mean`; -inf where there is none."""
        return np.asarray(mean) + 0.0 * np.asarray(n)

    def at_least(self, n: Any, mean: Any) -> Floats:
        """The lowest mean that n rewards can have if theirs is at least `mean`; inf where there is none."""
        return np.asarray(mean) + 0.0 * np.asarray(n)


@dataclass(frozen=True)
class GaussianTilt(Family):
    """psi = lam mean + lam^2 sigma^2 / 2; the tilted mean is mean + lam sigma^2."""

    sigma: float

    @property
    def unit(self) -> float:
        return self.sigma

    def psi(self, mean: Any, lam: Any) -> Floats:
        return lam * mean + 0.5 * (lam * self.sigma) ** 2  # type: ignore[no-any-return]

    def mean(self, mean: Any, lam: Any) -> Floats:
        return mean + lam * self.sigma**2  # type: ignore[no-any-return]

    def lam(self, mean: Any, moved: Any) -> Floats:
        return (moved - mean) / self.sigma**2  # type: ignore[no-any-return]


@dataclass(frozen=True)
class BernoulliTilt(Family):
    """psi = ln(1 - mean + mean exp(lam)); the odds of the tilted mean are exp(lam) times the odds.

    A mean of 0 or 1 leaves nothing to tilt.
    """

    def psi(self, mean: Any, lam: Any) -> Floats:
        inner = np.clip(mean, TINY, ALMOST)
        value = np.logaddexp(np.log1p(-inner), np.log(inner) + lam)
        return np.where(mean == 0.0, 0.0, np.where(mean == 1.0, lam, value))

    def mean(self, mean: Any, lam: Any) -> Floats:
        inner = np.clip(mean, TINY, ALMOST)
        value = np.exp(np.minimum(0.0, np.log(inner) + lam - self.psi(inner, lam)))
        sure = (mean == 0.0) | (mean == 1.0)
        return np.where(sure, mean, value)  # type: ignore[no-any-return]

    def lam(self, mean: Any, moved: Any) -> Floats:
        odds, wanted = _log_odds(mean), _log_odds(moved)
        wanted = np.clip(wanted, np.minimum(odds, 0.0) - NEVER, np.maximum(odds, 0.0) + NEVER)
        sure = (mean == 0.0) | (mean == 1.0)
        return np.where(sure, 0.0, wanted - odds)

    def at_most(self, n: Any, mean: Any) -> Floats:
        value = np.floor(np.asarray(n * mean) + SLACK) / np.maximum(n, 1.0)
        return np.where(value < 0.0, -math.inf, np.minimum(value, 1.0))

    def at_least(self, n: Any, mean: Any) -> Floats:
        value = np.ceil(np.asarray(n * mean) - SLACK) / np.maximum(n, 1.0)
        return np.where(value > 1.0, math.inf, np.maximum(value, 0.0))


def _log_odds(mean: Any) -> Floats:
    inner = np.clip(mean, TINY, ALMOST)
    return np.log(inner) - np.log1p(-inner)  # type: ignore[no-any-return]
