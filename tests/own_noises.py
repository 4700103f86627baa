"""Noises of a user's own, which state some facts or none."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import lighttail as lt
from lighttail.noises.tilts import BernoulliTilt, Tilts
from lighttail.random.streams import standard_normal, uniform


@dataclass(frozen=True)
class Silent(lt.Noise):
    """Normal rewards, of which nothing is stated."""

    sigma: float = 1.0

    @staticmethod
    def shock(rng: Any, means: Any, sigma: float) -> float:
        return standard_normal(rng)

    @staticmethod
    def reward(shock: float, arm: int, means: Any, sigma: float) -> float:
        return means[arm] + sigma * shock

    def world(self, means: tuple[float, ...]) -> tuple[Any, ...]:
        return np.array(means), self.sigma


@dataclass(frozen=True)
class Outspoken(Silent):
    """The same rewards, of which everything is stated that is for one's own."""

    moves = True

    @property
    def sub_gaussian(self) -> float:  # type: ignore[override]
        return self.sigma

    @property
    def normal(self) -> float:  # type: ignore[override]
        return self.sigma

    def single(self, means: tuple[float, ...]) -> float:
        return max(map(abs, means))

    def tilt(self) -> Tilts | None:
        return lt.Gaussian(self.sigma).tilt()


class ExponentialTilt(Tilts):
    """psi = -ln(1 - lam mean); the tilted law is exponential with the mean mean / (1 - lam mean)."""

    def psi(self, mean: Any, lam: Any) -> Any:
        left = 1.0 - np.asarray(lam) * mean
        return np.where(left > 0.0, -np.log(np.maximum(left, 1e-300)), math.inf)

    def mean(self, mean: Any, lam: Any) -> Any:
        return mean / np.maximum(1.0 - np.asarray(lam) * mean, 1e-300)

    def lam(self, mean: Any, moved: Any) -> Any:
        return 1.0 / np.asarray(mean) - 1.0 / np.clip(moved, 1e-6 * mean, 1e6 * mean)

    def at_most(self, n: Any, mean: Any) -> Any:
        value = np.asarray(mean) + 0.0 * np.asarray(n)
        return np.where(value > 0.0, value, -math.inf)

    def at_least(self, n: Any, mean: Any) -> Any:
        return np.maximum(np.asarray(mean) + 0.0 * np.asarray(n), 0.0)


@dataclass(frozen=True)
class Exponential(lt.Noise):
    """Waiting times: exponential rewards."""

    mean_range = (1e-6, 1e6)
    moves = True

    @staticmethod
    def shock(rng: Any, means: Any) -> float:
        return -math.log(1.0 - uniform(rng))

    @staticmethod
    def reward(shock: float, arm: int, means: Any) -> float:
        return shock * means[arm]

    def world(self, means: tuple[float, ...]) -> tuple[Any, ...]:
        return (np.array(means),)

    def tilt(self) -> Tilts:
        return ExponentialTilt()


@dataclass(frozen=True)
class Wrong(Exponential):
    """The tilts of another law."""

    def tilt(self) -> Tilts:
        return BernoulliTilt()


@dataclass(frozen=True)
class Coins(lt.Noise):
    """Rewards of 0 and 1, as of `Bernoulli`, which says so."""

    outcomes = (0.0, 1.0)
    mean_range = (0.0, 1.0)

    @staticmethod
    def shock(rng: Any, means: Any) -> float:
        return uniform(rng)

    @staticmethod
    def reward(shock: float, arm: int, means: Any) -> float:
        return 1.0 if shock < means[arm] else 0.0

    def world(self, means: tuple[float, ...]) -> tuple[Any, ...]:
        return (np.array(means),)

    def span(self, means: tuple[float, ...]) -> tuple[float, float]:
        return 0.0, 1.0
