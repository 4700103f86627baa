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
NEVER = 40.0  # a coin with log odds of -40 is as good as one that never pays
SMALLEST = 1e-100  # sigma, so that its square and those of sums are floats
LOST = 1e12  # means, in units of the noise, beyond which rounding hides the noise
SLACK = 1e-9  # by so much a sum of coins may miss a whole number through rounding


class Family(Protocol):
    """psi(mean, lam) = ln E exp(lam * reward), the mean of the tilted law, and the tilt to a mean.

    at_most(n, mean), at_least(n, mean): the highest (lowest) mean that n rewards can have if theirs is
    at most (at least) `mean`; infinite where there is none. unit: the unit of rewards, in which tilts are
    neither very large nor very small.
    """

    @property
    def unit(self) -> float: ...

    def psi(self, mean: Any, lam: Any) -> Floats: ...

    def mean(self, mean: Any, lam: Any) -> Floats: ...

    def lam(self, mean: Any, moved: Any) -> Floats: ...

    def at_most(self, n: Any, mean: Any) -> Floats: ...

    def at_least(self, n: Any, mean: Any) -> Floats: ...


@dataclass(frozen=True)
class GaussianTilt:
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

    def at_most(self, n: Any, mean: Any) -> Floats:
        return np.asarray(mean) + 0.0 * np.asarray(n)

    at_least = at_most


@dataclass(frozen=True)
class BernoulliTilt:
    """psi = ln(1 - mean + mean exp(lam)); the odds of the tilted mean are exp(lam) times the odds.

    A mean of 0 or 1 leaves nothing to tilt.
    """

    unit = 1.0

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


def family_of(noise: Noise) -> Family | None:
    """The tilts of a noise, or None where there are none."""
    if isinstance(noise, Gaussian) and noise.sigma > 0.0:
        return GaussianTilt(noise.sigma)
    if isinstance(noise, Bernoulli):
        return BernoulliTilt()
    return None


def why_not_tilted(noise: Noise, means: tuple[float, ...]) -> str | None:
    """Why rewards of this noise are not tilted, if they are not: what is needed, for a message."""
    if family_of(noise) is None:
        return "Gaussian or Bernoulli"
    if isinstance(noise, Gaussian):
        if not SMALLEST <= noise.sigma <= 1.0 / SMALLEST:
            return f"of a sigma between {SMALLEST:g} and {1.0 / SMALLEST:g}"
        if max(map(abs, means)) > LOST * noise.sigma:
            return f"of a sigma that is at least {1.0 / LOST:g} of every mean"
    return None


def rate(family: Family, mean: Any, lam: Any, later: Any, n: Any, bound: Any) -> Floats:
    """The least log-likelihood ratio of n rewards tilted by `lam`, against all tilted by `later`, less
    what `later` itself adds, on the event that ends at the mean `bound`:

        (lam - later) n bound - n psi(lam).
    """
    return (lam - later) * n * bound - n * family.psi(mean, lam)  # type: ignore[no-any-return]
