"""One round of every path at once, for Bernoulli rewards: the chances of all states, carried forward.

A state is the arms' pulls n and their sums of rewards s. The states with the same pulls form a block, an
array with one axis per arm, s[k] = 0..n[k]; the last arm's axis is the fastest. A kernel computes the blocks
of a layer from the blocks of the layer before, which has t pulls in all:

    kernel(params, t, chances, blocks, place, onto, sure, most, mass, following) -> mass on the event

blocks: the pulls of each block, one row per block. place: where each block begins in `mass`. onto[b, k]:
where the block after a pull of arm k begins in `following`; SURE if the event is then certain, and NEVER if
it has become impossible. States whose rewards sum to `sure` or less are on the event; states above `most` are
not. chances: the arms' means. Every term is positive, so that rounding is the only error of even the
smallest chance.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lighttail.kernels.build import Formula, compiler, inner, kernel_maker, largest

SURE, NEVER = -1, -2  # in place of the place of a block in which the event is decided
STEP = 0.75  # distance of the grid's points, in standard deviations of the product of all posterior densities
BELOW, ABOVE = 8.5, 10.5  # standard deviations to which the grid follows an arm's draw
NOTHING = 38.0  # standard deviations beyond which the normal distribution function is 0
ROOT = math.sqrt(2.0)


@inner
def strides_of(n: Any, strides: Any) -> Any:
    """Fill in the states between two neighbouring sums of each arm; returns the number of rows."""
    states = 1
    for k in range(n.size - 1, -1, -1):
        strides[k] = states
        states *= n[k] + 1
    return states // (n[n.size - 1] + 1)


@inner
def next_row(n: Any, s: Any) -> None:
    """Change the sums of all arms but the last to the next ones, as an odometer counts."""
    k = n.size - 2
    while k >= 0:
        s[k] += 1
        if s[k] <= n[k]:
            return
        s[k] = 0
        k -= 1


@inner
def beyond(place: Any, arm: Any, n: Any, strides: Any) -> Any:
    """The place of a row in the block after a pull of the arm, where the arm's axis is longer by one."""
    return place + place // ((n[arm] + 1) * strides[arm]) * strides[arm]


@inner
def undecided(width: Any, partial: Any, sure: Any, most: Any) -> Any:
    """The states of a row in which the event is not decided: the first one, and the one after the last."""
    first = max(0, min(width, sure - partial + 1))
    return first, max(first, min(width, most - partial + 1))


@inner
def give(
    arm: Any, share: Any, start: Any, first: Any, until: Any, home: Any, n: Any, strides: Any, chances: Any,
    place: Any, mass: Any, following: Any,
) -> Any:  # fmt: skip
    """Pull the arm with chance `share` in the states first..until - 1 of a row; returns the event's mass.

    start, home: where the row begins in `mass` and within its block.
    """
    if place < 0:
        total = 0.0
        if place == SURE:
            for i in range(first, until):
                total += mass[start + i]
        return share * total
    lose, win = share * (1.0 - chances[arm]), share * chances[arm]
    to = place + beyond(home, arm, n, strides)
    other = to + strides[arm]
    for i in range(first, until):
        following[to + i] += lose * mass[start + i]
    for i in range(first, until):
        following[other + i] += win * mass[start + i]
    return 0.0


