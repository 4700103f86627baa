"""UCB without playing every pull, compiled: see docs/skip-ahead.md for the method and its proof.

The sums of an arm's rewards are a random walk that is revealed point by point: far ahead first,
then between two points by the walk's bridge. Points that are known lie in a gap buffer an arm,
`place` (pulls) and `height` (sum): those already passed at the left, those ahead at the right.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba.extending import register_jitable

from lighttail.kernels.build import Formula, compiler, digest, prepare
from lighttail.kernels.index import pick_tied

ROOM = 256  # points an arm at first; the buffers grow where that is not enough
SAFETY = math.log(1e12)  # a path's total variation stays below 1e-12


@register_jitable
def reach(here: Any, drift: Any, sigma: Any, limit: Any) -> Any:
    """A block length that is likely to be clear: 2 w (w + drift m - sigma sqrt m) = limit sigma^2 m."""
    square = 1.0 + 2.0 * (limit - 2.0 * here * drift / (sigma * sigma))
    if square <= 0.0:
        return math.inf
    root = 2.0 * here / (sigma * (1.0 + math.sqrt(square)))
    return max(1.0, float(math.floor(min(root * root, 1e15))))


@register_jitable
def wider(points: Any, right: Any) -> Any:
    """The same gap buffers with twice the room."""
    arms, room = points.shape
    more = np.empty((arms, 2 * room))
    for arm in range(arms):
        for i in range(room):
            more[arm, i] = points[arm, i]
            more[arm, room + i] = points[arm, i]
    return more


@register_jitable
def top_two(index: Any) -> Any:
    """The highest index, its arm, and the second highest."""
    best, rival, leader = -math.inf, -math.inf, 0
    for arm in range(index.size):
        value = index[arm]
        rival = max(rival, min(value, best))
        leader = arm if value > best else leader
        best = max(best, value)
    return best, leader, rival


def level_kernel(
    radius: Formula, bend: Formula, total: Formula, part: Formula, clear: Formula, proxy: Formula
) -> Any:
    """UCB with a radius that does not change with time."""
    radius, bend, total, part, clear, proxy = (prepare(f) for f in (radius, bend, total, part, clear, proxy))
    formulas = digest(radius, bend, total, part, clear, proxy)

    @compiler(radius, bend, total, part, clear, proxy)
    def kernel(rng: Any, params: Any, world: Any, horizon: Any, rewards: Any, pulls: Any, stop: Any) -> None:
        formulas  # noqa: B018  (a free variable, hence part of the cache's key)
        arms = pulls.shape[1]
        end = float(horizon)
        limit = SAFETY + math.log(end)
        sigma = proxy(*world)
        kink = float(math.floor(min(bend(*params), end)))
        means = world[0]
        counts, sums, index = np.empty(arms), np.empty(arms), np.empty(arms)
        counts_then, sums_then, index_then = np.empty(arms), np.empty(arms), np.empty(arms)
        left, right = np.empty(arms, np.int64), np.empty(arms, np.int64)
        room = ROOM
        place, height = np.empty((arms, room)), np.empty((arms, room))
        width = sigma / math.sqrt(end)
        aim = means.max() + radius(end, 0.0, *params)
        for path in range(rewards.size):
            for arm in range(arms):
                left[arm] = 0
                right[arm] = room
                counts[arm] = 1.0
                sums[arm] = total(rng, arm, 1.0, *world)
                index[arm] = sums[arm] + radius(1.0, 0.0, *params)
            used = float(arms)
            low = -math.inf
            level = aim + width
            step = width
            fresh = True
            while used < end:
                if stop[0] != 0:
                    return
                best, leader, rival = top_two(index)
                if low > -math.inf and not fresh:
                    level = 0.5 * (low + best) if 4.0 * (best - rival) < best - low else rival
                single = level >= rival
                if single:
                    level = rival
                    if best == rival:
                        leader = int(pick_tied(rng, index, best))
                failed = False
                before = used
                for arm in range(arms):
                    counts_then[arm], sums_then[arm], index_then[arm] = counts[arm], sums[arm], index[arm]
                for arm in range(arms):
                    if (single and arm != leader) or (not single and index[arm] <= level):
                        continue
                    n, height_here, index_here = counts[arm], sums[arm], index[arm]
                    cap = n + end - used
                    l, r = left[arm], right[arm]
                    failed = True
                    while n < cap:
                        here = n * (index_here - level)
                        fits = r < room and place[arm, r] <= cap
                        if fits:
                            ahead, height_ahead = place[arm, r], height[arm, r]
                        else:
                            if l == r:
                                place, height = wider(place, right), wider(height, right)
                                for k in range(arms):
                                    right[k] += room
                                r += room
                                room *= 2
                            if r < room:
                                h = cap - n
                                m = place[arm, r] - n
                                height_ahead = height_here + part(rng, h, m - h, height[arm, r] - height_here, *world)
                                ahead = cap
                            else:
                                slope = (n + 1.0) * radius(n + 1.0, 0.0, *params) - n * radius(n, 0.0, *params)
                                m = reach(here, means[arm] - level + slope, sigma, limit)
                                m = min(m, cap - n)
                                if n <= kink:
                                    m = min(m, max(1.0, kink - n))
                                ahead = n + m
                                height_ahead = height_here + total(rng, arm, m, *world)
                            r -= 1
                            place[arm, r], height[arm, r] = ahead, height_ahead
                        m = ahead - n
                        index_ahead = height_ahead / ahead + radius(ahead, 0.0, *params)
                        if m == 1.0 or clear(here, ahead * (index_ahead - level), m, limit, *world):
                            place[arm, l], height[arm, l] = ahead, height_ahead
                            l += 1
                            r += 1
                            n, height_here, index_here = ahead, height_ahead, index_ahead
                            if index_ahead <= level:
                                failed = False
                                break
                        else:
                            if l == r:
                                place, height = wider(place, right), wider(height, right)
                                for k in range(arms):
                                    right[k] += room
                                r += room
                                room *= 2
                            h = float(math.floor(0.5 * m))
                            r -= 1
                            place[arm, r] = n + h
                            height[arm, r] = height_here + part(rng, h, m - h, height_ahead - height_here, *world)
                    left[arm], right[arm] = l, r
                    used += n - counts[arm]
                    counts[arm], sums[arm], index[arm] = n, height_here, index_here
                    if failed:
                        break
                if failed and not single:
                    used = before
                    low = level
                    for arm in range(arms):
                        while left[arm] > 0:
                            left[arm] -= 1
                            right[arm] -= 1
                            place[arm, right[arm]] = place[arm, left[arm]]
                            height[arm, right[arm]] = height[arm, left[arm]]
                        counts[arm], sums[arm], index[arm] = counts_then[arm], sums_then[arm], index_then[arm]
                    if fresh:
                        level += step
                        step *= 2.0
                else:
                    for arm in range(arms):
                        left[arm] = 0
                    if not single:
                        fresh = False
                    if low == -math.inf:
                        level = min(level, aim) - step
                        step *= 2.0
            reward = 0.0
            for arm in range(arms):
                reward += sums[arm]
                pulls[path, arm] = int(counts[arm])
            rewards[path] = reward

    return kernel
