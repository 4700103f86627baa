"""Routes of policies that pull the arm with the highest index: one level for all arms.

When the event is decided on a path, all indices are near one level. The index of an arm with n pulls fell
below the level with the n-th reward and was above the level before, so the arm's mean reward was at most
level - rad(n) after n pulls and at least level - rad(n - 1) one pull earlier. A cell of routes is one level
with one luck. docs/rare-events.md defines the words and has the derivation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lighttail.bonuses import Bonus
from lighttail.records import Floats
from lighttail.tails.mixture import Routes, together
from lighttail.tails.routes import Table, losses, lucks, pulls_tried, routes_of, settled, table_of
from lighttail.tails.task import Task

SCAN, MOST_CELLS = 36, 60  # levels of the first grid, and cells at most
AROUND = 11.0  # a cell does not matter if its log share is this far below the largest log share
STEP = 1.5  # the log likelihood changes by about this at most from one level to the next
TIMES = 5  # moments at which the event may be decided, if the bonus has a clock
REACHES = (0.3, 0.6, 0.9)  # posterior draws above the posterior mean, in sqrt(2 ln T) deviations
FAR = 60.0  # standard deviations beyond all means up to which a mean is looked for
LOOKS = 65  # means at which it is checked that an index rises
FALLS = 1e-9  # share of the index's range by which rounding may let an index fall


@dataclass(frozen=True)
class Explicit:
    """A view (see `View`) with a formula: the mean is slope * level - radius, after n and n - 1 pulls."""

    horizon: int
    grid: tuple[Floats, Floats]
    slopes: tuple[Floats, Floats]
    radius: tuple[Floats, Floats]
    unpulled: float = math.inf

    @property
    def slope(self) -> Floats:
        return self.slopes[0]

    def bounds(self, levels: Floats) -> tuple[Floats, Floats]:
        at = levels[:, None]
        now, before = (slope * at - radius for slope, radius in zip(self.slopes, self.radius, strict=True))
        return now, before

    def indices(self, means: Floats) -> Floats:
        return (means[:, None] + self.radius[0]) / self.slopes[0]


@dataclass(frozen=True)
class Inverted:
    """A view of any index that rises with the mean, found by bisection of the index itself.

    The kernel gives the largest mean whose index is at most a level or, with True, the smallest mean whose
    index is at least the level; the mean is beyond `ends` if every mean, or no mean, has this property.
    """

    horizon: int
    grid: tuple[Floats, Floats]
    kernel: Any
    params: tuple[float, ...]
    clock: float
    ends: tuple[float, float]

    unpulled = math.inf
    slope = np.ones(1)  # a rough value, which decides how many levels are looked at

    def bounds(self, levels: Floats) -> tuple[Floats, Floats]:
        once, place = np.unique(levels, return_inverse=True)  # a level comes once with each luck
        below, above = (np.empty((once.size, self.grid[0].size)) for _ in range(2))
        before = np.maximum(1.0, self.grid[0] - 1.0)
        self.kernel(self.params, self.clock, once, self.grid[0], *self.ends, False, below)
        self.kernel(self.params, self.clock, once, before, *self.ends, True, above)
        return below[place], above[place]

    def indices(self, means: Floats) -> Floats:
        found = np.empty((means.size, self.grid[0].size))
        self.kernel(self.params, self.clock, means, self.grid[0], 0.0, 0.0, False, found)
        return found


# `bounds` turns levels into bounds on an arm's mean, [cell, pulls]: at most the first after n pulls, at least
# the second after n - 1 pulls. `indices` turns means into levels, [mean, pulls]. `slope` says about how fast
# the first bound changes with the level. `unpulled` is the index of an arm without a pull.
View = Explicit | Inverted


Settled = tuple[Table, Floats, Floats, Floats, Floats]  # table, losses per pull, prices, premiums, log shares


def _settled(task: Task, view: View, levels: Floats, later: Floats) -> Settled:
    """The cells' table at these levels, with losses, prices, premiums and log shares."""
    below, above = (np.repeat(part[:, None, :], task.problem.arms, axis=1) for part in view.bounds(levels))
    below[:, :, view.grid[0] == 0.0] = math.inf  # an arm without a pull has no mean reward
    above[:, :, view.grid[0] <= 1.0] = -math.inf
    table = table_of(task.tilts, task.means, view.grid, below, above, later)
    never = (view.grid[0] == 0.0) & (levels[:, None, None] < view.unpulled)  # the arm would be pulled
    table = replace(table, cost=np.where(never, math.inf, table.cost))
    gaps, credit = losses(task, later)
    return table, gaps, *settled(table, gaps, view.horizon, task.target, credit, task.luck_counts)