@kernel_maker
def index_programme(radius: Formula, clock: Formula) -> Any:
    """UCB: an arm that was never pulled comes first, then the highest index; ties are broken at random."""

    def kernel(
        params: Any, t: Any, chances: Any, blocks: Any, place: Any, onto: Any, sure: Any, most: Any,
        mass: Any, following: Any,
    ) -> Any:  # fmt: skip
        arms = blocks.shape[1]
        last = arms - 1
        time = clock(float(t + 1), *params)
        index = np.empty((t + 1, t + 1))  # by the number of pulls and the sum
        index[0, 0] = math.inf
        for pulls in range(1, t + 1):
            bonus = radius(float(pulls), time, *params)
            for total in range(pulls + 1):
                index[pulls, total] = float(total) / float(pulls) + bonus
        strides, s, ahead = np.empty(arms, np.int64), np.empty(arms, np.int64), np.empty(arms, np.bool_)
        decided = 0.0
        for b in range(blocks.shape[0]):
            n = blocks[b]
            rows = strides_of(n, strides)
            width = n[last] + 1
            line = index[n[last]]
            s[:] = 0
            start = place[b]
            for row in range(rows):
                best, tied, partial = -math.inf, 0, 0
                for k in range(last):
                    partial += s[k]
                    value = index[n[k], s[k]]
                    if value > best:
                        best, tied = value, 1
                    elif value == best:
                        tied += 1
                for k in range(last):
                    ahead[k] = index[n[k], s[k]] == best
                first, until = undecided(width, partial, sure, most)
                for i in range(first):
                    decided += mass[start + i]
                # The last arm's index grows with its sum: the arm first loses, then ties, then wins.
                low = first
                while low < until and line[low] < best:
                    low += 1
                high = low
                while high < until and line[high] == best:
                    high += 1
                for part in range(3):
                    begin = first if part == 0 else low if part == 1 else high
                    end = low if part == 0 else high if part == 1 else until
                    if begin == end:
                        continue
                    share = 1.0 / ((tied if part < 2 else 0) + (part > 0))
                    for k in range(arms):
                        if part > 0 if k == last else part < 2 and ahead[k]:
                            decided += give(
                                k, share, start, begin, end, row * width, n, strides, chances, onto[b, k],
                                mass, following,
                            )  # fmt: skip
                start += width
                next_row(n, s)
        return decided

    return kernel


@inner
def chances_on_grid(
    pairs: Any, begin: Any, zero: Any, above: Any, density: Any, below: Any, work: Any, out: Any
) -> None:
    """Fill in, for more arms, the chance that an arm's draw is the largest: the sum over the grid of

        density of its draw * product of the other arms' distribution functions.

    The product is log-concave, falls from its highest point at least as fast as the arm's own density and
    is as smooth as the product of all densities, so that a plain sum is exact up to rounding. begin, zero:
    where an arm's density begins, and up to where its distribution function is 0. above: where an arm's
    density ends, counted from the highest mean.
    """
    arms = pairs.size
    for k in range(arms):
        first = begin[k]
        for j in range(arms):
            if j != k:
                first = max(first, zero[j])
        until = above[k]
        row = density[pairs[k]]
        for i in range(first, until):
            work[i] = row[i]
        for j in range(arms):
            if j != k:
                row = below[pairs[j]]
                for i in range(first, until):
                    work[i] *= row[i]
        total = 0.0
        for i in range(first, until):
            total += work[i]
        out[k] = total


