"""The oracle of linear bandits: the paths of `simulate` played by `LinearExperiment`, with direct solves.

It takes its random numbers from the same generators as the kernels, in the same order: in each round first
the actions, then the shock behind the reward, then whatever the policy draws.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import lighttail as lt
from lighttail.random.streams import block_generator
from lighttail.running.blocks import block_paths


class Played(NamedTuple):
    """Of every path its reward, what the best actions would have earned, what was lost, and its choices."""

    reward: np.ndarray
    best: np.ndarray
    lost: np.ndarray
    chosen: np.ndarray

    def pulls(self, actions: int) -> np.ndarray:
        return np.stack([np.sum(self.chosen == action, axis=1) for action in range(actions)], axis=1)


def play(policy: lt.LinearUCB, problem: lt.LinearBandit, horizon: int, paths: int, seed: int) -> Played:
    """What `simulate` must return for the same arguments."""
    noise, source = problem.noise, problem.actions
    theta, stored = np.array(problem.theta), source.source(problem.dim)
    rest = noise.world(problem.theta)[1:]
    size = block_paths(horizon, dear=32)
    totals = np.zeros((3, paths))
    chosen = np.empty((paths, horizon), dtype=np.int64)
    rows = np.empty((source.count, problem.dim))
    for path in range(paths):
        if path % size == 0:
            rng = block_generator(seed, path // size)
        experiment = lt.LinearExperiment(policy, problem.dim, horizon=horizon, seed=rng)
        for t in range(1, horizon + 1):
            source.fill(rng, t, rows, *stored)
            means = rows @ theta
            shock = noise.shock(rng, means, *rest)
            trial = experiment.ask(rows)
            received = float(noise.reward(shock, trial.arm, means, *rest))
            experiment.tell(trial.id, received)
            chosen[path, t - 1] = trial.arm
            totals[:, path] += received, means.max(), means.max() - means[trial.arm]
    return Played(*totals, chosen)
