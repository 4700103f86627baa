"""Paths that continue from a state, each on means of its own, compiled: what forecasts play.

    kernel(rng, params, world, first, horizon, pulls, stop,
           means, counts, begun, opened, memos, at_once, floors)

means[path]: the means of each path; the first array of `world` holds the means, and every path writes its own
there. first, counts, begun, opened, memos: the state, as in `late_kernel`; the rewards of open trials come
before the first round. at_once: how many rewards of each arm are added as one sum in place of `opened`, for a
policy whose state is sums; empty if they are not. floors: the chance with which each arm is pulled whatever
the rule chooses, added up from the first arm on; empty if there are none. `pulls` is filled in.

`continuing_kernel` plays any rule. The others play UCB as the kernels from whose parts they are made do, and
have no floors: two play every pull, with the bits of `continuing_kernel`, and two skip ahead.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from lighttail.kernels.build import BREATH, WRONG_ARM, Formula, inner, kernel_maker
from lighttail.kernels.lead import lead_path_of
from lighttail.kernels.skip import RESERVE, ROOM, SAFETY, level_path_of, top_two
from lighttail.kernels.stepping import at_once as added_at_once
from lighttail.kernels.stepping import fixed_path_of, moving_path_of, pull_by_pull, settle, tree_size
from lighttail.random.streams import uniform
from lighttail.rules import Rule


@kernel_maker
def continuing_kernel(rule: Rule, shock: Formula, reward: Formula, total_of: Formula | None) -> Any:
    """Any rule, pull by pull. total_of: draws the sum of many rewards; None if the noise has no such
    formula."""
    choose, learn, notes, memo, _ = rule
    add_up = pull_by_pull(shock, reward) if total_of is None else added_at_once(total_of)

    @inner
    def hear_open(
        rng: Any, params: Any, world: Any, opened: Any, memos: Any, at_once: Any, stop: Any,
        tried: Any, heard: Any, total: Any, note: Any,
    ) -> None:  # fmt: skip
        """Tell the rewards of the open trials, one by one or as sums."""
        for k in range(at_once.size):
            total[k] = add_up(rng, k, int(at_once[k]), total[k], world, stop)
            heard[k] += at_once[k]
            if at_once[k] > 0.0:
                learn(k, 0.0, tried, heard, total, note, params)
        if at_once.size == 0:
            for i in range(opened.shape[0]):
                k = opened[i, 0]
                value = reward(shock(rng, *world), k, *world)
                for j in range(memo):
                    note[k, notes - memo + j] = memos[i, j]
                heard[k] += 1.0
                total[k] += value
                learn(k, value, tried, heard, total, note, params)

    def kernel(
        rng: Any, params: Any, world: Any, first: Any, horizon: Any, pulls: Any, stop: Any,
        means: Any, state: Any, begun: Any, opened: Any, memos: Any, at_once: Any, floors: Any,
    ) -> None:  # fmt: skip
        arms = pulls.shape[1]
        counts, heard = np.empty(arms), np.empty(arms)
        total, note = np.empty(arms), np.empty((arms, notes))
        breath = 0
        for path in range(pulls.shape[0]):
            for k in range(arms):
                world[0][k] = means[path, k]
                counts[k], heard[k], total[k] = state[0, k], state[1, k], state[2, k]
                for j in range(notes):
                    note[k, j] = begun[k, j]
            hear_open(rng, params, world, opened, memos, at_once, stop, counts, heard, total, note)
            leader, n, s = np.uint64(0), counts[0], total[0]
            for t in range(first + 1, horizon + 1):
                z = shock(rng, *world)
                arm = choose(rng, float(t), counts, counts, total, note, params)
                if arm < 0 or arm >= arms:
                    stop[0] = WRONG_ARM
                    return
                if floors.size > 0:
                    mark = uniform(rng)
                    for k in range(arms):
                        if mark < floors[k]:
                            arm = k
                            break
                if np.uint64(arm) != leader:
                    leader = np.uint64(arm)
                    n, s = counts[leader], total[leader]
                value = reward(z, leader, *world)
                n += 1.0
                s += value
                counts[leader] = n
                total[leader] = s
                learn(leader, value, counts, counts, total, note, params)
                breath += 1
                if breath == BREATH:
                    breath = 0
                    if stop[0] != 0:
                        return
            for k in range(arms):
                pulls[path, k] = int(counts[k])

    return kernel


@cache
def opening_of(shock: Formula, reward: Formula, total_of: Formula | None) -> Any:
    """The function that adds the rewards of the open trials to the sums, one by one or at once."""
    add_up = pull_by_pull(shock, reward) if total_of is None else added_at_once(total_of)

    @inner
    def add_open(rng: Any, world: Any, opened: Any, at_once: Any, sums: Any, stop: Any) -> None:
        for k in range(at_once.size):
            sums[k] = add_up(rng, k, int(at_once[k]), sums[k], world, stop)
        if at_once.size == 0:
            for i in range(opened.shape[0]):
                sums[opened[i, 0]] += reward(shock(rng, *world), opened[i, 0], *world)

    return add_open


@kernel_maker
def continuing_fixed_kernel(
    radius: Formula, shock: Formula, reward: Formula, total_of: Formula | None
) -> Any:
    """`fixed_index_kernel` from a state."""
    play, add_open = fixed_path_of(radius, shock, reward), opening_of(shock, reward, total_of)

    def kernel(
        rng: Any, params: Any, world: Any, first: Any, horizon: Any, pulls: Any, stop: Any,
        means: Any, state: Any, begun: Any, opened: Any, memos: Any, at_once: Any, floors: Any,
    ) -> None:  # fmt: skip
        arms = pulls.shape[1]
        size = tree_size(arms)
        value, winner = np.full(size + size, -math.inf), np.zeros(size + size)
        sums, counts = np.empty(arms), np.empty(arms)
        tied_arms = np.empty(arms, np.int64)
        for path in range(pulls.shape[0]):
            for arm in range(arms):
                world[0][arm], counts[arm], sums[arm] = means[path, arm], state[0, arm], state[2, arm]
            add_open(rng, world, opened, at_once, sums, stop)
            for arm in range(arms):
                n = counts[arm]
                index = sums[arm] / n + radius(n, 0.0, *params) if n > 0.0 else math.inf
                leaf = size + np.uint64(arm)
                winner[leaf] = float(arm)
                settle(value, winner, leaf, index, float(arm))
            play(rng, params, world, first, horizon, size, value, winner, sums, counts, tied_arms, stop)
            if stop[0] != 0:
                return
            for arm in range(arms):
                pulls[path, arm] = int(counts[arm])

    return kernel


@kernel_maker
def continuing_moving_kernel(
    radius: Formula, clock: Formula, shock: Formula, reward: Formula, total_of: Formula | None
) -> Any:
    """`moving_index_kernel` from a state."""
    play, add_open = moving_path_of(radius, clock, shock, reward), opening_of(shock, reward, total_of)

    def kernel(
        rng: Any, params: Any, world: Any, first: Any, horizon: Any, pulls: Any, stop: Any,
        means: Any, state: Any, begun: Any, opened: Any, memos: Any, at_once: Any, floors: Any,
    ) -> None:  # fmt: skip
        arms = pulls.shape[1]
        even = arms + arms % 2
        index, mean = np.full(even, -math.inf), np.full(even, -math.inf)
        counts, sums = np.ones(even), np.empty(arms)
        tied_arms = np.empty(arms, np.int64)
        clocks = np.empty(max(1, min(horizon - first, BREATH)))
        time = clock(float(first + 1), *params)
        for path in range(pulls.shape[0]):
            for arm in range(arms):
                world[0][arm], sums[arm] = means[path, arm], state[2, arm]
            add_open(rng, world, opened, at_once, sums, stop)
            top = 0
            for arm in range(arms):
                n = state[0, arm]
                pulls[path, arm] = int(n)
                counts[arm] = max(1.0, n)  # so that the radius of an arm that was never pulled is finite
                mean[arm] = sums[arm] / n if n > 0.0 else math.inf
                index[arm] = mean[arm] + radius(counts[arm], time, *params)
                top = arm if index[arm] > index[top] else top
            play(
                rng, params, world, first, horizon, clocks, path == 0, top,
                index, mean, counts, sums, pulls[path], tied_arms, stop,
            )  # fmt: skip
            if stop[0] != 0:
                return

    return kernel


@inner
def first_level(index: Any, aim: Any, width: Any) -> Any:
    """The level of the first leap: about that at the horizon, and below the rival of the best arm, so that a
    leap is tried before the leaders play one by one."""
    return min(aim, top_two(index)[2] - width)


@kernel_maker
def continuing_level_kernel(
    radius: Formula, bend: Formula, total: Formula, part: Formula, clear: Formula, proxy: Formula
) -> Any:
    """`level_kernel` from a state. An arm that was never pulled is pulled once at first."""
    play = level_path_of(radius, total, part, clear)

    def kernel(
        rng: Any, params: Any, world: Any, first: Any, horizon: Any, pulls: Any, stop: Any,
        means: Any, state: Any, begun: Any, opened: Any, memos: Any, at_once: Any, floors: Any,
    ) -> None:  # fmt: skip
        arms = pulls.shape[1]
        end = float(horizon)
        now, then = np.empty((3, arms)), np.empty((3, arms))
        counts, sums, index = now[0], now[1], now[2]
        left, right = np.zeros(arms, np.int64), np.empty(arms, np.int64)
        tied_arms = np.empty(arms, np.int64)
        place, height = np.empty((arms, ROOM)), np.empty((arms, ROOM))
        for path in range(pulls.shape[0]):
            used = float(first)
            for arm in range(arms):
                world[0][arm] = means[path, arm]
            sigma = proxy(*world)
            rules = (SAFETY + math.log(end), sigma, float(math.floor(min(bend(*params), end))))
            width = sigma / math.sqrt(end)
            for arm in range(arms):
                right[arm] = place.shape[1]
                counts[arm], sums[arm] = state[0, arm], state[2, arm]
                if at_once.size > 0 and at_once[arm] > 0.0:
                    sums[arm] += total(rng, arm, at_once[arm], *world)
                if counts[arm] == 0.0:
                    counts[arm], sums[arm] = 1.0, total(rng, arm, 1.0, *world)
                    used += 1.0
                index[arm] = sums[arm] / counts[arm] + radius(counts[arm], 0.0, *params)
            aim = top_two(world[0])[0] + radius(end, 0.0, *params)  # about the level at the horizon
            place, height = play(
                rng, params, world, used, end, first_level(index, aim, width), width, rules,
                now, then, place, height, left, right, tied_arms, stop,
            )  # fmt: skip
            if stop[0] != 0:
                return
            for arm in range(arms):
                pulls[path, arm] = int(counts[arm])

    return kernel


@kernel_maker
def continuing_lead_kernel(
    radius: Formula, clock: Formula, bend: Formula,
    total: Formula, part: Formula, clear: Formula, proxy: Formula,
) -> Any:  # fmt: skip
    """`lead_kernel` from a state. An arm that was never pulled is pulled once at first."""
    play = lead_path_of(radius, clock, total, part, clear)

    def kernel(
        rng: Any, params: Any, world: Any, first: Any, horizon: Any, pulls: Any, stop: Any,
        means: Any, state: Any, begun: Any, opened: Any, memos: Any, at_once: Any, floors: Any,
    ) -> None:  # fmt: skip
        arms = pulls.shape[1]
        end = float(horizon)
        limit = SAFETY + math.log(end)
        kink = float(math.floor(min(bend(*params), end)))
        counts, sums, index = np.empty(arms), np.empty(arms), np.empty(arms)
        right, tied_arms = np.empty(arms, np.int64), np.empty(arms, np.int64)
        place, height = np.empty((arms, RESERVE)), np.empty((arms, RESERVE))
        for path in range(pulls.shape[0]):
            used = float(first)
            for arm in range(arms):
                world[0][arm] = means[path, arm]
            for arm in range(arms):
                right[arm] = RESERVE
                counts[arm], sums[arm] = state[0, arm], state[2, arm]
                if at_once.size > 0 and at_once[arm] > 0.0:
                    sums[arm] += total(rng, arm, at_once[arm], *world)
                if counts[arm] == 0.0:
                    counts[arm], sums[arm] = 1.0, total(rng, arm, 1.0, *world)
                    used += 1.0
            limits = (limit, proxy(*world) * math.sqrt(limit), kink)
            play(
                rng, params, world, used, end, limits, counts, sums,
                index, place, height, right, tied_arms, stop,
            )  # fmt: skip
            if stop[0] != 0:
                return
            for arm in range(arms):
                pulls[path, arm] = int(counts[arm])

    return kernel
