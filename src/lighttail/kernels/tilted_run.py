"""The paths of `lighttail.kernels.tilted` for UCB with a radius without time: the same bits, in less time.

A pull changes the index of the leader alone, so the leader runs, with its pulls and its sum in registers,
until its index is no longer above the index of its rival, the best of the other arms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lighttail.kernels.build import Formula, kernel_maker, sum_of
from lighttail.kernels.skip import top_two
from lighttail.kernels.stepping import pick_tied
from lighttail.kernels.tilted import begin_last_round, begin_path, end_path


@kernel_maker
def tilted_run_kernel(radius: Formula, shock: Formula, reward: Formula) -> Any:
    """The arguments are those of `tilted_kernel`."""

    def kernel(
        rng: Any, params: Any, means: Any, rest: Any, mixture: Any, gaps: Any, horizon: Any, target: Any,
        luck: Any, full: Any, own: Any, log_parts: Any, rounds: Any, score: Any, pulls: Any, totals: Any,
        stop: Any,
    ) -> None:  # fmt: skip
        arms = means.size
        n, s, index = np.empty(arms), np.empty(arms), np.empty(arms)
        n_end, s_end = np.empty(arms), np.empty(arms)
        current, caps = np.empty(arms), np.empty(arms)
        tied_arms = np.empty(arms, np.int64)
        sums = np.empty((arms, horizon + 1))
        worst, best = gaps.max(), means.max()
        for k in range(arms):
            sums[k, 0] = 0.0
        last = horizon - 1 if luck else horizon  # a run ends here: the last round of luck has other means
        for path in range(rounds.size):
            c = begin_path(rng, mixture, n, s, current, caps)
            for k in range(arms):
                index[k] = math.inf
            t, loss = 0, 0.0
            hit = decided = False
            while t < horizon and not decided:
                t += 1
                if stop[0] != 0:
                    return
                if luck and t == horizon:
                    begin_last_round(mixture, c, n, s, current, n_end, s_end)
                z = shock(rng, current, *rest)
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
                    top = total / count + radius(count, 0.0, *params)
                    if t >= last or not top > rival:
                        break
                    t += 1
                    z = shock(rng, current, *rest)
                n[leader], s[leader], index[leader] = count, total, top
            rounds[path], own[path] = t, c
            score[path] = loss
            if luck:
                score[path] = best * horizon - sum_of(s)
                hit = score[path] >= target
            end_path(mixture, luck, hit, n, s, sums, n_end, s_end, pulls[path], totals[path], log_parts[path])

    return kernel
