"""Thompson sampling, compiled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lighttail.kernels.build import BREATH, Formula, compiler, prepared
from lighttail.kernels.closing import close_path
from lighttail.random.streams import standard_normal


def posterior_kernel(centre: Formula, spread: Formula, shock: Formula, reward: Formula) -> Any:
    """Argmax of a normal draw an arm; `centre` and `spread` are the posterior's mean and s.d."""
    centre, spread, shock, reward = formulas = prepared(centre, spread, shock, reward)

    @compiler(*formulas)
    def kernel(rng: Any, params: Any, world: Any, horizon: Any, rewards: Any, pulls: Any, stop: Any) -> None:
        arms = pulls.shape[1]
        mean = np.empty(arms)
        sd = np.empty(arms)
        sums = np.empty(arms)
        counts = np.empty(arms)
        for path in range(rewards.size):
            for arm in range(arms):
                sums[arm] = 0.0
                counts[arm] = 0.0
                mean[arm] = centre(0.0, 0.0, *params)
                sd[arm] = spread(0.0, *params)
            leader = np.uint64(0)
            total = n = 0.0
            for t in range(1, horizon + 1):
                z = shock(rng, *world)
                best, chosen = -math.inf, 0.0
                for arm in range(arms):
                    draw = mean[arm] + sd[arm] * standard_normal(rng)
                    chosen = float(arm) if draw > best else chosen
                    best = draw if draw > best else best
                # A branch, so that the processor runs ahead on the guess that the leader stays.
                if np.uint64(chosen) != leader:
                    sums[leader] = total
                    counts[leader] = n
                    leader = np.uint64(chosen)
                    total = sums[leader]
                    n = counts[leader]
                total += reward(z, leader, *world)
                n += 1.0
                mean[leader] = centre(n, total, *params)
                sd[leader] = spread(n, *params)
                if t % BREATH == 0 and stop[0] != 0:
                    return
            if stop[0] != 0:
                return
            sums[leader] = total
            counts[leader] = n
            close_path(path, sums, counts, rewards, pulls)

    return kernel
