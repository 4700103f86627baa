"""Any rule, compiled: the kernels that everything else is measured against.

`stepping_kernel` plays paths whose rewards are known at once. What makes it fast: the functions of the rule are
inlined, and the arm of a round is compared with that of the round before by a branch, so that the processor runs
ahead on the guess that the arm stays. `late_kernel` plays paths whose rewards come late, or that go on from
a state.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lighttail.kernels.build import BREATH, WRONG_ARM, Formula, compiler, digest, prepare
from lighttail.rules import Rule


def stepping_kernel(rule: Rule, shock: Formula, reward: Formula) -> Any:
    """kernel(rng, params, world, horizon, rewards, pulls, stop), as all kernels that play every pull."""
    notes = rule.notes
    choose, learn, shock, reward = (prepare(f) for f in (rule.choose, rule.learn, shock, reward))
    formulas = digest(choose, learn, shock, reward)

    @compiler(choose, learn, shock, reward)
    def kernel(rng: Any, params: Any, world: Any, horizon: Any, rewards: Any, pulls: Any, stop: Any) -> None:
        formulas  # noqa: B018  (a free variable, hence part of the cache's key)
        arms = pulls.shape[1]
        tried, total, note = np.empty(arms), np.empty(arms), np.empty((arms, notes))
        breath = 0
        for path in range(rewards.size):
            tried[:] = 0.0
            total[:] = 0.0
            note[:, :] = 0.0
            leader, n, s = np.uint64(arms), 0.0, 0.0
            for t in range(1, horizon + 1):
                z = shock(rng, *world)
                arm = choose(rng, float(t), tried, tried, total, note, params)
                if arm < 0 or arm >= arms:
                    stop[0] = WRONG_ARM
                    return
                if np.uint64(arm) != leader:
                    leader = np.uint64(arm)
                    n, s = tried[leader], total[leader]
                value = reward(z, leader, *world)
                n += 1.0
                s += value
                tried[leader] = n
                total[leader] = s
                learn(leader, value, tried, tried, total, note, params)
                breath += 1
                if breath == BREATH:
                    breath = 0
                    if stop[0] != 0:
                        return
            earned = 0.0
            for k in range(arms):
                earned += total[k]
                pulls[path, k] = int(tried[k])
            rewards[path] = earned

    return kernel
