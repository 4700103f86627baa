"""The paths of `lighttail.kernels.tilted` without playing every pull: UCB with a radius without time.

As in `lighttail.kernels.skip`, all arms leap down to a level; if this is not possible, one leader after the
other runs until its index is at the index of its rival. A path stops at the one choice that depends on more
than the arm's own walk: the choice that decides the event. The loss only grows, and the loss that is still
possible only falls, so a leap that ends before the decision has not passed it. While one arm leads, the
number of pulls until the decision is known. If the luck of the rewards counts, the last round has means of
its own, and rewards that were drawn ahead for other means are not used. docs/rare-events.md has the proof.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lighttail.kernels import skip
from lighttail.kernels.build import Formula, inner, kernel_maker, largest, sum_of
from lighttail.kernels.stepping import pick_tied
from lighttail.kernels.tilted import begin_last_round, begin_path, log_ratios


@inner
def choices_until(loss: Any, gap: Any, level: Any, most: Any) -> Any:
    """The first q >= 1 with loss + q * gap >= level; most + 1 if this q exceeds `most`."""
    if loss + most * gap < level:
        return most + 1.0
    q = max(1.0, float(math.ceil((level - loss) / gap))) if gap > 0.0 else 1.0
    while q > 1.0 and loss + (q - 1.0) * gap >= level:  # the quotient is rounded
        q -= 1.0
    while loss + q * gap < level:
        q += 1.0
    return q


@inner
def choices_until_hopeless(loss: Any, gap: Any, worst: Any, target: Any, most: Any) -> Any:
    """The first q with loss + q * gap + (most - q) * worst < target; most + 1 if there is none."""
    if loss + most * gap >= target:
        return most + 1.0
    fall = worst - gap
    q = max(1.0, float(math.floor((loss + most * worst - target) / fall))) if fall > 0.0 else 1.0
    while q > 1.0 and loss + (q - 1.0) * gap + (most - q + 1.0) * worst < target:
        q -= 1.0
    while loss + q * gap + (most - q) * worst >= target:
        q += 1.0
    return q


@kernel_maker
def tilted_skip_kernel(
    radius: Formula, bend: Formula, total: Formula, part: Formula, clear: Formula, proxy: Formula
) -> Any:
    """The arguments are those of `tilted_kernel`; every choice tilts all pulls of its arm.

    rarity: about -ln of the event's probability. A block that is wrongly taken as clear must be rare compared
    with the event.
    """
    leap = skip.leap_of(radius, total, part, clear)

    def kernel(
        rng: Any, params: Any, means: Any, rest: Any, mixture: Any, gaps: Any, rarity: Any, horizon: Any,
        target: Any, luck: Any, own: Any, log_parts: Any, rounds: Any, stop: Any,
    ) -> None:  # fmt: skip
        arms = means.size
        end = float(horizon) - 1.0 if luck else float(horizon)  # the last round is played by itself
        now, then = np.empty((3, arms)), np.empty((3, arms))
        n, s, index = now[0], now[1], now[2]
        left = np.zeros(arms, np.int64)
        n_end, s_end, sums = np.empty(arms), np.empty(arms), np.empty((arms, 1))
        current, caps = np.empty(arms), np.empty(arms)
        world = (current,) + rest  # noqa: RUF005  (numba builds no tuple from a starred one)
        worst, best_mean = largest(gaps), largest(means)
        event, never = (gaps, worst, target, luck), (gaps, worst, target, True)
        kink = float(math.floor(min(bend(*params), end)))
        right, tied_arms = np.empty(arms, np.int64), np.empty(arms, np.int64)
        pulled, height = np.empty((arms, skip.ROOM)), np.empty((arms, skip.ROOM))
        for path in range(rounds.size):
            c, low = begin_path(rng, mixture, n, s, current, caps), math.inf
            for k in range(arms):
                index[k], right[k], low = math.inf, pulled.shape[1], min(low, current[k])
            rules = (skip.SAFETY + math.log(float(horizon)) + rarity, proxy(*world), kink)
            t, loss = 0.0, 0.0
            hit = decided = False
            misses = 0
            while t < end and not decided:
                best, leader, rival = skip.top_two(index)
                level = 0.5 * (low + best)  # if rounding puts the level at `best`, nothing moves
                if level < best and skip.FEW * (best - rival) < best - low and misses < skip.MISSES:
                    # All arms run down to the level, unless the event is decided on the way.
                    skip.remember(now, then, left)
                    how, t_after, loss_after = leap(
                        rng, params, world, -1, level, t, end, loss, event,
                        now, rules, pulled, height, left, right, stop,
                    )  # fmt: skip
                    if stop[0] != 0:
                        return
                    if how == skip.CROSSED:
                        loss, t, misses = loss_after, t_after, 0
                        continue
                    skip.take_back(now, then, pulled, height, left, right)
                    if how == skip.CROWDED:
                        pulled, height = skip.more_room(pulled, height, right)
                        continue
                    low = level
                    misses += 1
                    continue
                misses = 0
                if best == rival:
                    leader = np.int64(pick_tied(rng, index, best, tied_arms))
                gap, leads = gaps[leader], True
                while leads and t < end:
                    if stop[0] != 0:
                        return
                    # q: the next choice of this arm that decides the event.
                    most = end - t
                    q = most + 1.0
                    if not luck:
                        q = min(q, choices_until(loss, gap, target, most))
                        q = min(q, choices_until_hopeless(loss, gap, worst, target, most))
                    pulls = min(q - 1.0, most)
                    if q == 1.0:
                        pulls = 1.0
                        chosen = loss + gap
                        if not luck:
                            hit = chosen >= target
                            decided = hit or chosen + worst * (most - 1.0) < target
                            if decided:
                                t += 1.0
                                break
                    if n[leader] == 0.0:  # the first pull of an arm, whose index is infinite
                        n[leader] = 1.0
                        s[leader] = total(rng, leader, 1.0, *world)
                        index[leader] = s[leader] + radius(1.0, 0.0, *params)
                        leads = index[leader] > rival
                        t, loss = t + 1.0, loss + gap
                    else:
                        if right[leader] < skip.RESERVE:
                            pulled, height = skip.more_room(pulled, height, right)
                        how, t, loss = leap(
                            rng, params, world, leader, rival, t, t + pulls, loss, never,
                            now, rules, pulled, height, left, right, stop,
                        )  # fmt: skip
                        leads = how != skip.CROSSED
            rounds[path], own[path] = np.int64(t) + (1 if luck else 0), c
            begin_last_round(mixture, c, n, s, current, n_end, s_end)
            if luck:
                best, leader, rival = skip.top_two(index)
                if best == rival:
                    leader = np.int64(pick_tied(rng, index, best, tied_arms))
                n_end[leader] += 1.0
                s_end[leader] += total(rng, leader, 1.0, *world)
                hit = best_mean * float(horizon) - sum_of(s_end) >= target
            log_ratios(mixture, hit, n, s, sums, n_end, s_end, log_parts[path])

    return kernel
