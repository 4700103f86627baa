"""The rules of play of some policies on a device, unrolled: one thread a path.

`path_kernel` makes the kernel

    kernel[blocks, threads](seed, first, params, world, horizon, rewards, pulls, stop)

of a rule: `seed` is `seed_words(seed)`, `first` the number of the first path, `params` and `world` are what
the kernels of the CPU take, in this precision; `rewards` and `pulls` (a row an arm) are filled in; `stop` is
for rules that may choose an arm that there is not. A rule is made by rule(arms, real, draws, formulas), draws
being `standard_normal` and `uniform`; it plays one path and returns its reward. The rules, their order of
draws and their ties are those of `lighttail.gpu.generic`, which plays any policy. What a thread knows of the
arms stays in registers: the arms are a constant of the kernel, every loop over them is unrolled, and which
arm is meant is a select and not an address.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda

from lighttail.gpu.draws import WORD

SHARED = 48 * 1024  # bytes of shared memory a block
THREADS = 128  # a block, if there is room
ONE = WORD(1)
TIED = 1 << 10
HIGHEST = 3e38  # stands for infinity, which approximate arithmetic does not know


def path_kernel(real: Any, begin: Any, play: Any) -> Any:
    """A thread plays one path from the beginning of that path's stream."""

    def kernel(
        seed: Any, first: Any, params: Any, world: Any, horizon: Any, rewards: Any, pulls: Any, stop: Any
    ) -> None:
        place = cuda.grid(1)
        if place >= rewards.size:
            return
        words, spare = cuda.local.array(5, np.uint32), cuda.local.array(1, real)
        begin(words, seed, np.uint64(first + np.uint64(place)))
        rewards[place] = play((words, spare), params, world, horizon, pulls, place)

    return kernel


def fixed_index_rule(arms: int, real: Any, draws: Any, formulas: Any) -> Any:
    """UCB with a radius that does not change with time."""
    return index_rule(arms, real, False, draws, formulas)


def moving_index_rule(arms: int, real: Any, draws: Any, formulas: Any) -> Any:
    """UCB with a radius that changes with time."""
    return index_rule(arms, real, True, draws, formulas)


def index_rule(arms: int, real: Any, moving: bool, draws: Any, formulas: Any) -> Any:
    """UCB with any bonus: the argmax of mean + radius; an arm never pulled comes first."""
    radius, clock, shock, reward = formulas
    _, uniform = draws
    highest = real(HIGHEST)

    def play(rng: Any, params: Any, world: Any, horizon: Any, pulls: Any, place: Any) -> Any:
        sums = cuda.local.array(arms, real)
        counts = cuda.local.array(arms, real)
        index = cuda.local.array(arms, real)
        for arm in range(arms):
            sums[arm] = 0.0
            counts[arm] = 0.0
            index[arm] = highest
        for t in range(horizon):
            z = shock(rng, *world)
            if moving:
                time = clock(real(t + 1), *params)
                for arm in range(arms):
                    if counts[arm] > 0.0:
                        index[arm] = sums[arm] / counts[arm] + radius(counts[arm], time, *params)
            best = index[0]
            leader = np.int32(0)
            for arm in range(1, arms):
                better = index[arm] > best
                leader = np.int32(arm) if better else leader
                best = index[arm] if better else best
            tied = real(0.0)
            for arm in range(arms):
                tied += 1.0 if index[arm] == best else 0.0
            if tied > 1.0:
                skip = np.int32(uniform(rng) * tied)
                for arm in range(arms):
                    if index[arm] == best:
                        leader = np.int32(arm) if skip == 0 else leader
                        skip -= np.int32(1)
            total, n = sums[0], counts[0]
            for arm in range(1, arms):
                earned, pulled = sums[arm], counts[arm]
                total = earned if leader == arm else total
                n = pulled if leader == arm else n
            total += reward(z, leader, *world)
            n += 1.0
            if not moving:
                best = total / n + radius(n, 0.0, *params)
            for arm in range(arms):
                earned, pulled, value = sums[arm], counts[arm], index[arm]
                sums[arm] = total if leader == arm else earned
                counts[arm] = n if leader == arm else pulled
                index[arm] = best if leader == arm else value
        total = real(0.0)
        for arm in range(arms):
            total += sums[arm]
            pulls[arm, place] = np.int32(counts[arm])
        return total

    return play


