"""The oracle of late rewards: paths of `simulate` played by an `Experiment` that is told as they arrive."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import lighttail as lt
from lighttail.delays import as_delay, wait
from lighttail.random.streams import block_generator
from lighttail.running.blocks import block_paths


def play(
    policy: lt.Policy,
    problem: lt.Bandit,
    horizon: int,
    paths: int,
    seed: int,
    delay: Any = 0,
    batch: int = 1,
    start: lt.Experiment | None = None,
    own: Callable[[int], np.random.Generator] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """reward[paths] and pulls[paths, arms], as `simulate` must return them.

    own: gives a path its own generator, as on a device.
    """
    law, noise = as_delay(delay), problem.noise
    world, size = noise.world(problem.means), block_paths(horizon)
    reward, pulls = np.empty(paths), np.empty((paths, problem.arms), dtype=np.int64)
    for path in range(paths):
        if own is not None:
            rng = own(path)
        elif path % size == 0:
            rng = block_generator(seed, path // size)
        experiment = begun(policy, problem, horizon, start, rng)
        first = len(experiment._arm_of)
        earned = list(experiment._standing.total)
        coming: list[
            tuple[float, int, int, float]
        ] = []  # (round before which it is known, order, id, reward)
        for trial in experiment.open_trials:
            value = float(noise.reward(noise.shock(rng, *world), trial.arm, *world))
            earned[trial.arm] += value
            late = math.inf if law.never else first - trial.id
            for _ in range(1000):
                drawn = wait(rng, *law.params())
                if drawn >= first - trial.id:
                    late = drawn
                    break
            coming.append((trial.id + 1 + late, trial.id - first, trial.id, value))
        for t in range(first + 1, horizon + 1):
            if (t - 1) % batch == 0:
                due = sorted(entry for entry in coming if entry[0] <= t)
                coming = [entry for entry in coming if entry[0] > t]
                for _, _, known, value in due:
                    experiment.tell(known, value)
            shock = noise.shock(rng, *world)
            trial = experiment.ask()
            value = float(noise.reward(shock, trial.arm, *world))
            earned[trial.arm] += value
            coming.append((t + 1 + wait(rng, *law.params()), t, trial.id, value))
        total = 0.0
        for part in earned:
            total += part
        reward[path], pulls[path] = total, list(experiment.pulls.values())
    return reward, pulls


def begun(
    policy: lt.Policy, problem: lt.Bandit, horizon: int, start: lt.Experiment | None, rng: np.random.Generator
) -> lt.Experiment:
    """A fresh experiment, or a copy of the one to go on from, with these random numbers."""
    if start is None:
        return lt.Experiment(policy, range(problem.arms), horizon=horizon, seed=rng)
    text = lt.Experiment.from_json(start.to_json())
    text._rng = rng
    return text
