"""Exponential weights, compiled: EXP3-IX."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lighttail.kernels.build import BREATH, Formula, kernel_maker, sum_of
from lighttail.random.streams import uniform


@kernel_maker
def weights_kernel(weight: Formula, gain: Formula, shock: Formula, reward: Formula) -> Any:
    """Draw an arm by its weight, then credit it with its gain."""

    def kernel(rng: Any, params: Any, world: Any, horizon: Any, rewards: Any, pulls: Any, stop: Any) -> None:
        arms = pulls.shape[1]
        scores = np.empty(arms)
        weights = np.empty(arms)
        sums = np.empty(arms)
        for path in range(rewards.size):
            for arm in range(arms):
                scores[arm] = 0.0
                sums[arm] = 0.0
                pulls[path, arm] = 0
            for t in range(1, horizon + 1):
                z = shock(rng, *world)
                best = -math.inf
                for arm in range(arms):
                    best = max(best, scores[arm])
                mass = 0.0
                for arm in range(arms):
                    weights[arm] = weight(scores[arm], best, *params)
                    mass += weights[arm]
                mark = uniform(rng) * mass
                chosen = 0
                below = weights[0]
                while chosen < arms - 1 and mark >= below:
                    chosen += 1
                    below += weights[chosen]
                value = reward(z, chosen, *world)
                scores[chosen] += gain(value, weights[chosen] / mass, *params)
                sums[chosen] += value
                pulls[path, chosen] += 1
                if t % BREATH == 0 and stop[0] != 0:
                    return
            if stop[0] != 0:
                return
            rewards[path] = sum_of(sums)

    return kernel
