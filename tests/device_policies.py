"""Policies as a user writes them: a bonus, an index, and a rule with notes, a memo and its own draws."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import lighttail as lt
from lighttail import uniform

FLOOR = 0.05
WOBBLE = 0.125


def shrink(scale: float, n: float) -> float:
    return scale / math.sqrt(n)


@dataclass(frozen=True)
class Own(lt.Bonus):
    """A bonus with a helper, a constant of its module and one of its own."""

    kappa: float

    @staticmethod
    def radius(n: float, t: float, kappa: float) -> float:
        return shrink(kappa * math.sqrt(math.log(1.0 + t)), n) + WOBBLE / (n + 3.0)

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.kappa,)


def widened(n: float, clock: float) -> float:
    return math.sqrt(math.log(1.0 + clock) / n)


@dataclass(frozen=True)
class Squeezed(lt.IndexPolicy):
    """An index that changes with time, by a helper and constants of a module."""

    kappa: float
    needs_horizon: ClassVar[bool] = False

    @staticmethod
    def index(n: float, mean: float, clock: float, kappa: float) -> float:
        return max(mean, FLOOR) + kappa * widened(n, clock) / math.pi

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.kappa,)


@dataclass(frozen=True)
class Plain(lt.IndexPolicy):
    """An index that does not change with time, without parameters."""

    needs_horizon: ClassVar[bool] = False

    @staticmethod
    def index(n: float, mean: float, clock: float) -> float:
        return mean + 0.7 / math.sqrt(n)

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return ()


@dataclass(frozen=True)
class Fading(lt.Policy):
    """With chance share / t a random arm, otherwise the highest fading mean; ties at random.

    note[k, 0] is the fading mean, note[k, 1] the memo: the chance with which the pull explored.
    """

    share: float
    fade: float
    needs_horizon: ClassVar[bool] = False
    notes: ClassVar[int] = 2
    memo: ClassVar[int] = 1

    @staticmethod
    def choose(
        rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: tuple[float, ...]
    ) -> int:
        share, _ = params
        chance = min(1.0, share / t)
        arm = lt.highest(rng, note)
        if lt.uniform(rng) < chance:
            arm = int(uniform(rng) * len(tried))
        note[arm, 1] = chance
        return arm

    @staticmethod
    def learn(
        arm: int, reward: float, tried: Any, heard: Any, total: Any, note: Any, params: tuple[float, ...]
    ) -> None:
        _, fade = params
        step = max(fade, 1.0 / heard[arm]) * (1.0 - 0.5 * note[arm, 1])
        note[arm, 0] += step * (reward - note[arm, 0])

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return self.share, self.fade


@dataclass(frozen=True)
class Lost(lt.Policy):
    """It ends with an arm that there is not."""

    needs_horizon: ClassVar[bool] = False

    @staticmethod
    def choose(
        rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: tuple[float, ...]
    ) -> int:
        return 1 if total[1] == int(total[1]) else len(tried)  # a trial's rewards are whole numbers

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return ()


OWN = [Squeezed(0.8), Plain(), Fading(2.0, 0.1)]