def index_routes(task: Task) -> Routes | None:
    """The routes of a policy with an index, or of Thompson sampling; None if none is found."""
    found = [part for view in _views(task) if (part := _around(task, view)) is not None]
    if not found:
        return None
    if task.policy.plays_by == "posterior":  # its index is only assumed: compare within a view
        found = [part.normal() for part in found]
    return together(found)


def _views(task: Task) -> list[View]:
    policy: Any = task.policy
    horizon, arms = task.horizon, task.problem.arms
    params = policy.params(horizon, arms)
    if policy.plays_by == "posterior":
        return [_posterior_view(policy, horizon, params, reach) for reach in REACHES]
    times = [horizon]
    if policy.moving() and not task.luck_counts:
        soonest = max(arms + 1, math.ceil(task.target / max(task.problem.gaps)))
        times = sorted({int(t) for t in np.round(np.geomspace(min(soonest, horizon), horizon, TIMES))})
    if policy.plays_by == "radius":
        return [_bonus_view(policy.bonus, time, params) for time in times]
    views = [inverted_view(task, time, params) for time in times]
    return [view for view in views if view is not None]


def _bonus_view(bonus: Bonus, horizon: int, params: tuple[float, ...]) -> Explicit:
    """The index of UCB at the time `horizon`."""
    grid, clock = pulls_tried(horizon), bonus.clock(float(horizon), *params)
    now = np.array([bonus.finite_radius(float(n), clock, params) for n in grid[0]])
    before = np.array([bonus.finite_radius(float(max(1.0, n - 1.0)), clock, params) for n in grid[0]])
    one = np.ones(now.size)
    return Explicit(horizon, grid, (one, one), (now, before))


def _posterior_view(policy: Any, horizon: int, params: Any, reach: float) -> Explicit:
    """A view of Thompson sampling, whose index is the posterior mean plus `reach` times sqrt(2 ln T)
    deviations: the largest of T draws is about sqrt(2 ln T) deviations above the mean."""
    reach *= math.sqrt(2.0 * math.log(max(2, horizon)))
    tried, count = pulls_tried(horizon)
    grid = np.append(0.0, tried), np.append(1.0, count)  # an arm may never be pulled, unlike by UCB

    def bound(n: Floats) -> tuple[Floats, Floats]:
        empty = np.array([policy.posterior_mean(float(k), 0.0, *params) for k in n])
        unit = np.array([policy.posterior_mean(float(k), 1.0, *params) for k in n]) - empty
        spread = np.array([policy.posterior_sd(float(k), *params) for k in n])
        return 1.0 / (unit * n), (reach * spread + empty) / (unit * n)

    now, before = bound(np.maximum(1.0, grid[0])), bound(np.maximum(1.0, grid[0] - 1.0))
    unpulled = policy.posterior_mean(0.0, 0.0, *params) + reach * policy.posterior_sd(0.0, *params)
    return Explicit(horizon, grid, (now[0], before[0]), (now[1], before[1]), unpulled)


def inverted_view(task: Task, horizon: int, params: tuple[float, ...]) -> Inverted | None:
    """The view of a policy's index at the time `horizon`; None if the index does not rise with the mean."""
    from lighttail.kernels import inverse_kernel_for

    means = task.problem.means
    span, reach = task.problem.noise.span(means), FAR * task.tilts.unit
    ends = span if span is not None else (min(means) - reach, max(means) + reach)
    policy: Any = task.policy
    clock = float(policy.clock_formula()(float(horizon), *params))
    view = Inverted(horizon, pulls_tried(horizon), inverse_kernel_for(policy), params, clock, ends)
    values = view.indices(np.linspace(ends[0], ends[1], LOOKS))
    if not np.isfinite(values).all():
        return None
    falls = np.diff(values, axis=0) < -FALLS * np.ptp(values, axis=0, keepdims=True)
    return None if falls.any() or not np.ptp(values) > 0.0 else view


