"""UCB, successive elimination and Thompson sampling, pull by pull: faster than the generic kernel, same bits.

The kernels of UCB hold the leader in registers and know its rival, the best of the other arms. A pull changes
the leader alone, so the leader stays until its index meets the index of the rival; only then is the next
leader looked for. Every comparison is a select and not a branch, because the processor cannot predict which
arm is best. The leader and its rivals are kept as float64, because selects of floats stay selects.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lighttail.kernels.beginning import beginning_of, pull_by_pull, summed
from lighttail.kernels.build import BREATH, Formula, close_path, inlined, inner, kernel_maker, sum_of
from lighttail.random.streams import standard_normal, uniform

ONE = np.uint64(1)


@inner
def pick_tied(rng: Any, index: Any, best: Any, tied_arms: Any) -> Any:
    """One of the arms whose index is `best`, drawn uniformly. tied_arms: room for a list of these arms.

    Every arm is written to the end of the list, but only a tied arm makes the list longer: no branch is
    needed.
    """
    tied = 0
    for arm in range(index.size):
        tied_arms[tied] = arm
        tied += index[arm] == best
    return np.uint64(tied_arms[int(uniform(rng) * tied)])


@inner
def settle(value: Any, winner: Any, leaf: Any, index: Any, arm: Any) -> Any:
    """Write an arm's new index into the tournament tree and replay its matches up to the root."""
    node = leaf
    value[node] = index
    while node > ONE:
        other, other_arm = value[node ^ ONE], winner[node ^ ONE]
        lost = other > index
        arm = other_arm if lost else arm
        index = other if lost else index
        node >>= ONE
        value[node], winner[node] = index, arm


@inner
def rival_of(value: Any, winner: Any, leaf: Any) -> Any:
    """The best of all arms but the one at `leaf`: the best that this arm met on its way to the root."""
    node = leaf
    best, arm = value[node ^ ONE], winner[node ^ ONE]
    node >>= ONE
    while node > ONE:
        other, other_arm = value[node ^ ONE], winner[node ^ ONE]
        better = other > best
        arm = other_arm if better else arm
        best = other if better else best
        node >>= ONE
    return best, np.uint64(arm)


@kernel_maker
def fixed_index_kernel(
    radius: Formula, shock: Formula, reward: Formula, onward: bool = False, total_of: Formula | None = None
) -> Any:
    """UCB with a radius that does not change with time: the indices of the other arms stand still."""
    begin = beginning_of(onward, shock, reward, total_of)

    def kernel(
        rng: Any, params: Any, world: Any, horizon: Any, rewards: Any, pulls: Any, stop: Any,
        first: Any = 0, start: Any = (),
    ) -> None:  # fmt: skip
        arms = pulls.shape[1]
        size = np.uint64(1)  # the leaves of the tree: the least power of 2 that is not below the arms
        while size < arms:
            size += size
        value, winner = np.full(size + size, -math.inf), np.zeros(size + size)
        sums, counts, no_note = np.empty(arms), np.empty(arms), np.empty((arms, 0))
        tied_arms = np.empty(arms, np.int64)
        for path in range(rewards.size):
            begin(rng, params, world, path, start, counts, sums, no_note, stop)
            for arm in range(arms):
                n = counts[arm]
                index = sums[arm] / n + radius(n, 0.0, *params) if n > 0.0 else math.inf
                leaf = size + np.uint64(arm)
                winner[leaf] = float(arm)
                settle(value, winner, leaf, index, float(arm))
            t = first
            pause = min(horizon, t + BREATH)
            z = shock(rng, *world)
            leader = np.uint64(winner[ONE])
            while t < horizon:
                leaf = size + leader
                rival, second = rival_of(value, winner, leaf)
                if rival == value[leaf]:
                    leader = pick_tied(rng, value[size : size + np.uint64(arms)], rival, tied_arms)
                    leaf = size + leader
                    rival, second = rival_of(value, winner, leaf)
                total, n = sums[leader], counts[leader]
                while True:
                    total += reward(z, leader, *world)
                    n += 1.0
                    t += 1
                    index = total / n + radius(n, 0.0, *params)
                    if t == pause:
                        if stop[0] != 0 or t == horizon:
                            break
                        pause = min(horizon, t + BREATH)
                    z = shock(rng, *world)
                    if index <= rival:
                        break
                sums[leader], counts[leader] = total, n
                if stop[0] != 0:
                    return
                settle(value, winner, leaf, index, float(leader))
                leader = second
            close_path(path, sums, counts, rewards, pulls)

    return kernel


