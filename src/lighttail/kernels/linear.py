"""Linear bandits, compiled: the argmax of an index, or of a draw, over fixed and over changing actions.

In each round the environment draws first, the actions and then the shock behind the reward, and the policy
draws after it. `world` is (theta, the arguments of `fill`, the noise without its means, actions per round,
whether they are fixed). In place of pulls, changing actions have float64[paths, 2]: the reward that the best
actions earn on average, and the loss against them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lighttail.kernels.build import Formula, close_path, inner, kernel_maker
from lighttail.kernels.ridge import (
    LOSS,
    PERIOD,
    absorb,
    blank,
    products,
    renew,
    restart,
    rotate,
    shrink,
    solve_root,
    spread_out,
    widths,
)
from lighttail.linear.policies import TIE
from lighttail.random.streams import standard_normal, uniform

BREATH = 1 << 11  # rounds between two looks at the stop flag


@inner
def leader_of(index: Any) -> Any:
    """The first of the actions with the highest index.

    Four maxima are found side by side, because each comparison waits for the one before it.
    """
    one = two = three = four = -math.inf
    whole = index.size // 4 * 4
    for i in range(0, whole, 4):
        one = index[i] if index[i] > one else one
        two = index[i + 1] if index[i + 1] > two else two
        three = index[i + 2] if index[i + 2] > three else three
        four = index[i + 3] if index[i + 3] > four else four
    for i in range(whole, index.size):
        one = index[i] if index[i] > one else one
    best = max(one, two, three, four)
    leader = 0
    while leader < index.size - 1 and index[leader] != best:
        leader += 1
    return leader


@inner
def choose(rng: Any, index: Any, estimate: Any) -> Any:
    """The action with the highest index; if indices differ by rounding alone, one of these actions at random.

    Rounding is at most the share `TIE` of the leader's estimate and of its radius.
    """
    leader = leader_of(index)
    middle = estimate[leader]
    edge = index[leader] - TIE * (abs(middle) + abs(index[leader] - middle))
    tied = 0
    for i in range(index.size):
        tied += index[i] >= edge
    if tied == 1:
        return leader
    skip = int(uniform(rng) * tied)
    for i in range(index.size):
        if index[i] >= edge:
            if skip == 0:
                return i
            skip -= 1
    return leader


@kernel_maker
def fixed_linear_kernel(
    radius: Formula, clock: Formula, shock: Formula, reward: Formula, fill: Formula
) -> Any:
    """LinearUCB on a fixed set: the estimates and widths of all actions are updated in O(A d) per round."""

    def kernel(rng: Any, params: Any, world: Any, horizon: Any, rewards: Any, pulls: Any, stop: Any) -> None:
        theta, source, noise, count, _ = world
        ridge, own = params[0], params[1:]
        d = theta.size
        columns = np.empty((d, count))
        fill(rng, 1, columns.T, *source)
        means, estimate, width, index = np.empty(count), np.empty(count), np.empty(count), np.empty(count)
        shift, sums, counts = np.empty(count), np.empty(count), np.empty(count)
        p, v, lower, inverse = np.empty((d, d)), np.empty((d, d)), np.empty((d, d)), np.empty((d, d))
        a, b, u, solved = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
        products(columns, theta, means)
        for path in range(rewards.size):
            spread_out(p, 1.0 / ridge)
            widths(columns, p, shift, width)
            for i in range(count):
                estimate[i] = sums[i] = counts[i] = 0.0
            growth, grown, due = 0.0, 1.0, PERIOD
            for t in range(1, horizon + 1):
                drawn = shock(rng, means, *noise)
                time = clock(float(t), growth + math.log(grown), ridge, *own)
                for i in range(count):
                    index[i] = estimate[i] + radius(max(0.0, width[i]), time, *own)
                chosen = choose(rng, index, estimate)
                value = reward(drawn, chosen, means, *noise)
                sums[chosen] += value
                counts[chosen] += 1.0
                for k in range(d):
                    a[k] = columns[k, chosen]
                products(p, a, u)
                products(columns, u, shift)
                z = max(0.0, shift[chosen])
                gain = (value - estimate[chosen]) / (1.0 + z)
                part = 1.0 / (1.0 + z)
                for i in range(count):
                    estimate[i] += shift[i] * gain
                    width[i] -= shift[i] * shift[i] * part
                shrink(p, u, z)
                grown *= 1.0 + z
                if grown > LOSS or t == due:
                    spread_out(v, ridge)
                    for j in range(d):
                        b[j] = 0.0
                    for i in range(count):
                        if counts[i] > 0.0:
                            for j in range(d):
                                b[j] += sums[i] * columns[j, i]
                                for k in range(j + 1):
                                    v[j, k] += counts[i] * columns[j, i] * columns[k, i]
                    growth = renew(v, b, ridge, lower, inverse, p, solved)
                    products(columns, solved, estimate)
                    widths(columns, p, shift, width)
                    grown, due = 1.0, t + PERIOD
                if (t % BREATH == 0 or t == horizon) and stop[0] != 0:
                    return
            close_path(path, sums, counts, rewards, pulls)

    return kernel


@kernel_maker
def changing_linear_kernel(
    radius: Formula, clock: Formula, shock: Formula, reward: Formula, fill: Formula
) -> Any:
    """LinearUCB on changing actions: theta-hat and P are updated, all widths are computed in every round."""

    def kernel(rng: Any, params: Any, world: Any, horizon: Any, rewards: Any, totals: Any, stop: Any) -> None:
        theta, source, noise, count, _ = world
        ridge, own = params[0], params[1:]
        d = theta.size
        columns = np.empty((d, count))
        rows = columns.T
        means, estimate, width, index = np.empty(count), np.empty(count), np.empty(count), np.empty(count)
        part, a = np.empty(count), np.empty(d)
        state = blank(d)
        p, solved, pace = state[0], state[1], state[2]
        for path in range(rewards.size):
            restart(state, ridge)
            earned = best = lost = 0.0
            for t in range(1, horizon + 1):
                fill(rng, t, rows, *source)
                products(columns, theta, means)
                highest = means[leader_of(means)]
                drawn = shock(rng, means, *noise)
                time = clock(float(t), pace[0] + math.log(pace[1]), ridge, *own)
                products(columns, solved, estimate)
                widths(columns, p, part, width)
                for i in range(count):
                    index[i] = estimate[i] + radius(width[i], time, *own)
                chosen = choose(rng, index, estimate)
                value = reward(drawn, chosen, means, *noise)
                earned += value
                best += highest
                lost += highest - means[chosen]
                for k in range(d):
                    a[k] = columns[k, chosen]
                absorb(state, a, value, estimate[chosen], width[chosen], ridge)
                if (t % BREATH == 0 or t == horizon) and stop[0] != 0:
                    return
            rewards[path] = earned
            totals[path, 0] = best
            totals[path, 1] = lost

    return kernel


@kernel_maker
def linear_posterior_kernel(shock: Formula, reward: Formula, fill: Formula) -> Any:
    """LinearThompson, on fixed and on changing actions: the best action for a draw R^-1 (w + scale * xi)."""

    def kernel(rng: Any, params: Any, world: Any, horizon: Any, rewards: Any, totals: Any, stop: Any) -> None:
        theta, source, noise, count, fixed = world
        ridge, scale = params
        d = theta.size
        columns = np.empty((d, count))
        rows = columns.T
        means, index, counts = np.empty(count), np.empty(count), np.empty(count)
        root = np.empty((d, d))
        a, w, draw = np.empty(d), np.empty(d), np.empty(d)
        if fixed:
            fill(rng, 1, rows, *source)
            products(columns, theta, means)
        for path in range(rewards.size):
            spread_out(root, math.sqrt(ridge))
            w[:] = 0.0
            counts[:] = 0.0
            earned = best = lost = 0.0
            for t in range(1, horizon + 1):
                if not fixed:
                    fill(rng, t, rows, *source)
                    products(columns, theta, means)
                drawn = shock(rng, means, *noise)
                for k in range(d):
                    draw[k] = w[k] + scale * standard_normal(rng)
                solve_root(root, draw)
                products(columns, draw, index)
                chosen = choose(rng, index, index)
                value = reward(drawn, chosen, means, *noise)
                earned += value
                if fixed:
                    counts[chosen] += 1.0
                else:
                    highest = means[leader_of(means)]
                    best += highest
                    lost += highest - means[chosen]
                for k in range(d):
                    a[k] = columns[k, chosen]
                rotate(root, w, a, value)
                if (t % BREATH == 0 or t == horizon) and stop[0] != 0:
                    return
            rewards[path] = earned
            if fixed:
                for i in range(count):
                    totals[path, i] = int(counts[i])
            else:
                totals[path, 0] = best
                totals[path, 1] = lost

    return kernel
