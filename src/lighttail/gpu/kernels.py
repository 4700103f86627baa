"""The paths of some policies on a device, unrolled: one thread per path.

A maker takes (arms, real, draws, formulas), where draws are `standard_normal` and `uniform`, and returns
`play`, which `lighttail.gpu.generic.path_kernel` turns into a kernel. The order of draws and the ties are
those of `lighttail.gpu.generic`, which plays any policy. What a thread knows about the arms stays in
registers: the number of arms is a constant of the kernel, every loop over arms is unrolled, and an arm is
found by a select and not by an address (`selects`).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numba import cuda

from lighttail.gpu.generic import closing

SHARED = 48 * 1024  # bytes of shared memory per block
THREADS = 128  # per block, if there is room
ONE = np.uint32(1)
TIED = 1 << 10
HIGHEST = 3e38  # stands for infinity, which approximate arithmetic does not have


def selects(arms: int) -> tuple[Any, Any]:
    """get(values, arm) and put(values, arm, new), by selects, where each value belongs to one arm."""

    def get(values: Any, arm: Any) -> Any:
        found = values[0]
        for k in range(1, arms):
            value = values[k]
            found = value if arm == k else found
        return found

    def put(values: Any, arm: Any, new: Any) -> None:
        for k in range(arms):
            value = values[k]
            values[k] = new if arm == k else value

    return get, put


def index_paths(arms: int, real: Any, draws: Any, formulas: Any, moving: bool = False) -> Any:
    """UCB with any bonus: the argmax of mean + radius; an arm that was never pulled comes first."""
    radius, clock, shock, reward = formulas
    _, uniform = draws
    get, put = selects(arms)
    close = closing(arms, real)
    highest = real(HIGHEST)

    def play(rng: Any, params: Any, world: Any, horizon: Any, pulls: Any, place: Any, more: Any) -> Any:
        sums, counts = cuda.local.array(arms, real), cuda.local.array(arms, real)
        index = cuda.local.array(arms, real)
        for arm in range(arms):
            sums[arm] = counts[arm] = 0.0
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
            total = get(sums, leader) + reward(z, leader, *world)
            n = get(counts, leader) + 1.0
            put(sums, leader, total)
            put(counts, leader, n)
            if not moving:
                put(index, leader, total / n + radius(n, 0.0, *params))
        return close(sums, counts, pulls, place)

    return play


moving_index_paths = partial(index_paths, moving=True)  # one object, by which kernels are kept


def tree_threads(arms: int, real: Any) -> int:
    """Threads per block: as many as have room for their trees in shared memory."""
    bytes_ = np.dtype(real).itemsize
    each = (2 << (arms - 1).bit_length()) * (bytes_ + 2) + arms * 2 * bytes_
    threads = THREADS
    while threads * each > SHARED:
        threads //= 2
    return threads


def tree_paths(arms: int, real: Any, draws: Any, formulas: Any) -> Any:
    """UCB with a radius that does not change with time and many arms: a tournament tree per thread.

    A pull changes one index, and so only the matches between its leaf and the root. The nodes lie in shared
    memory, one column per thread; node 1 is the root, and node `size` + arm is a leaf. The tag of a node is
    the arm that won there, plus `TIED` if another arm has the same index.
    """
    radius, _, shock, reward = formulas
    _, uniform = draws
    threads, close = tree_threads(arms, real), closing(arms, real)
    highest, lowest = real(HIGHEST), real(-HIGHEST)
    levels = (arms - 1).bit_length()
    size = 1 << levels
    nodes = 2 * size

    def play(rng: Any, params: Any, world: Any, horizon: Any, pulls: Any, place: Any, more: Any) -> Any:
        value = cuda.shared.array((nodes, threads), real)
        tag = cuda.shared.array((nodes, threads), np.int16)
        # The simulator of a device tells shared arrays apart by their lines.
        sums = cuda.shared.array((arms, threads), real)
        counts = cuda.shared.array((arms, threads), real)
        me = np.uint32(cuda.threadIdx.x)
        for arm in range(size):
            value[size + arm, me] = highest if arm < arms else lowest
            tag[size + arm, me] = arm
        for arm in range(arms):
            sums[arm, me] = counts[arm, me] = 0.0
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
            pulled = np.uint32(leader)  # an address without a sign needs no check
            total = sums[pulled, me] + reward(z, leader, *world)
            n = counts[pulled, me] + 1.0
            best = total / n + radius(n, 0.0, *params)
            sums[pulled, me] = total
            counts[pulled, me] = n
            mark = leader
            spot = np.uint32(size + leader)
            value[spot, me] = best
            for _ in range(levels):
                rival = np.uint32(spot ^ ONE)
                other, other_mark = value[rival, me], np.int32(tag[rival, me])
                mark = np.int32(mark | TIED) if other == best else mark
                mark = other_mark if other > best else mark
                best = max(best, other)
                spot = np.uint32(spot >> ONE)
                value[spot, me] = best
                tag[spot, me] = mark
        return close(sums[:, me], counts[:, me], pulls, place)

    return play


def elimination_paths(arms: int, real: Any, draws: Any, formulas: Any) -> Any:
    """Successive elimination: phases over the active arms until one is left."""
    radius, clock, shock, reward = formulas
    get, put = selects(arms)
    close = closing(arms, real)
    lowest = real(-HIGHEST)

    def play(rng: Any, params: Any, world: Any, horizon: Any, pulls: Any, place: Any, more: Any) -> Any:
        sums, counts = cuda.local.array(arms, real), cuda.local.array(arms, real)
        active = cuda.local.array(arms, np.bool_)
        for arm in range(arms):
            sums[arm] = counts[arm] = 0.0
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
        total = get(sums, last)
        rest = horizon - t
        for _ in range(rest):
            total += reward(shock(rng, *world), last, *world)
        put(sums, last, total)
        put(counts, last, get(counts, last) + real(rest))
        return close(sums, counts, pulls, place)

    return play


def posterior_paths(arms: int, real: Any, draws: Any, formulas: Any) -> Any:
    """Thompson sampling: the argmax of a normal draw per arm."""
    centre, spread, shock, reward = formulas
    normal, _ = draws
    get, put = selects(arms)
    close = closing(arms, real)
    lowest = real(-HIGHEST)

    def play(rng: Any, params: Any, world: Any, horizon: Any, pulls: Any, place: Any, more: Any) -> Any:
        sums, counts = cuda.local.array(arms, real), cuda.local.array(arms, real)
        mean, sd = cuda.local.array(arms, real), cuda.local.array(arms, real)
        for arm in range(arms):
            sums[arm] = counts[arm] = 0.0
            mean[arm] = centre(0.0, 0.0, *params)
            sd[arm] = spread(0.0, *params)
        for _ in range(horizon):
            z = shock(rng, *world)
            best = lowest
            leader = np.int32(0)
            for arm in range(arms):
                draw = mean[arm] + sd[arm] * normal(rng)
                better = draw > best
                best = draw if better else best
                leader = np.int32(arm) if better else leader
            total = get(sums, leader) + reward(z, leader, *world)
            n = get(counts, leader) + 1.0
            put(sums, leader, total)
            put(counts, leader, n)
            put(mean, leader, centre(n, total, *params))
            put(sd, leader, spread(n, *params))
        return close(sums, counts, pulls, place)

    return play


def weights_paths(arms: int, real: Any, draws: Any, formulas: Any) -> Any:
    """EXP3-IX: an arm drawn by its exponential weight."""
    weight, gain, shock, reward = formulas
    _, uniform = draws
    close = closing(arms, real)

    def play(rng: Any, params: Any, world: Any, horizon: Any, pulls: Any, place: Any, more: Any) -> Any:
        scores, shares = cuda.local.array(arms, real), cuda.local.array(arms, real)
        sums, counts = cuda.local.array(arms, real), cuda.local.array(arms, real)
        for arm in range(arms):
            scores[arm] = sums[arm] = counts[arm] = 0.0
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
        return close(sums, counts, pulls, place)

    return play
