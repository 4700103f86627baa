"""The paths of `lighttail.kernels.tilted` for UCB: the same bits, in less time.

The leader runs, with its pulls and its sum in registers, until its index is no longer above the index of its
rival, the best of the other arms. If the radius ignores time, a pull changes the index of the leader alone;
otherwise the clocks of all rounds are computed once for all paths of a block.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lighttail.kernels.build import Formula, kernel_maker, largest, sum_of
from lighttail.kernels.skip import top_two
from lighttail.kernels.stepping import pick_tied
from lighttail.kernels.tilted import begin_last_round, begin_path, end_path


@kernel_maker
def tilted_run_kernel(radius: Formula, clock: Formula, moving: bool, shock: Formula, reward: Formula) -> Any:
    """The arguments are those of `tilted_kernel`. moving: whether the radius changes with time."""

    def kernel(
        rng: Any, params: Any, means: Any, rest: Any, mixture: Any, gaps: Any, horizon: Any, target: Any,
        luck: Any, full: Any, own: Any, log_parts: Any, rounds: Any, score: Any, pulls: Any, totals: Any,
        stop: Any,
    ) -> None:  # fmt: skip
        arms = means.size
        n, s, index = np.empty(arms), np.empty(arms), np.empty(arms)
        mean, counts = np.empty(arms), np.empty(arms)  # inf and 1 for an arm that was never pulled
        n_end, s_end = np.empty(arms), np.empty(arms)
        current, caps = np.empty(arms), np.empty(arms)
        tied_arms = np.empty(arms, np.int64)
        sums, clocks, known = np.empty((arms, horizon + 1)), np.empty(horizon + 1), 0
        worst, best = largest(gaps), largest(means)
        for k in range(arms):
            sums[k, 0] = 0.0
        last = horizon - 1 if luck else horizon  # a run ends here: the last round of luck has other means
        for path in range(rounds.size):
            c = begin_path(rng, mixture, n, s, current, caps)
            for k in range(arms):
                index[k], mean[k], counts[k] = math.inf, math.inf, 1.0
            t, loss = 0, 0.0
            hit = decided = False
            while t < horizon and not decided:
                t += 1
                if stop[0] != 0:
                    return
                if luck and t == horizon:
                    begin_last_round(mixture, c, n, s, current, n_end, s_end)
                z = shock(rng, current, *rest)
                if moving:
                    if t > known:
                        known, clocks[t] = t, clock(float(t), *params)
                    for k in range(arms):
                        index[k] = mean[k] + radius(counts[k], clocks[t], *params)
                top, leader, rival = top_two(index)
                if top == rival:
                    leader = np.int64(pick_tied(rng, index, top, tied_arms))
                gap, cap, count, total = gaps[leader], caps[leader], n[leader], s[leader]
                while True:
                    loss += gap
                    if not luck:
                        hit = loss >= target
                        decided = hit or (not full and loss + worst * (horizon - t) < target)
                        if decided:
                            break
                    total += reward(z, leader, current, *rest)
                    count += 1.0
                    sums[leader, int(count)] = total
                    if count == cap:
                        current[leader] = mixture.later_means[c, leader]
                    time = 0.0
                    if moving:
                        later = min(t + 1, horizon)  # nothing is chosen after the horizon
                        if later > known:
                            known, clocks[later] = later, clock(float(later), *params)
                        time, rival = clocks[later], -math.inf
                        for k in range(arms):
                            other = mean[k] + radius(counts[k], time, *params)
                            rival = other if other > rival and k != leader else rival
                    top = total / count + radius(count, time, *params)
                    if t >= last or not top > rival:
                        break
                    t += 1
                    z = shock(rng, current, *rest)
                n[leader], s[leader], index[leader] = count, total, top
                if moving and count > 0.0:
                    mean[leader], counts[leader] = total / count, count
            rounds[path], own[path] = t, c
            score[path] = loss
            if luck:
                score[path] = best * horizon - sum_of(s)
                hit = score[path] >= target
            end_path(mixture, luck, hit, n, s, sums, n_end, s_end, pulls[path], totals[path], log_parts[path])

    return kernel