def tree_threads(arms: int, real: Any) -> int:
    """Threads a block: as many as find room for their trees in shared memory."""
    size = np.dtype(real).itemsize
    each = (2 << (arms - 1).bit_length()) * (size + 2) + arms * 2 * size
    threads = THREADS
    while threads * each > SHARED:
        threads //= 2
    return threads


def tree_rule(arms: int, real: Any, draws: Any, formulas: Any) -> Any:
    """UCB with a radius that does not change with time and many arms: a tournament tree a thread.

    A pull changes one index, hence the matches between its leaf and the root alone. The nodes lie in shared
    memory, a column a thread; node 1 is the root, `size` + arm a leaf. A node's tag is the arm that won
    there, plus `TIED` if another one has the same index.
    """
    radius, _, shock, reward = formulas
    _, uniform = draws
    threads = tree_threads(arms, real)
    highest, lowest = real(HIGHEST), real(-HIGHEST)
    levels = (arms - 1).bit_length()
    size = 1 << levels
    nodes = 2 * size

    def play(rng: Any, params: Any, world: Any, horizon: Any, pulls: Any, place: Any) -> Any:
        value = cuda.shared.array((nodes, threads), real)
        tag = cuda.shared.array((nodes, threads), np.int16)
        sums = cuda.shared.array((arms, threads), real)
        counts = cuda.shared.array((arms, threads), real)
        me = WORD(cuda.threadIdx.x)
        for arm in range(size):
            value[size + arm, me] = highest if arm < arms else lowest
            tag[size + arm, me] = arm
        for arm in range(arms):
            sums[arm, me] = 0.0
            counts[arm, me] = 0.0
        for node in range(size - 1, 0, -1):
            value[node, me] = value[2 * node, me]
            tied = value[2 * node, me] == value[2 * node + 1, me]
            tag[node, me] = tag[2 * node, me] | (TIED if tied else 0)
        for _ in range(horizon):
            z = shock(rng, *world)
            leader = np.int32(tag[1, me])
            if leader >= TIED:
                best = value[1, me]
                tied = 0
                for arm in range(arms):
                    tied += value[size + arm, me] == best
                skip = np.int32(uniform(rng) * real(tied))
                for arm in range(arms):
                    if value[size + arm, me] == best:
                        leader = np.int32(arm) if skip == 0 else leader
                        skip -= np.int32(1)
            pulled = WORD(leader)  # an address without a sign needs no check
            total = sums[pulled, me] + reward(z, leader, *world)
            n = counts[pulled, me] + 1.0
            best = total / n + radius(n, 0.0, *params)
            sums[pulled, me] = total
            counts[pulled, me] = n
            mark = leader
            spot = WORD(size + leader)
            value[spot, me] = best
            for _ in range(levels):
                rival = WORD(spot ^ ONE)
                other, other_mark = value[rival, me], np.int32(tag[rival, me])
                mark = np.int32(mark | TIED) if other == best else mark
                mark = other_mark if other > best else mark
                best = max(best, other)
                spot = WORD(spot >> ONE)
                value[spot, me] = best
                tag[spot, me] = mark
        total = real(0.0)
        for arm in range(arms):
            total += sums[arm, me]
            pulls[arm, place] = np.int32(counts[arm, me])
        return total

    return play


def elimination_rule(arms: int, real: Any, draws: Any, formulas: Any) -> Any:
    """Successive elimination: phases over the active arms until one is left."""
    radius, clock, shock, reward = formulas
    lowest = real(-HIGHEST)

    def play(rng: Any, params: Any, world: Any, horizon: Any, pulls: Any, place: Any) -> Any:
        sums = cuda.local.array(arms, real)
        counts = cuda.local.array(arms, real)
        active = cuda.local.array(arms, np.bool_)
        for arm in range(arms):
            sums[arm] = 0.0
            counts[arm] = 0.0
            active[arm] = True
        left = arms
        t = np.int32(0)
        n = real(0.0)
        while left > 1 and t < horizon:
            n += 1.0
            for arm in range(arms):
                if active[arm] and t < horizon:
                    sums[arm] += reward(shock(rng, *world), arm, *world)
                    counts[arm] = n
                    t += np.int32(1)
            width = radius(n, clock(real(t), *params), *params)
            best = lowest
            for arm in range(arms):
                if active[arm]:
                    best = max(best, sums[arm] / n)
            for arm in range(arms):
                if active[arm] and best - width > sums[arm] / n + width:
                    active[arm] = False
                    left -= 1
        last = np.int32(0)
        for arm in range(arms - 1, -1, -1):
            if active[arm]:
                last = np.int32(arm)
        total = real(0.0)
        for arm in range(arms):
            earned = sums[arm]
            total = earned if last == arm else total
        rest = horizon - t
        for _ in range(rest):
            total += reward(shock(rng, *world), last, *world)
        for arm in range(arms):
            earned = sums[arm]
            sums[arm] = total if last == arm else earned
        total = real(0.0)
        for arm in range(arms):
            total += sums[arm]
            pulls[arm, place] = np.int32(counts[arm]) + (rest if last == arm else np.int32(0))
        return total

    return play


