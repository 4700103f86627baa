"""Policies of the tests' own, written as a user would by docs/own-policies.md: one of every size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import lighttail as lt


@dataclass(frozen=True)
class Greedy(lt.Policy):
    """Epsilon-greedy with a fixed epsilon: a random arm sometimes, else the one with the highest mean."""

    epsilon: float
    notes: ClassVar[int] = 1
    needs_horizon: ClassVar[bool] = False

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.epsilon,)

    @staticmethod
    def choose(
        rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: tuple[float, ...]
    ) -> int:
        (epsilon,) = params
        if lt.uniform(rng) < epsilon:
            return int(lt.uniform(rng) * len(tried))
        for k in range(len(tried)):
            note[k, 0] = total[k] / heard[k] if heard[k] > 0.0 else (0.0 if tried[k] > 0.0 else math.inf)
        return lt.highest(rng, note)


@dataclass(frozen=True)
class Commit(lt.Policy):
    """Explore, then commit: m pulls of every arm, then the best for ever, as far as its rewards are known."""

    m: int
    notes: ClassVar[int] = 1
    needs_horizon: ClassVar[bool] = False

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (float(self.m),)

    @staticmethod
    def choose(
        rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: tuple[float, ...]
    ) -> int:
        arm = 0
        for k in range(len(tried)):
            if tried[k] < tried[arm]:
                arm = k
        if tried[arm] < params[0]:
            return arm
        for k in range(len(tried)):
            if note[k, 0] == 1.0:
                return k
        for k in range(len(tried)):
            if total[k] * max(1.0, heard[arm]) > total[arm] * max(1.0, heard[k]):
                arm = k
        note[arm, 0] = 1.0
        return arm


@dataclass(frozen=True)
class Clipped(lt.IndexPolicy):
    """An index that does not change with time: mean + c / sqrt(n), at most 1."""

    c: float
    needs_horizon: ClassVar[bool] = False

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.c,)

    @staticmethod
    def index(n: float, mean: float, clock: float, c: float) -> float:
        return min(1.0, mean + c / math.sqrt(n))


def kl_of_coins(p: float, q: float) -> float:
    """The Kullback-Leibler divergence of a coin q from a coin p."""
    p, q = min(max(p, 1e-12), 1.0 - 1e-12), min(max(q, 1e-12), 1.0 - 1e-12)
    return p * math.log(p / q) + (1.0 - p) * math.log((1.0 - p) / (1.0 - q))


@dataclass(frozen=True)
class KullbackLeibler(lt.IndexPolicy):
    """KL-UCB: the largest q with n kl(mean, q) <= c ln T, by bisection."""

    c: float

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.c * math.log(horizon),)

    @staticmethod
    def index(n: float, mean: float, clock: float, limit: float) -> float:
        low, high = min(max(mean, 0.0), 1.0), 1.0
        for _ in range(30):
            middle = 0.5 * (low + high)
            if n * kl_of_coins(mean, middle) > limit:
                high = middle
            else:
                low = middle
        return low


@dataclass(frozen=True)
class Bounded(lt.Policy):
    """A rule without a note or a draw: the highest mean + c / sqrt(n), the first of several; never a tie."""

    c: float
    needs_horizon: ClassVar[bool] = False

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.c,)

    @staticmethod
    def choose(
        rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: tuple[float, ...]
    ) -> int:
        best, arm = -math.inf, 0
        for k in range(len(tried)):
            if heard[k] == 0.0:
                return k
            value = total[k] / heard[k] + params[0] / math.sqrt(heard[k])
            if value > best:
                best, arm = value, k
        return arm


@dataclass(frozen=True)
class Timed(lt.IndexPolicy):
    """An index that changes with time, with a clock of its own."""

    c: float
    needs_horizon: ClassVar[bool] = False

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.c,)

    @staticmethod
    def clock(t: float, c: float) -> float:
        return math.log(1.0 + t)

    @staticmethod
    def index(n: float, mean: float, clock: float, c: float) -> float:
        return mean + c * math.sqrt(clock / n)


@dataclass(frozen=True)
class Softmax(lt.Policy):
    """Draws of a normal law for every arm, and a memo: how surprised the rule was when it chose."""

    scale: float
    notes: ClassVar[int] = 2
    memo: ClassVar[int] = 1
    needs_horizon: ClassVar[bool] = False

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.scale,)

    @staticmethod
    def choose(
        rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: tuple[float, ...]
    ) -> int:
        best, arm = -math.inf, 0
        for k in range(len(tried)):
            draw = note[k, 0] + params[0] * lt.standard_normal(rng)
            if draw > best:
                best, arm = draw, k
        note[arm, 1] = best - note[arm, 0]
        return arm

    @staticmethod
    def learn(
        arm: int, reward: float, tried: Any, heard: Any, total: Any, note: Any, params: tuple[float, ...]
    ) -> None:
        note[arm, 0] += (reward - note[arm, 0]) / (1.0 + heard[arm]) + 0.01 * note[arm, 1]


@dataclass(frozen=True)
class Slow(lt.Bonus):
    """A bonus: c / (1 + n)."""

    c: float
    needs_horizon: ClassVar[bool] = False

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.c,)

    @staticmethod
    def radius(n: float, clock: float, c: float) -> float:
        return c / (1.0 + n)


OWN_POLICIES: list[lt.Policy] = [
    Greedy(0.1),
    Commit(5),
    Clipped(0.7),
    Timed(0.5),
    Softmax(0.3),
    lt.UCB(Slow(0.5)),
]
