"""Classes as a user writes them in a file of their own; tests name this file in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import lighttail as lt

LEVEL = 1.0


@dataclass(frozen=True)
class RootIndex(lt.IndexPolicy):
    """mean + c * sqrt(ln(t + 1) / n)."""

    c: float = 1.0
    name: str = "root"

    @property
    def needs_horizon(self) -> bool:
        return False

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (float(self.c),)

    @staticmethod
    def index(n: float, mean: float, clock: float, c: float) -> float:
        return mean + LEVEL * c * math.sqrt(math.log(clock + 1.0) / n)


@dataclass(frozen=True)
class OneOverN(lt.Bonus):
    """kappa * sqrt(T) / n."""

    kappa: float

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.kappa * math.sqrt(horizon),)

    @staticmethod
    def radius(n: float, clock: float, reach: float) -> float:
        return reach / n


@dataclass(frozen=True)
class Around(lt.IndexPolicy):
    """A policy around another bonus."""

    inner: lt.Bonus

    @property
    def needs_horizon(self) -> bool:
        return True

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return self.inner.params(horizon, arms)

    @staticmethod
    def index(n: float, mean: float, clock: float, reach: float) -> float:
        return mean + reach / n


@dataclass(frozen=True)
class Skewed(lt.Noise):
    """Exponential noise, shifted to a mean of 0."""

    scale: float = 1.0

    def world(self, means: tuple[float, ...]) -> tuple[Any, ...]:
        return np.array(means), float(self.scale)

    @staticmethod
    def shock(rng: Any, means: Any, scale: float) -> float:
        return -math.log(1.0 - lt.uniform(rng)) - 1.0

    @staticmethod
    def reward(shock: float, arm: int, means: Any, scale: float) -> float:
        return means[arm] + scale * shock


class NotOne:
    """Neither a policy nor a bonus nor a noise."""


class Plain(RootIndex):
    """Not a dataclass of its own: two of them are never equal."""

    def __init__(self) -> None:
        object.__setattr__(self, "c", object())