def posterior_rule(arms: int, real: Any, draws: Any, formulas: Any) -> Any:
    """Thompson sampling: the argmax of a normal draw an arm."""
    centre, spread, shock, reward = formulas
    normal, _ = draws
    lowest = real(-HIGHEST)

    def play(rng: Any, params: Any, world: Any, horizon: Any, pulls: Any, place: Any) -> Any:
        sums = cuda.local.array(arms, real)
        counts = cuda.local.array(arms, real)
        mean = cuda.local.array(arms, real)
        sd = cuda.local.array(arms, real)
        for arm in range(arms):
            sums[arm] = 0.0
            counts[arm] = 0.0
            mean[arm] = centre(0.0, 0.0, *params)
            sd[arm] = spread(0.0, *params)
        for _ in range(horizon):
            z = shock(rng, *world)
            best = lowest
            leader = np.int32(0)
            total = n = real(0.0)
            for arm in range(arms):
                draw = mean[arm] + sd[arm] * normal(rng)
                earned, pulled = sums[arm], counts[arm]
                better = draw > best
                best = draw if better else best
                leader = np.int32(arm) if better else leader
                total = earned if better else total
                n = pulled if better else n
            total += reward(z, leader, *world)
            n += 1.0
            new_mean, new_sd = centre(n, total, *params), spread(n, *params)
            for arm in range(arms):
                earned, pulled, old_mean, old_sd = sums[arm], counts[arm], mean[arm], sd[arm]
                sums[arm] = total if leader == arm else earned
                counts[arm] = n if leader == arm else pulled
                mean[arm] = new_mean if leader == arm else old_mean
                sd[arm] = new_sd if leader == arm else old_sd
        total = real(0.0)
        for arm in range(arms):
            total += sums[arm]
            pulls[arm, place] = np.int32(counts[arm])
        return total

    return play


def weights_rule(arms: int, real: Any, draws: Any, formulas: Any) -> Any:
    """EXP3-IX: an arm drawn by its exponential weight."""
    weight, gain, shock, reward = formulas
    _, uniform = draws

    def play(rng: Any, params: Any, world: Any, horizon: Any, pulls: Any, place: Any) -> Any:
        scores = cuda.local.array(arms, real)
        shares = cuda.local.array(arms, real)
        sums = cuda.local.array(arms, real)
        counts = cuda.local.array(arms, real)
        for arm in range(arms):
            scores[arm] = 0.0
            sums[arm] = 0.0
            counts[arm] = 0.0
        for _ in range(horizon):
            z = shock(rng, *world)
            best = scores[0]
            for arm in range(1, arms):
                best = max(best, scores[arm])
            mass = real(0.0)
            for arm in range(arms):
                shares[arm] = weight(scores[arm], best, *params)
                mass += shares[arm]
            mark = uniform(rng) * mass
            chosen = np.int32(0)
            share = below = shares[0]
            for arm in range(1, arms):
                further = mark >= below
                chosen = np.int32(arm) if further else chosen
                share = shares[arm] if further else share
                below += shares[arm]
            value = reward(z, chosen, *world)
            won = gain(value, share / mass, *params)
            for arm in range(arms):
                mine = real(chosen == arm)
                scores[arm] += mine * won
                sums[arm] += mine * value
                counts[arm] += mine
        total = real(0.0)
        for arm in range(arms):
            total += sums[arm]
            pulls[arm, place] = np.int32(counts[arm])
        return total

    return play
