"""Routes of successive elimination: some arm leads while the other arms are dropped or stay active.

A cell of routes is a leader, a phase up to which the leader's mean is held, and the height of this mean.
Another arm that is dropped in phase d has a mean of at most height - 2 rad(d) then, and had a mean of at
least height - 2 rad(d - 1) one phase earlier. The leader takes the remaining pulls of the horizon.
docs/rare-events.md defines the words and has the derivation.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from lighttail.records import Floats
from lighttail.tails.index_routes import AROUND, Settled, fitting, needed
from lighttail.tails.mixture import Routes, together
from lighttail.tails.routes import (
    MUCH,
    NOTHING,
    Table,
    losses,
    lucks,
    multipliers_of,
    pulls_tried,
    rate,
    routes_of,
    table_of,
)
from lighttail.tails.task import Task

PHASES, HEIGHTS, CLOSER = 18, 25, 13  # phases that are tried, heights of the first grid and of closer ones
MOST_CELLS = 160


def elimination_routes(task: Task) -> Routes | None:
    """The routes to the event; None if none is found."""
    horizon, arms = task.horizon, task.problem.arms
    longest = max(1, horizon // 2)
    phases = np.unique(np.round(np.geomspace(1.0, longest, PHASES))).astype(int)
    found = [
        part
        for phase in phases
        for leader in range(arms)
        if (part := _of_leader(task, leader, int(phase), _radii(task, int(phase)))) is not None
    ]
    if not found:
        return None
    best = max(float(part.log_share.max()) for part in found)
    found = [part.only(near) for part in found if (near := part.log_share >= best - AROUND).any()]
    every = together(found)
    return every.only(np.argsort(-every.log_share, kind="stable")[:MOST_CELLS])


def _radii(task: Task, phase: int) -> Floats:
    """The radius after 1, ..., `phase` phases if all arms are active."""
    policy: Any = task.policy
    arms, params, bonus = task.problem.arms, policy.params(task.horizon, task.problem.arms), policy.bonus
    times = [min(float(task.horizon), float(arms * n)) for n in range(1, phase + 1)]
    return np.array(
        [bonus.finite_radius(float(n), bonus.clock(t, *params), params) for n, t in enumerate(times, 1)]
    )


def _of_leader(task: Task, leader: int, phase: int, radius: Floats) -> Routes | None:
    """The routes of one leader up to one phase, at the heights that matter."""
    luck = lucks(task)
    means = task.tilts.mean(task.means[:, None], luck[[0, -1]]).ravel()
    reach = 2.0 * radius[-1] + 0.5 * float(np.ptp(means)) + 1e-12
    heights = np.linspace(means.min() - reach, means.max() + reach, HEIGHTS)
    heights = np.unique(np.append(heights, task.means))

    def shares() -> Floats:
        at, later = np.repeat(heights, luck.size), np.tile(luck, heights.size)
        *_, premium, share = _settled(task, leader, phase, radius, later, at)
        shape = (heights.size, luck.size)
        return needed(share.reshape(shape), premium.reshape(shape))

    share = shares()
    for _ in range(4):
        most = share.max(axis=1)
        if not np.isfinite(most).any():
            return None
        near = np.flatnonzero(most >= most.max() - AROUND)
        if near.size >= CLOSER // 2:
            break
        first, last = max(0, near[0] - 1), min(heights.size - 1, near[-1] + 1)
        heights = np.linspace(heights[first], heights[last], CLOSER)
        share = shares()
    height, part, share = fitting(share)
    if not height.size:
        return None
    table, gaps, price, premium, _ = _settled(task, leader, phase, radius, luck[part], heights[height])
    return routes_of(table, gaps, price, premium, share)


def _settled(task: Task, leader: int, phase: int, radius: Floats, later: Floats, heights: Floats) -> Settled:
    """The cells' table, the loss of a pull above that of the leader's pull, and the result of `_premium`."""
    grid = pulls_tried(phase)
    places = grid[0].astype(int) - 1
    at = heights[:, None, None]
    below = np.repeat(at - 2.0 * radius[places], task.problem.arms, axis=1)
    above = np.repeat(at - 2.0 * radius[np.maximum(0, places - 1)], task.problem.arms, axis=1)
    above[:, :, grid[0] == 1.0] = -math.inf
    # An arm that is active up to the last phase need not be dropped in this phase, if the leader drops the
    # arm later anyway or the horizon ends; but its mean is not above the leader's.
    later_anyway = (task.means <= task.means[leader]) | (phase >= task.horizon // task.problem.arms)
    below[:, later_anyway, -1] = heights[:, None]
    table = table_of(task.tilts, task.means, grid, below, above, later)
    cost, tilt, held = (np.array(part) for part in (table.cost, table.tilt, table.held))
    mean = task.means[leader]
    idle = -task.tilts.psi(mean, later)
    lam = task.tilts.lam(mean, heights)
    allowed = np.isfinite(task.tilts.at_most(float(phase), heights + 1e-6))
    allowed &= np.isfinite(task.tilts.at_least(float(phase), heights - 1e-6))
    leads = rate(task.tilts, mean, lam, later, float(phase), heights)
    cost[:, leader] = math.inf
    cost[:, leader, -1] = np.where(allowed, np.maximum(leads, phase * idle), math.inf)
    tilt[:, leader, -1], held[:, leader, -1] = lam, True
    cost[:, leader, -1] += (task.horizon - float(phase)) * idle  # as if all other pulls were the leader's
    others = np.arange(task.problem.arms) != leader
    cost[:, others] -= (grid[0] * idle[:, None])[:, None]
    table = replace(table, cost=cost, tilt=tilt, held=held, until=float(phase))
    gaps, credit = losses(task, later)
    own = gaps[:, leader]
    extra = gaps - own[:, None]
    extra[:, leader] = 0.0
    return table, extra, *_premium(table, extra, task.target - own * task.horizon, credit)


def _premium(table: Table, extra: Floats, missing: Floats, credit: Floats) -> tuple[Floats, Floats, Floats]:
    """As `settled`, but pulls may lose less than the leader's pulls, which fill the horizon: no price."""
    least = np.min(np.where(extra != 0.0, np.abs(extra), math.inf), axis=1)
    scale = np.where(np.isfinite(least), table.top / least, 1.0)
    price, premium = multipliers_of(table, extra, (NOTHING * scale, MUCH * scale), math.inf, missing, False)
    logs, expected = table.weighed(-premium[:, None] * extra)
    reached = (expected * extra).sum(axis=1)
    share = logs.sum(axis=1) - premium * missing - credit
    possible = (reached >= missing - 1e-6 * np.abs(missing) - 1e-12) & np.isfinite(share)
    return price, premium, np.where(possible, share, -math.inf)
