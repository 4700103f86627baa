"""Exponential tilts: changed laws of the rewards under which a rare path becomes common.

Tilting a reward by `lam` multiplies its density by exp(lam * reward - psi). A noise states its tilts with
`Noise.tilt` (docs/own-noises.md) if the tilted rewards are rewards of the same noise around another mean.
docs/rare-events.md explains the mathematics.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttail.records import Floats

TINY, ALMOST = 1e-300, 1.0 - 1e-16  # probabilities are cut to this range, in which log odds are finite
NEVER = 40.0  # log odds: an event with log odds of -40 practically never happens
SLACK = 1e-9  # rewards: rounding may move a sum of rewards of 0 and 1 off a whole number by this much


class Tilts(ABC):
    """The tilts of a reward: three functions, which take arrays.

    psi(mean, lam): ln E exp(lam * reward); infinite if no such law exists.
    mean(mean, lam): the mean of the law tilted by lam.
    lam(mean, moved): the tilt that moves the mean to `moved`. If no tilt does, it is a finite tilt in the
        direction of `moved`.
    """

    @property
    def unit(self) -> float:
        """A unit of reward in which tilts are neither very large nor very small."""
        return 1.0

    @abstractmethod
    def psi(self, mean: Any, lam: Any) -> Floats: ...

    @abstractmethod
    def mean(self, mean: Any, lam: Any) -> Floats: ...

    @abstractmethod
    def lam(self, mean: Any, moved: Any) -> Floats: ...

    def at_most(self, n: Any, mean: Any) -> Floats:
        """The highest possible average of n rewards that is at most `mean`; -inf if there is none."""
        return np.asarray(mean) + 0.0 * np.asarray(n)

    def at_least(self, n: Any, mean: Any) -> Floats:
        """The lowest possible average of n rewards that is at least `mean`; inf if there is none."""
        return np.asarray(mean) + 0.0 * np.asarray(n)


@dataclass(frozen=True)
class GaussianTilt(Tilts):
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
class BernoulliTilt(Tilts):
    """psi = ln(1 - mean + mean exp(lam)); the odds of the tilted mean are exp(lam) times the odds of the
    mean.

    A mean of 0 or 1 cannot be tilted: the tilted mean is the same.
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
