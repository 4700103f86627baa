"""Successive elimination, compiled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lighttail.kernels.build import BREATH, Formula, compiler, digest, prepare


def elimination_kernel(radius: Formula, clock: Formula, shock: Formula, reward: Formula) -> Any:
    """Phases over the active arms until one is left or the horizon is reached."""
    radius, clock, shock, reward = (prepare(f) for f in (radius, clock, shock, reward))
    formulas = digest(radius, clock, shock, reward)

    @compiler(radius, clock, shock, reward)
    def kernel(rng: Any, params: Any, world: Any, horizon: Any, rewards: Any, pulls: Any, stop: Any) -> None:
        formulas  # noqa: B018  (a free variable, hence part of the cache's key)
        arms = pulls.shape[1]
        active = np.empty(arms, np.int64)
        sums = np.empty(arms)
        for path in range(rewards.size):
            for arm in range(arms):
                active[arm] = arm
                sums[arm] = 0.0
                pulls[path, arm] = 0
            left = arms
            t = 0
            phase = 0
            while left > 1 and t < horizon:
                phase += 1
                full = min(left, horizon - t)
                for i in range(full):
                    pulled = np.uint64(active[i])
                    sums[pulled] += reward(shock(rng, *world), pulled, *world)
                    pulls[path, pulled] = phase
                t += full
                n = float(phase)
                width = radius(n, clock(float(t), *params), *params)
                best = -math.inf
                for i in range(left):
                    best = max(best, sums[active[i]] / n)
                kept = 0
                for i in range(left):
                    arm = active[i]
                    if not best - width > sums[arm] / n + width:
                        active[kept] = arm
                        kept += 1
                left = kept
                if phase % BREATH == 0 and stop[0] != 0:
                    return
            last = np.uint64(active[0])
            total = sums[last]
            if t < horizon:
                pulls[path, last] += horizon - t
            while t < horizon:
                until = min(horizon, t + BREATH)
                for _ in range(t, until):
                    total += reward(shock(rng, *world), last, *world)
                t = until
                if stop[0] != 0:
                    return
            sums[last] = total
            total = 0.0
            for arm in range(arms):
                total += sums[arm]
            rewards[path] = total

    return kernel
