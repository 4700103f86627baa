"""UCB without playing every pull, compiled: docs/skip-ahead.md has the method and its proof.

The sum of an arm's rewards is a random walk, which is revealed point by point: first far ahead, then between
two known points by the bridge of the walk. The known points of an arm lie in a gap buffer, `pulled` (pulls)
and `height` (sum): the points already passed at its left, and the points ahead at its right, nearest first.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from lighttail.kernels.beginning import beginning_of_sums
from lighttail.kernels.build import Formula, close_path, inner, kernel_maker
from lighttail.kernels.stepping import pick_tied

ROOM = 1024  # points of an arm that are kept; doubled if there are more
RESERVE = 128  # points that one passage adds, at most: twice the halvings of the longest block
SAFETY = math.log(1e12)  # the law of a path is exact up to a total variation of 1e-12
FEW = 4.0  # changes of the leader that are played one by one
MISSES = 4  # leaps in a row that are taken back before a leader plays alone
MARGIN = 0.5  # standard deviations by which a block is planned to be clear
FARTHEST = 1e15
CAPPED, CROSSED, CROWDED = 0, 1, 2  # how a passage ended: at its cap, at its level, out of room


@inner
def block_length(root: Any) -> Any:
    """The whole number below root^2, at least 1 and at most FARTHEST; 1 if the root is not a number."""
    length = float(math.floor(min(root * root, FARTHEST)))
    return length if length >= 1.0 else 1.0


@inner
def likely_clear(here: Any, drift: Any, sigma: Any, limit: Any) -> Any:
    """The m with 2 w (w + drift m - margin sigma sqrt m) = limit sigma^2 m: most likely a clear block."""
    square = MARGIN * MARGIN + 2.0 * (limit - 2.0 * here * drift / (sigma * sigma))
    if square <= 0.0:
        return FARTHEST
    if square == math.inf:  # no number holds it: the drift alone counts, and its roots are numbers
        return block_length(math.sqrt(here) / math.sqrt(-drift))
    return block_length(2.0 * here / (sigma * (MARGIN + math.sqrt(square))))


@inner
def likely_clear_both(here: Any, loss: Any, close: Any) -> Any:
    """The m with 2 (w - loss m)^2 = limit sigma^2 m, if both ends of a block lose a little per pull."""
    scale = close * math.sqrt(0.5)
    return block_length(2.0 * here / (scale + math.sqrt(scale * scale + 4.0 * loss * here)))


@inner
def before_bend(m: Any, n: Any, kink: Any) -> Any:
    """The length m of a block from n pulls on, cut so that the bend of n * radius(n) is not inside."""
    return min(m, max(1.0, kink - n)) if n <= kink else m


@inner
def top_two(index: Any) -> Any:
    """The highest index, its arm, and the second highest."""
    best, rival, leader = -math.inf, -math.inf, 0
    for arm in range(index.size):
        value = index[arm]
        rival = max(rival, min(value, best))
        leader = arm if value > best else leader
        best = max(best, value)
    return best, leader, rival


@inner
def wider(points: Any) -> Any:
    """The points, which all lie ahead, in an array with twice the room."""
    arms, room = points.shape
    more = np.empty((arms, 2 * room))
    for arm in range(arms):
        for i in range(room):
            more[arm, room + i] = points[arm, i]
    return more


@inner
def more_room(pulled: Any, height: Any, right: Any) -> Any:
    """Twice the room for the points of all arms, which all lie ahead; `right` is moved, too."""
    right += pulled.shape[1]
    return wider(pulled), wider(height)


@inner
def remember(now: Any, then: Any, left: Any) -> None:
    """Keep the arms' state before a leap, for `take_back`; no arm has passed a point yet."""
    for arm in range(left.size):
        left[arm] = 0
        for i in range(now.shape[0]):
            then[i, arm] = now[i, arm]


@inner
def take_back(now: Any, then: Any, pulled: Any, height: Any, left: Any, right: Any) -> None:
    """Put the arms back to their state before a leap; the points that the leap revealed lie ahead."""
    for arm in range(left.size):
        for k in range(left[arm] - 1, -1, -1):
            right[arm] -= 1
            pulled[arm, right[arm]], height[arm, right[arm]] = pulled[arm, k], height[arm, k]
        for i in range(now.shape[0]):
            now[i, arm] = then[i, arm]