@kernel_maker
def posterior_programme(centre: Formula, spread: Formula) -> Any:
    """Thompson sampling: an arm is pulled with the chance that its draw is the largest."""

    def kernel(
        params: Any, t: Any, chances: Any, blocks: Any, place: Any, onto: Any, sure: Any, most: Any,
        mass: Any, following: Any,
    ) -> Any:  # fmt: skip
        arms = blocks.shape[1]
        last = arms - 1
        mean, sd = np.zeros((t + 1, t + 1)), np.empty(t + 1)
        low, high = math.inf, -math.inf
        for n in range(t + 1):
            sd[n] = spread(float(n), *params)
            for total in range(n + 1):
                mean[n, total] = centre(float(n), float(total), *params)
                low = min(low, mean[n, total] - BELOW * sd[n])
                high = max(high, mean[n, total])
        high += ABOVE * largest(sd)
        sharpest = 0.0
        for b in range(blocks.shape[0]):
            sharpness = 0.0
            for k in range(arms):
                sharpness += 1.0 / (sd[blocks[b, k]] * sd[blocks[b, k]])
            sharpest = max(sharpest, sharpness)
        step = STEP / math.sqrt(sharpest)
        points = int((high - low) / step) + 2 if arms > 2 else 0
        density = np.empty(((t + 1) * (t + 2) // 2, points))
        below = np.empty(((t + 1) * (t + 2) // 2, points))
        for n in range(t + 1 if arms > 2 else 0):
            for total in range(n + 1):
                pair = n * (n + 1) // 2 + total
                for i in range(points):
                    z = (low + i * step - mean[n, total]) / sd[n]
                    density[pair, i] = math.exp(-0.5 * z * z) * step / (sd[n] * math.sqrt(2.0 * math.pi))
                    below[pair, i] = 0.5 * math.erfc(-z / ROOT)
        strides, s, pairs = np.empty(arms, np.int64), np.zeros(arms, np.int64), np.empty(arms, np.int64)
        begin, zero, above = np.empty(arms, np.int64), np.empty(arms, np.int64), np.empty(arms, np.int64)
        to = np.empty(arms, np.int64)
        choice, work = np.empty(arms), np.empty(points)
        decided = 0.0
        for b in range(blocks.shape[0]):
            pulls = blocks[b]
            rows = strides_of(pulls, strides)
            width = pulls[last] + 1
            s[:] = 0
            start = place[b]
            for row in range(rows):
                partial = 0
                for k in range(last):
                    partial += s[k]
                for k in range(arms):
                    to[k] = onto[b, k]
                    if to[k] >= 0:
                        to[k] += beyond(row * width, k, pulls, strides)
                first, until = undecided(width, partial, sure, most)
                for i in range(first):
                    decided += mass[start + i]
                for i in range(first, until):
                    p = mass[start + i]
                    if p == 0.0:
                        continue
                    s[last] = i
                    if arms == 2:
                        z = (mean[pulls[0], s[0]] - mean[pulls[1], i]) / math.hypot(
                            sd[pulls[0]], sd[pulls[1]]
                        )
                        choice[0], choice[1] = 0.5 * math.erfc(-z / ROOT), 0.5 * math.erfc(z / ROOT)
                    else:
                        best = -math.inf
                        for k in range(arms):
                            best = max(best, mean[pulls[k], s[k]])
                        for k in range(arms):
                            n, middle = pulls[k], mean[pulls[k], s[k]]
                            pairs[k] = n * (n + 1) // 2 + s[k]
                            begin[k] = max(0, int((middle - BELOW * sd[n] - low) / step))
                            zero[k] = max(0, int((middle - NOTHING * sd[n] - low) / step))
                            above[k] = min(points, int((best + ABOVE * sd[n] - low) / step) + 1)
                        chances_on_grid(pairs, begin, zero, above, density, below, work, choice)
                    for k in range(arms):
                        share = p * choice[k]
                        if to[k] >= 0:
                            following[to[k] + i] += share * (1.0 - chances[k])
                            following[to[k] + i + strides[k]] += share * chances[k]
                        elif to[k] == SURE:
                            decided += share
                s[last] = 0
                start += width
                next_row(pulls, s)
        return decided

    return kernel


@kernel_maker
def phase_width(radius: Formula, clock: Formula) -> Any:
    """Elimination: the radius after n pulls of every active arm and t pulls in all, as paths compute it."""

    def kernel(params: Any, n: Any, t: Any) -> Any:
        return float(radius(n, clock(t, *params), *params))

    return kernel


@compiler()
def by_reward(blocks: Any, place: Any, mass: Any, out: Any) -> None:
    """Add the mass of every state to out[the sum of all its rewards]."""
    last = blocks.shape[1] - 1
    s = np.empty(blocks.shape[1], np.int64)
    strides = np.empty(blocks.shape[1], np.int64)
    for b in range(blocks.shape[0]):
        n = blocks[b]
        s[:] = 0
        start = place[b]
        for _ in range(strides_of(n, strides)):
            partial = 0
            for k in range(last):
                partial += s[k]
            for i in range(n[last] + 1):
                out[partial + i] += mass[start + i]
            start += n[last] + 1
            next_row(n, s)
