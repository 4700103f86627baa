"""The luck that a path depends on: the luck of its rewards, and the luck of the policy's own random numbers.

If rewards have no noise, all paths are the same, unless the policy draws for itself. No tilt of the rewards
changes the luck of a policy's own draws.
"""

from __future__ import annotations

import random
from types import FunctionType
from typing import Any

import numpy as np

from lighttail.noises import Noise
from lighttail.online.standing import Standing
from lighttail.policies import Policy
from lighttail.random.streams import standard_normal, uniform
from lighttail.rules import highest
from lighttail.tails.task import Task

MOST = 1_000_000  # pulls times arms that are played in plain Python at most
ROUNDS = 2000  # rounds of a trial after the first pull of every arm


class _Drawn(Exception):
    """A rule asked for a random number that may change its path."""


class _Draws:
    """Takes the place of random numbers: the first arm of a tie is chosen, and the tie is noted."""

    def __init__(self) -> None:
        self.asked = False

    def random(self) -> float:
        self.asked = True
        return 0.0

    def standard_normal(self) -> float:
        raise _Drawn


def without_noise(noise: Noise, means: tuple[float, ...]) -> bool:
    """Whether the noise states that its rewards do not vary."""
    return noise.states_sd and noise.sd(means) == 0.0


def sure_chance(task: Task) -> float | None:
    """P(kind >= regret), 0 or 1, if rewards do not vary and the policy's own luck changes nothing.

    None if rewards vary, if the policy draws numbers that may change the loss, or if the path is too long to
    be played here.
    """
    problem = task.problem
    if not without_noise(problem.noise, problem.means) or task.horizon * problem.arms > MOST:
        return None
    try:
        pulls, total = _only_path(task.policy, problem, task.horizon)
    except _Drawn:
        return None
    if task.luck_counts:
        lost = max(problem.means) * task.horizon - float(total.sum())
    else:
        lost = float(np.dot(pulls, problem.gaps))
    return float(lost >= task.target)


def _only_path(policy: Policy, problem: Any, horizon: int) -> tuple[Any, Any]:
    """The pulls and the sums of rewards of the only possible path."""
    standing = Standing(policy, horizon, problem.arms)
    for t in range(1, horizon + 1):
        rng, pulls = _Draws(), np.array(standing.tried)
        arm = standing.choose(rng, float(t))
        if rng.asked:
            index = np.array(standing.note)[:, 0]
            if policy.plays_by not in ("index", "radius") or not _all_alike(index, pulls, problem.means):
                raise _Drawn
        standing.learn(arm, problem.means[arm], standing.memo)
    return np.array(standing.tried), np.array(standing.total)


def _all_alike(index: Any, counts: Any, means: tuple[float, ...]) -> bool:
    """Whether it does not matter which of the arms with the highest index is pulled.

    Arms that were never pulled will all be pulled first; arms with the same mean and pulls are alike.
    """
    tied = np.flatnonzero(index == index.max())
    pulls = counts[tied]
    return not pulls.any() or len({(means[arm], n) for arm, n in zip(tied, pulls, strict=True)}) == 1


class _Counted(random.Random):
    """A source of random numbers that counts its draws."""

    drawn = 0

    def random(self) -> float:
        self.drawn += 1
        return super().random()

    def standard_normal(self) -> float:
        self.drawn += 1  # every second number needs no further draw
        return self.gauss(0.0, 1.0)


def draws_for_itself(policy: Policy, problem: Any, horizon: int) -> bool:
    """Whether the policy draws random numbers after the first pull of every arm, other than to break ties.

    The class may state this; otherwise its formulas or a trial show it. The trial's rewards are continuous,
    so that there are no ties.
    """
    if policy.draws_for_itself is not None:
        return bool(policy.draws_for_itself)
    if any(names_draws(formula, set()) for formula in (policy.rule().choose, policy.rule().learn)):
        return True  # perhaps it draws only in rounds that no trial reaches
    standing = Standing(policy, horizon, problem.arms)
    rng, luck = _Counted(0), random.Random(1)
    for t in range(1, min(horizon, ROUNDS + problem.arms) + 1):
        arm = standing.choose(rng, float(t))
        if t <= problem.arms:
            rng.drawn = 0
        if rng.drawn:
            return True
        standing.learn(arm, _reward(problem, arm, luck), standing.memo)
    return False


def names_draws(formula: Any, seen: set[Any]) -> bool:
    """Whether a function, or a function that it calls, names a draw; draws of `highest` only break ties."""
    from lighttail.kernels.build import names_used

    if formula in seen or formula is highest:
        return False
    seen.add(formula)
    used = [value for value in names_used(formula).values() if isinstance(value, FunctionType)]
    if uniform in used or standard_normal in used:
        return True
    return any(names_draws(part, seen) for part in used if part.__module__ != highest.__module__)


def _reward(problem: Any, arm: int, luck: random.Random) -> float:
    """A continuous reward near the arm's mean, within the range that the noise states."""
    mean, span = problem.means[arm], problem.noise.span(problem.means)
    if span is None:
        return float(mean + (problem.noise.sd(problem.means) or 1.0) * luck.gauss(0.0, 1.0))
    low, high = span
    width = max(min(mean - low, high - mean), 0.01 * (high - low))
    value = mean + width * luck.uniform(-1.0, 1.0)
    return float(2.0 * low - value if value < low else 2.0 * high - value if value > high else value)