@inner
def best_of(index: Any) -> Any:
    """The highest of an even number of indices, in two interleaved halves."""
    best, arm = -math.inf, 0.0
    odd_best, odd_arm = -math.inf, 1.0
    for k in range(0, index.size, 2):
        even, odd = index[k], index[k + 1]
        arm = float(k) if even > best else arm
        best = even if even > best else best
        odd_arm = float(k + 1) if odd > odd_best else odd_arm
        odd_best = odd if odd > odd_best else odd_best
    arm = odd_arm if odd_best > best else arm
    best = odd_best if odd_best > best else best
    return best, np.uint64(arm)


@kernel_maker
def moving_index_kernel(
    radius: Formula, clock: Formula, shock: Formula, reward: Formula,
    onward: bool = False, total_of: Formula | None = None,
) -> Any:  # fmt: skip
    """UCB with a radius that changes with time: every index is new in every round.

    The rivals' indices in the next round do not depend on the reward of this round, so they are computed
    while the reward is drawn.
    """
    begin = beginning_of(onward, shock, reward, total_of)

    @inlined
    def play(
        rng: Any, params: Any, world: Any, first: Any, horizon: Any, clocks: Any, fresh: Any, top: Any,
        index: Any, mean: Any, counts: Any, sums: Any, pulls: Any, tied_arms: Any, stop: Any,
    ) -> None:  # fmt: skip
        """Play from round `first` to the horizon. clocks: room for the clock of the rounds that come next;
        fresh: whether these must be computed although they fit into the room. top: an arm whose index is the
        highest. index, mean, counts, sums, pulls: of the arms; the mean and the index of an arm that was
        never pulled are infinite, and its count is 1, so that its radius is finite."""
        arms, window = sums.size, clocks.size
        leader = second = np.uint64(top)
        own = rival = index[leader]
        total = n = 0.0
        for t in range(first, horizon, window):
            if stop[0] != 0:
                return
            rounds = min(window, horizon - t)
            if fresh or horizon - first > window:
                for i in range(rounds):  # no round comes after the horizon
                    clocks[i] = clock(float(min(t + i + 2, horizon)), *params)
            for i in range(rounds):
                z = shock(rng, *world)
                if own <= rival:
                    if n > 0.0:
                        mean[leader], sums[leader] = total / n, total
                        counts[leader], pulls[leader] = n, int(n)
                    index[leader] = own
                    tied = 0
                    for arm in range(arms):
                        tied += index[arm] == rival
                    leader = pick_tied(rng, index[:arms], rival, tied_arms) if tied > 1 else second
                    total = sums[leader]
                    n = float(pulls[leader])
                time = clocks[i]  # the clock of the next round
                for arm in range(arms):
                    index[arm] = mean[arm] + radius(counts[arm], time, *params)
                index[leader] = -math.inf
                rival, second = best_of(index)
                total += reward(z, leader, *world)
                n += 1.0
                own = total / n + radius(n, time, *params)
        if horizon > first:
            sums[leader], pulls[leader] = total, int(n)

    def kernel(
        rng: Any, params: Any, world: Any, horizon: Any, rewards: Any, pulls: Any, stop: Any,
        first: Any = 0, start: Any = (),
    ) -> None:  # fmt: skip
        arms = pulls.shape[1]
        even = arms + arms % 2
        index, mean, counts = np.full(even, -math.inf), np.full(even, -math.inf), np.ones(even)
        tried, sums, no_note = np.empty(arms), np.empty(arms), np.empty((arms, 0))
        tied_arms = np.empty(arms, np.int64)
        clocks = np.empty(max(1, min(horizon - first, BREATH)))
        now = clock(float(min(first + 1, horizon)), *params)
        for path in range(rewards.size):
            begin(rng, params, world, path, start, tried, sums, no_note, stop)
            top = 0
            for arm in range(arms):
                n = tried[arm]
                pulls[path, arm] = int(n)
                counts[arm] = max(1.0, n)
                mean[arm] = sums[arm] / n if n > 0.0 else math.inf
                index[arm] = mean[arm] + radius(n, now, *params) if n > 0.0 else math.inf
                top = arm if index[arm] > index[top] else top
            play(
                rng, params, world, first, horizon, clocks, path == 0, top,
                index, mean, counts, sums, pulls[path], tied_arms, stop,
            )  # fmt: skip
            if stop[0] != 0:
                return
            rewards[path] = sum_of(sums)

    return kernel