def passage_of(radius: Formula, total: Formula, part: Formula, clear: Formula) -> Any:
    """The function that follows one arm until its index is at or below a level."""

    @inner
    def passage(
        rng: Any, params: Any, world: Any, arm: Any, level: Any, cap: Any, keep: Any, state: Any, rules: Any,
        pulled: Any, height: Any, right: Any, stop: Any,
    ) -> Any:  # fmt: skip
        """Pull the arm at least once, and at most until it has `cap` pulls.

        keep: whether the points that are passed stay known. state: the arm's pulls, sum and index. rules: the
        limit of a clear block, sigma, and the bend.
        """
        n, sum_here, index = state
        limit, sigma, kink = rules
        room = pulled.size
        left = 0
        close = sigma * math.sqrt(limit)
        n_before, bonus_before = n - 1.0, n * index - sum_here
        while n < cap and stop[0] == 0:
            if keep and right - left < RESERVE:
                return CROWDED, (n, sum_here, index), left, right
            here = n * (index - level)
            known = right < room
            if known:
                ahead, sum_ahead = pulled[right], height[right]
                if ahead > cap:
                    right -= 1
                    pulled[right] = cap
                    height[right] = sum_here + part(rng, cap - n, ahead - cap, sum_ahead - sum_here, *world)
                    continue
            else:
                m = 1.0
                if here > close:
                    bonus = n * index - sum_here
                    drift = world[0][arm] - level + (bonus - bonus_before) / (n - n_before)
                    n_before, bonus_before = n, bonus
                    m = max(1.0, min(likely_clear(here, drift, sigma, limit), cap - n))
                    m = before_bend(m, n, kink)
                ahead, sum_ahead = n + m, sum_here + total(rng, arm, m, *world)
            m = ahead - n
            index_ahead = sum_ahead / ahead + radius(ahead, 0.0, *params)
            if m == 1.0 or clear(here, ahead * (index_ahead - level), m, limit, *world):
                right += known
                if keep:
                    pulled[left], height[left] = ahead, sum_ahead
                    left += 1
                n, sum_here, index = ahead, sum_ahead, index_ahead
                if index <= level:
                    return CROSSED, (n, sum_here, index), left, right
            else:
                if not known:
                    right -= 1
                    pulled[right], height[right] = ahead, sum_ahead
                half = float(math.floor(0.5 * m))
                right -= 1
                pulled[right] = n + half
                height[right] = sum_here + part(rng, half, m - half, sum_ahead - sum_here, *world)
        return CAPPED, (n, sum_here, index), left, right

    return passage


@cache
def leap_of(radius: Formula, total: Formula, part: Formula, clear: Formula) -> Any:
    """The function that follows all arms, or one of them, until their indices are at or below a level."""
    passage = passage_of(radius, total, part, clear)

    @inner
    def leap(
        rng: Any, params: Any, world: Any, only: Any, level: Any, t: Any, end: Any, loss: Any, event: Any,
        now: Any, rules: Any, pulled: Any, height: Any, left: Any, right: Any, stop: Any,
    ) -> Any:  # fmt: skip
        """How the leap ended, and the rounds and the loss at its end; CAPPED also if it passed the decision.

        only: the arm that runs alone, whose passed points are not kept; -1 for every arm above the level.
        event: gaps, the worst of them, target, and whether nothing is decided before the last round. now: the
        pulls, sums and indices of the arms. The other arguments are those of `passage`, for every arm.
        """
        gaps, worst, target, luck = event
        how = CROSSED
        for arm in range(left.size):
            if now[2, arm] <= level if only < 0 else arm != only:
                continue
            before = now[0, arm]
            state = (before, now[1, arm], now[2, arm])
            how, state, left[arm], right[arm] = passage(
                rng, params, world, arm, level, before + end - t, only < 0, state, rules,
                pulled[arm], height[arm], right[arm], stop,
            )  # fmt: skip
            now[0, arm], now[1, arm], now[2, arm] = state
            loss += (state[0] - before) * gaps[arm]
            t += state[0] - before
            decided = not luck and (loss >= target or loss + worst * (end - t) < target)
            if how == CROSSED and decided:
                how = CAPPED
            if how != CROSSED:
                break
        return how, t, loss

    return leap


