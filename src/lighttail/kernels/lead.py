"""UCB with a radius that grows with time, without playing every pull: docs/skip-ahead.md, section 3."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from lighttail.kernels.beginning import beginning_of_sums
from lighttail.kernels.build import Formula, close_path, inner, kernel_maker
from lighttail.kernels.skip import (
    RESERVE,
    SAFETY,
    before_bend,
    likely_clear_both,
    top_two,
)
from lighttail.kernels.stepping import pick_tied


@cache
def lead_path_of(radius: Formula, clock: Formula, total: Formula, part: Formula, clear: Formula) -> Any:
    """The function that plays a path of `lead_kernel` from a state to its end."""

    @inner
    def rivals(leader: Any, time: Any, counts: Any, sums: Any, params: Any) -> Any:
        """The best index of all other arms when the clock shows `time`."""
        best = -math.inf
        for arm in range(counts.size):
            if arm != leader:
                best = max(best, sums[arm] / counts[arm] + radius(counts[arm], time, *params))
        return best

    @inner
    def play(
        rng: Any, params: Any, world: Any, t: Any, end: Any, limits: Any, counts: Any, sums: Any,
        index: Any, pulled: Any, height: Any, right: Any, tied_arms: Any, stop: Any,
    ) -> None:  # fmt: skip
        """Play from round t to round `end`. limits: the limit of a clear block, how far the indices of a
        block must be apart, and the bend. counts, sums: the pulls and the sums of the arms."""
        limit, close, kink = limits
        arms = counts.size
        while t < end:
            if stop[0] != 0:
                return
            time = clock(t + 1.0, *params)
            for arm in range(arms):
                index[arm] = sums[arm] / counts[arm] + radius(counts[arm], time, *params)
            best, leader, rival = top_two(index)
            if best == rival:
                leader = np.int64(pick_tied(rng, index, best, tied_arms))
            n, sum_here, r = counts[leader], sums[leader], right[leader]
            growth = -1.0  # growth per round of the rivals' best index; -1 until it is needed
            while t < end and stop[0] == 0:
                here = sum_here + n * (radius(n, time, *params) - rival)
                known = r < RESERVE
                if known:
                    ahead, sum_ahead = pulled[leader, r], height[leader, r]
                    if ahead > n + end - t:
                        ahead = n + end - t
                        rest = pulled[leader, r] - ahead
                        sum_ahead = sum_here + part(rng, ahead - n, rest, sum_ahead - sum_here, *world)
                        r -= 1
                        pulled[leader, r], height[leader, r] = ahead, sum_ahead
                else:
                    m = 1.0
                    if here > close:
                        if growth < 0.0:
                            later = min(
                                t + 1.0 + max(1.0, t / 64.0), end
                            )  # up to here the growth is measured
                            grown = rivals(leader, clock(later, *params), counts, sums, params) - rival
                            growth = grown / max(1.0, later - t - 1.0)
                        loss = n * growth + max(0.0, rival - world[0][leader])
                        m = before_bend(likely_clear_both(here, loss, close), n, kink)
                        m = max(1.0, min(m, end - t, t))
                    ahead, sum_ahead = n + m, sum_here + total(rng, leader, m, *world)
                m = ahead - n
                time_ahead = clock(min(t + m + 1.0, end), *params)  # no round comes after the end
                rival_ahead = rivals(leader, time_ahead, counts, sums, params)
                low_here = here - n * (rival_ahead - rival)
                low_ahead = sum_ahead + ahead * (radius(ahead, time, *params) - rival_ahead)
                if m == 1.0 or clear(low_here, low_ahead, m, limit, *world):
                    r += known
                    t += m
                    n, sum_here, time, rival = ahead, sum_ahead, time_ahead, rival_ahead
                    if sum_here / n + radius(n, time, *params) <= rival:
                        break
                else:
                    if not known:
                        r -= 1
                        pulled[leader, r], height[leader, r] = ahead, sum_ahead
                    half = float(math.floor(0.5 * m))
                    r -= 1
                    pulled[leader, r] = n + half
                    height[leader, r] = sum_here + part(rng, half, m - half, sum_ahead - sum_here, *world)
            counts[leader], sums[leader], right[leader] = n, sum_here, r

    return play


@kernel_maker
def lead_kernel(
    radius: Formula, clock: Formula, bend: Formula,
    total: Formula, part: Formula, clear: Formula, proxy: Formula, onward: bool = False,
) -> Any:  # fmt: skip
    """UCB with a radius that grows with time: one leader after the other, each in blocks.

    Within a block the rivals' indices are bounded by their indices at the end of the block, and the leader's
    own bonus by its bonus at the start.
    """
    play = lead_path_of(radius, clock, total, part, clear)
    begin = beginning_of_sums(onward, total)

    def kernel(
        rng: Any, params: Any, world: Any, horizon: Any, rewards: Any, pulls: Any, stop: Any,
        first: Any = 0, start: Any = (),
    ) -> None:  # fmt: skip
        arms = pulls.shape[1]
        end = float(horizon)
        limit = SAFETY + math.log(end)
        kink = float(math.floor(min(bend(*params), end)))
        counts, sums, index = np.empty(arms), np.empty(arms), np.empty(arms)
        right, tied_arms = np.empty(arms, np.int64), np.empty(arms, np.int64)
        pulled, height = np.empty((arms, RESERVE)), np.empty((arms, RESERVE))
        for path in range(rewards.size):
            for arm in range(arms):
                right[arm] = RESERVE
            used = begin(rng, world, path, first, start, counts, sums)
            limits = (limit, proxy(*world) * math.sqrt(limit), kink)
            play(
                rng, params, world, used, end, limits, counts, sums,
                index, pulled, height, right, tied_arms, stop,
            )  # fmt: skip
            if stop[0] != 0:
                return
            close_path(path, sums, counts, rewards, pulls)

    return kernel
