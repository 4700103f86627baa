"""The oracle: the paths of `simulate` played by `Experiment`, in plain Python and pull by pull.

It takes its random numbers from the same generators as the kernels, in the same order: in each
round first the shock behind the reward, then whatever the policy draws.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import lighttail as lt
from lighttail.random.streams import block_generator
from lighttail.running.blocks import block_paths


class Played(NamedTuple):
    """reward[paths], pulls[paths, arms], and the arm of every pull, arms[paths, horizon]."""

    reward: np.ndarray
    pulls: np.ndarray
    arms: np.ndarray


Stream = Callable[[int], np.random.Generator]


def play(
    policy: lt.Policy, problem: lt.Bandit, horizon: int, paths: int, seed: int, own: Stream | None = None
) -> Played:
    """What `simulate` must return for the same arguments; `own` gives a path its own generator."""
    noise = problem.noise
    world = noise.world(problem.means)
    size = block_paths(horizon)
    reward = np.empty(paths)
    arms = np.empty((paths, horizon), dtype=np.int64)
    for path in range(paths):
        if own is not None:
            rng = own(path)
        elif path % size == 0:
            rng = block_generator(seed, path // size)
        experiment = lt.Experiment(policy, range(problem.arms), horizon=horizon, seed=rng)
        sums = [0.0] * problem.arms
        for t in range(horizon):
            shock = noise.shock(rng, *world)
            trial = experiment.ask()
            received = float(noise.reward(shock, trial.arm, *world))
            experiment.tell(trial.id, received)
            sums[trial.arm] += received
            arms[path, t] = trial.arm
        total = 0.0
        for arm_sum in sums:  # not sum(), which CPython 3.12 made more exact than the kernels
            total += arm_sum
        reward[path] = total
    pulls = np.stack([np.sum(arms == arm, axis=1) for arm in range(problem.arms)], axis=1)
    return Played(reward, pulls, arms)
