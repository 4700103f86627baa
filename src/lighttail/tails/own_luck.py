"""Whether a policy draws random numbers of its own, whose luck no tilt of the rewards changes."""

from __future__ import annotations

import random
from types import FunctionType
from typing import Any

from lighttail.online.standing import Standing
from lighttail.policies import Policy
from lighttail.random.streams import standard_normal, uniform
from lighttail.rules import highest

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
    if any(names_draws(formula, set()) for formula in (policy.rule().choose, policy.rule().learn)):
        return True  # perhaps only in rounds that no trial reaches
    standing = Standing(policy, horizon, problem.arms)
    rng, luck = Counted(), random.Random(1)
    for t in range(1, min(horizon, ROUNDS + problem.arms) + 1):
        arm = standing.choose(rng, float(t))
        if t <= problem.arms:
            rng.drawn = 0
        if rng.drawn:
            return True
        standing.learn(arm, _reward(problem, arm, luck), standing.memo)
    return False


def names_draws(formula: Any, seen: set[Any]) -> bool:
    """Whether a function, or one that it calls, names a draw; those of `highest` only break ties."""
    from lighttail.kernels.build import names_used

    if formula in seen or formula is highest:
        return False
    seen.add(formula)
    used = [value for value in names_used(formula).values() if isinstance(value, FunctionType)]
    if uniform in used or standard_normal in used:
        return True
    return any(names_draws(part, seen) for part in used if part.__module__ != highest.__module__)


def _reward(problem: Any, arm: int, luck: random.Random) -> float:
    """About the arm's mean, and within the range that the noise states."""
    mean, span = problem.means[arm], problem.noise.span(problem.means)
    if span is None:
        return float(mean + (problem.noise.sd(problem.means) or 1.0) * luck.gauss(0.0, 1.0))
    low, high = span
    width = max(min(mean - low, high - mean), 0.01 * (high - low))
    value = mean + width * luck.uniform(-1.0, 1.0)
    return float(2.0 * low - value if value < low else 2.0 * high - value if value > high else value)