def _around(task: Task, view: View) -> Routes | None:
    """The routes of the cells that matter: levels, each with the lucks that it may need."""
    levels, share = _refined(task, view, _first_levels(task, view))
    level, luck, share = fitting(share)
    if not level.size:
        return None
    table, gaps, price, premium, _ = _settled(task, view, levels[level], lucks(task)[luck])
    return routes_of(table, gaps, price, premium, share)


def needed(share: Floats, premium: Floats) -> Floats:
    """Log shares [level or height, luck], which are -inf where the luck is more than is needed.

    If the event is reached without a premium, more luck is not needed.
    """
    free = (premium <= 0.0) & np.isfinite(share)
    too_much = np.cumsum(free, axis=1) > 1
    return np.where(np.isfinite(share) & ~too_much, share, -math.inf)


def fitting(share: Floats) -> tuple[Any, Any, Floats]:
    """(place, luck, log share) of the cells that matter, from log shares [place, luck]."""
    order = np.argsort(-share, axis=None, kind="stable")[:MOST_CELLS]
    cell, luck = np.unravel_index(np.sort(order), share.shape)
    found = share[cell, luck]
    near = np.isfinite(found) & (found >= np.max(share) - AROUND)
    return cell[near], luck[near], found[near]


def _first_levels(task: Task, view: View) -> Floats:
    """Levels over the whole range of the arms' indices, dense where there are many indices."""
    moved = task.tilts.mean(task.means[:, None], lucks(task)[[0, -1]]).ravel()
    every = view.indices(moved).ravel()
    lowest, highest = np.min(every), np.max(every)
    inner = np.quantile(every, np.linspace(0.0, 1.0, SCAN // 2))
    wide = np.linspace(lowest, highest, SCAN // 2)
    spread = max(float(np.ptp(moved)), 1e-3 * (highest - lowest), 1e-12 * abs(lowest), 1e-300)
    beyond = lowest - spread * np.geomspace(0.01, 4.0, 10)
    return np.unique(np.concatenate([beyond, inner, wide]))


def _refined(task: Task, view: View, levels: Floats) -> tuple[Floats, Floats]:
    """The levels, more where the share is large, until neighbours are alike; and log shares [level, luck]."""
    share, steep = _shares(task, view, levels)
    for _ in range(12):
        most = share.max(axis=1)
        near = most >= most.max() - AROUND
        wanted = near[1:] | near[:-1]
        wanted &= np.diff(levels) * np.maximum(steep[1:], steep[:-1]) > STEP
        if not wanted.any() or np.count_nonzero(near) > MOST_CELLS:
            break
        more = 0.5 * (levels[1:] + levels[:-1])[wanted]
        more_share, more_steep = _shares(task, view, more)
        order = np.argsort(np.append(levels, more), kind="stable")
        levels, steep = np.append(levels, more)[order], np.append(steep, more_steep)[order]
        share = np.concatenate([share, more_share])[order]
    return levels, share


def _shares(task: Task, view: View, levels: Floats) -> tuple[Floats, Floats]:
    """Log shares [level, luck], and how fast a path's log likelihood changes with the level."""
    each = lucks(task)
    later = np.tile(each, levels.size)
    table, gaps, price, premium, share = _settled(task, view, np.repeat(levels, each.size), later)
    with np.errstate(invalid="ignore"):
        moved = table.chances(gaps, price, premium) * np.abs(table.tilt - later[:, None, None])
        steep = np.sum(moved * table.pulls * view.slope, axis=(1, 2))
    shape = (levels.size, each.size)
    steep = np.where(np.isfinite(steep), steep, 0.0).reshape(shape)
    return needed(share.reshape(shape), premium.reshape(shape)), steep.max(axis=1)
