"""Rewards without noise: every path is the same, unless the policy draws for itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from lighttail.online.standing import Standing
from lighttail.policies import Policy
from lighttail.problems import Noise
from lighttail.tails.task import Task

MOST = 1_000_000  # pulls times arms that are played in plain Python


class _Drawn(Exception):
    """A rule asked for a random number that may change its path."""


class _Draws:
    """In place of random numbers: the first of the arms that tie, and a mark that there was a tie."""

    def __init__(self) -> None:
        self.asked = False

    def random(self) -> float:
        self.asked = True
        return 0.0

    def standard_normal(self) -> float:
        raise _Drawn


def without_noise(noise: Noise, means: tuple[float, ...]) -> bool:
    """Whether the noise states that its rewards do not vary."""
    return type(noise).sd is not Noise.sd and noise.sd(means) == 0.0


def sure_chance(task: Task) -> float | None:
    """P(kind >= regret), 0 or 1, where rewards do not vary and the policy's own luck changes nothing.

    None where rewards vary, or where the policy draws numbers that may change the loss, or where the path is
    too long to be played here.
    """
    problem = task.problem
    if not without_noise(problem.noise, problem.means) or task.horizon * problem.arms > MOST:
        return None
    try:
        pulls, total = _only_path(task.policy, problem, task.horizon)
    except _Drawn:
        return None
    if task.whole:
        lost = max(problem.means) * task.horizon - float(total.sum())
    else:
        lost = float(np.dot(pulls, problem.gaps))
    return float(lost >= task.target)


def _only_path(policy: Policy, problem: Any, horizon: int) -> tuple[Any, Any]:
    """The pulls and sums of rewards of the path that all paths are."""
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

    Arms that were never pulled will all be pulled first; arms of the same mean with as many pulls are alike.
    """
    tied = np.flatnonzero(index == index.max())
    pulls = counts[tied]
    return not pulls.any() or len({(means[arm], n) for arm, n in zip(tied, pulls, strict=True)}) == 1
