"""Successive elimination, compiled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba.extending import register_jitable

from lighttail.kernels.build import BREATH, Formula, compiler, prepared
from lighttail.kernels.closing import sum_of


def pull_by_pull(shock: Formula, reward: Formula) -> Any:
    """The function that plays the last arm until the horizon."""

    @register_jitable
    def finish(rng: Any, arm: Any, pulls: Any, total: Any, world: Any, stop: Any) -> Any:
        done = 0
        while done < pulls and stop[0] == 0:
            until = min(pulls, done + BREATH)
            for _ in range(done, until):
                total += reward(shock(rng, *world), arm, *world)
            done = until
        return total

    return finish


def at_once(total_of: Formula) -> Any:
    """The same with the sum of all its rewards as one draw."""

    @register_jitable
    def finish(rng: Any, arm: Any, pulls: Any, total: Any, world: Any, stop: Any) -> Any:
        return total + total_of(rng, arm, float(pulls), *world) if pulls > 0 else total

    return finish


def elimination_kernel(
    radius: Formula, clock: Formula, shock: Formula, reward: Formula, total_of: Formula | None = None
) -> Any:
    """Phases over the active arms until one is left or the horizon is reached."""
    formulas = prepared(*(f for f in (radius, clock, shock, reward, total_of) if f is not None))
    radius, clock, shock, reward = formulas[:4]
    finish = pull_by_pull(shock, reward) if total_of is None else at_once(formulas[4])

    @compiler(*formulas)
    def kernel(rng: Any, params: Any, world: Any, horizon: Any, rewards: Any, pulls: Any, stop: Any) -> None:
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
            if t < horizon:
                pulls[path, last] += horizon - t
            sums[last] = finish(rng, last, horizon - t, sums[last], world, stop)
            if stop[0] != 0:
                return
            rewards[path] = sum_of(sums)

    return kernel
