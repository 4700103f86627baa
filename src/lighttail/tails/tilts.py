"""Exponential tilts of a noise: the laws under which a rare path is a common one.

A reward tilted by `lam` has its density multiplied by exp(lam * reward - psi). The noises here stay
in their own family: only the mean moves. docs/rare-events.md has the mathematics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from lighttail.problems import Bernoulli, Gaussian, Noise
from lighttail.statistics import Floats

TINY, ALMOST = 1e-300, 1.0 - 1e-16


class Family(Protocol):
    """psi(mean, lam) = ln E exp(lam * reward), the mean of the tilted law, and the tilt to a mean.

    ends: means lie strictly between these.
    """

    @property
    def ends(self) -> tuple[float, float]: ...

    def psi(self, mean: Any, lam: Any) -> Floats: ...

    def mean(self, mean: Any, lam: Any) -> Floats: ...

    def lam(self, mean: Any, moved: Any) -> Floats: ...


@dataclass(frozen=True)
class GaussianTilt:
    """psi = lam mean + lam^2 sigma^2 / 2; the tilted mean is mean + lam sigma^2."""

    sigma: float
    ends: tuple[float, float] = (-math.inf, math.inf)

    def psi(self, mean: Any, lam: Any) -> Floats:
        return lam * mean + 0.5 * (lam * self.sigma) ** 2  # type: ignore[no-any-return]

    def mean(self, mean: Any, lam: Any) -> Floats:
        return mean + lam * self.sigma**2  # type: ignore[no-any-return]

    def lam(self, mean: Any, moved: Any) -> Floats:
        return (moved - mean) / self.sigma**2  # type: ignore[no-any-return]


@dataclass(frozen=True)
class BernoulliTilt:
    """psi = ln(1 - mean + mean exp(lam)); the odds of the tilted mean are exp(lam) times the odds.

    A mean of 0 or 1 leaves nothing to tilt.
    """

    ends: tuple[float, float] = (0.0, 1.0)

    def psi(self, mean: Any, lam: Any) -> Floats:
        inner = np.clip(mean, TINY, ALMOST)
        value = np.logaddexp(np.log1p(-inner), np.log(inner) + lam)
        return np.where(mean == 0.0, 0.0, np.where(mean == 1.0, lam, value))

    def mean(self, mean: Any, lam: Any) -> Floats:
        inner = np.clip(mean, TINY, ALMOST)
        value = np.exp(np.log(inner) + lam - self.psi(inner, lam))
        sure = (mean == 0.0) | (mean == 1.0)
        return np.where(sure, mean, value)  # type: ignore[no-any-return]

    def lam(self, mean: Any, moved: Any) -> Floats:
        inner, moved = np.clip(mean, TINY, ALMOST), np.clip(moved, 1e-9, 1.0 - 1e-9)
        value = np.log(moved / (1.0 - moved)) - np.log(inner / (1.0 - inner))
        sure = (mean == 0.0) | (mean == 1.0)
        return np.where(sure, 0.0, value)


def family_of(noise: Noise) -> Family | None:
    """The tilts of a noise, or None where there are none."""
    if isinstance(noise, Gaussian) and noise.sigma > 0.0:
        return GaussianTilt(noise.sigma)
    if isinstance(noise, Bernoulli):
        return BernoulliTilt()
    return None


def divergence(family: Family, mean: Any, moved: Any) -> Floats:
    """KL(law with mean `moved`, law with mean `mean`) within the family; infinite outside of it."""
    lam = family.lam(mean, moved)
    value = np.maximum(0.0, lam * family.mean(mean, lam) - family.psi(mean, lam))
    low, high = family.ends
    possible = (moved > low) & (moved < high) & (mean > low) & (mean < high)
    return np.where(possible | (moved == mean), value, math.inf)