@cache
def level_path_of(radius: Formula, total: Formula, part: Formula, clear: Formula) -> Any:
    """The function that plays a path of `level_kernel` from a state to its end."""
    leap = leap_of(radius, total, part, clear)

    @inner
    def play(
        rng: Any, params: Any, world: Any, used: Any, end: Any, level: Any, step: Any, rules: Any,
        now: Any, then: Any, pulled: Any, height: Any, left: Any, right: Any, tied_arms: Any, stop: Any,
    ) -> Any:  # fmt: skip
        """Play from round `used` to round `end`. level, step: the level of the first leap, and how far the
        next one is. now: the pulls, sums and indices of the arms. Returns the room for points."""
        index = now[2]
        never = np.zeros(left.size), 0.0, 0.0, True  # no event is looked for
        low, moved, misses = -math.inf, False, 0  # once a level was not too low, their range is halved
        while used < end:
            if stop[0] != 0:
                break
            best, leader, rival = top_two(index)
            if moved and low > -math.inf:
                many = FEW * (best - rival) < best - low and misses < MISSES
                level = 0.5 * (low + best) if many else rival
            alone = level >= rival
            if alone:
                level = rival
                if best == rival:
                    leader = np.int64(pick_tied(rng, index, best, tied_arms))
            else:
                remember(now, then, left)
            before = used
            how, used, _ = leap(
                rng, params, world, leader if alone else -1, level, used, end, 0.0, never,
                now, rules, pulled, height, left, right, stop,
            )  # fmt: skip
            if alone:
                moved, misses = True, 0
                continue
            if how == CROSSED:
                moved, misses = True, 0
                if low == -math.inf:
                    level -= step
            else:
                take_back(now, then, pulled, height, left, right)
                used = before
                if how == CROWDED:
                    pulled, height = more_room(pulled, height, right)
                    continue
                low = level
                level += step
                misses += 1
            step *= 2.0
        return pulled, height

    return play


@kernel_maker
def level_kernel(
    radius: Formula, bend: Formula, total: Formula, part: Formula, clear: Formula, proxy: Formula,
    onward: bool = False,
) -> Any:  # fmt: skip
    """UCB with a radius that does not change with time: all arms together leap down to a level.

    By the merge lemma, the number of pulls of each arm until every index is at or below a level does not
    depend on the order of the pulls. A leap with more pulls than the horizon has left is taken back; its
    points stay known. From the level where the horizon ends, the leaders play one by one.
    """
    play = level_path_of(radius, total, part, clear)
    begin = beginning_of_sums(onward, total)

    def kernel(
        rng: Any, params: Any, world: Any, horizon: Any, rewards: Any, pulls: Any, stop: Any,
        first: Any = 0, start: Any = (),
    ) -> None:  # fmt: skip
        arms = pulls.shape[1]
        end = float(horizon)
        kink = float(math.floor(min(bend(*params), end)))
        now, then = np.empty((3, arms)), np.empty((3, arms))
        counts, sums, index = now[0], now[1], now[2]
        left, right = np.zeros(arms, np.int64), np.empty(arms, np.int64)
        tied_arms = np.empty(arms, np.int64)
        pulled, height = np.empty((arms, ROOM)), np.empty((arms, ROOM))
        for path in range(rewards.size):
            used = begin(rng, world, path, first, start, counts, sums)
            sigma = proxy(*world)
            width = sigma / math.sqrt(end)
            for arm in range(arms):
                right[arm] = pulled.shape[1]
                index[arm] = sums[arm] / counts[arm] + radius(counts[arm], 0.0, *params)
            level = top_two(world[0])[0] + radius(end, 0.0, *params)  # about the level at the horizon
            if onward:  # below the rival of the best arm, so that a leap is tried before the leaders play
                level = min(level, top_two(index)[2] - width)
            pulled, height = play(
                rng, params, world, used, end, level, width, (SAFETY + math.log(end), sigma, kink),
                now, then, pulled, height, left, right, tied_arms, stop,
            )  # fmt: skip
            if stop[0] != 0:
                return
            close_path(path, sums, counts, rewards, pulls)

    return kernel