@kernel_maker
def elimination_kernel(
    radius: Formula, clock: Formula, shock: Formula, reward: Formula, total_of: Formula | None = None
) -> Any:
    """Successive elimination: phases over the active arms until one arm is left or the horizon is reached."""
    finish = pull_by_pull(shock, reward) if total_of is None else summed(total_of)

    def kernel(rng: Any, params: Any, world: Any, horizon: Any, rewards: Any, pulls: Any, stop: Any) -> None:
        arms = pulls.shape[1]
        active, sums = np.empty(arms, np.int64), np.empty(arms)
        for path in range(rewards.size):
            for arm in range(arms):
                active[arm] = arm
                sums[arm] = 0.0
                pulls[path, arm] = 0
            left, t, phase = arms, 0, 0
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
                among, left = left, 0
                for i in range(among):
                    arm = active[i]
                    if not best - width > sums[arm] / n + width:
                        active[left] = arm
                        left += 1
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


@kernel_maker
def posterior_kernel(centre: Formula, spread: Formula, shock: Formula, reward: Formula) -> Any:
    """Thompson sampling: the arm with the highest of one normal draw per arm.

    centre, spread: the formulas of the posterior mean and of the posterior standard deviation.
    """

    def kernel(rng: Any, params: Any, world: Any, horizon: Any, rewards: Any, pulls: Any, stop: Any) -> None:
        arms = pulls.shape[1]
        mean, sd, sums, counts = np.empty(arms), np.empty(arms), np.empty(arms), np.empty(arms)
        for path in range(rewards.size):
            for arm in range(arms):
                sums[arm] = counts[arm] = 0.0
                mean[arm] = centre(0.0, 0.0, *params)
                sd[arm] = spread(0.0, *params)
            leader = np.uint64(0)
            total = n = 0.0
            for t in range(1, horizon + 1):
                z = shock(rng, *world)
                best, chosen = -math.inf, 0.0
                for arm in range(arms):
                    draw = mean[arm] + sd[arm] * standard_normal(rng)
                    chosen = float(arm) if draw > best else chosen
                    best = draw if draw > best else best
                # This is a branch, so that the processor runs ahead on the guess that the leader stays.
                if np.uint64(chosen) != leader:
                    sums[leader], counts[leader] = total, n
                    leader = np.uint64(chosen)
                    total, n = sums[leader], counts[leader]
                total += reward(z, leader, *world)
                n += 1.0
                mean[leader] = centre(n, total, *params)
                sd[leader] = spread(n, *params)
                if t % BREATH == 0 and stop[0] != 0:
                    return
            if stop[0] != 0:
                return
            sums[leader], counts[leader] = total, n
            close_path(path, sums, counts, rewards, pulls)

    return kernel
