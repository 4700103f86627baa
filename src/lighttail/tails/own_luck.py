"""Whether a policy draws random numbers of its own, whose luck no tilt of the rewards changes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from lighttail.policies import Policy

ROUNDS = 2000  # of a trial


class Counted:
    """Random numbers that are counted."""

    def __init__(self) -> None:
        self._source = random.Random(0)
        self.drawn = 0

    def random(self) -> float:
        self.drawn += 1
        return self._source.random()

    def standard_normal(self) -> float:
        self.drawn += 1
        return self._source.gauss(0.0, 1.0)


def draws_for_itself(policy: Policy, problem: Any, horizon: int) -> bool:
    """What the class states; otherwise, whether a trial drew a number after the first pull of every arm.

    The trial's rewards are continuous, so that there are no ties to break.
    """
    if policy.draws_for_itself is not None:
        return bool(policy.draws_for_itself)
    rule, params = policy.rule(), policy.params(horizon, problem.arms)
    rng, luck = Counted(), random.Random(1)
    view: Any = memoryview  # item access gives plain floats
    counts, notes = np.zeros((2, problem.arms)), np.zeros((problem.arms, max(1, rule.notes)))
    tried, total, note = view(counts[0]), view(counts[1]), view(notes)
    for t in range(1, min(horizon, ROUNDS + problem.arms) + 1):
        arm = rule.choose(rng, float(t), tried, tried, total, note, params)
        if t <= problem.arms:
            rng.drawn = 0
        if rng.drawn:
            return True
        reward = _reward(problem, arm, luck)
        tried[arm] += 1.0
        total[arm] += reward
        rule.learn(arm, reward, tried, tried, total, note, params)
    return False


def _reward(problem: Any, arm: int, luck: random.Random) -> float:
    """About the arm's mean, and within the range that the noise states."""
    mean, span = problem.means[arm], problem.noise.span(problem.means)
    if span is None:
        return float(mean + (problem.noise.sd(problem.means) or 1.0) * luck.gauss(0.0, 1.0))
    low, high = span
    width = max(min(mean - low, high - mean), 0.01 * (high - low))
    value = mean + width * luck.uniform(-1.0, 1.0)
    return float(2.0 * low - value if value < low else 2.0 * high - value if value > high else value)
