"""Routes of policies that pull the arm with the highest index: one level for all arms.

When a path has been decided, all indices stand near one level. An arm that has had n pulls came below the
level with its n-th reward and was above it before, so its mean reward was at most level - rad(n) after n
pulls and at least level - rad(n - 1) one pull earlier. docs/rare-events.md has the derivation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from lighttail.bonuses import Bonus
from lighttail.outcomes.estimates import Floats
from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.tails.inverted import inverted_view
from lighttail.tails.mixture import Routes, together
from lighttail.tails.routes import Table, pulls_tried, routes_of, settled, table_of
from lighttail.tails.tilts import Family

SCAN, KEPT = 36, 60  # levels that are looked at first, and that are kept at most
AROUND = 11.0  # levels whose share is smaller by this factor on a log scale do not matter
STEP = 1.5  # neighbouring levels differ in the logarithm of a likelihood by about this at most
LUCK, MORE = 8, 1.12  # parts of a regret that may be bad luck with the rewards, up to somewhat more than all
TIMES = 5  # moments at which a path of a bonus with a clock may be decided
REACHES = (0.3, 0.6, 0.9)  # posterior draws that a path may meet, in units of sqrt(2 ln T) deviations


@dataclass(frozen=True)
class Quest:
    """What is looked for: the loss, or with `whole` the regret, of a policy on a problem."""

    policy: Policy
    problem: Bandit
    family: Family
    horizon: int
    target: float
    whole: bool

    @property
    def means(self) -> Floats:
        return np.array(self.problem.means)

    def lucks(self) -> Floats:
        """Tilts of all rewards besides those of the route: none, up to those that are enough alone."""
        if not self.whole:
            return np.zeros(1)
        best = max(self.problem.means)
        enough = best - self.target / self.horizon
        if enough >= best:
            return np.zeros(1)
        most = min(float(self.family.lam(best, enough)), 0.0)
        return most * np.linspace(0.0, MORE, LUCK)

    def asked(self, later: Floats) -> tuple[Floats, Floats]:
        """What a pull of each arm loses under a tilt, [cell, arm], and the credit of the tilt."""
        best = float(self.means.max())
        gaps = best - self.family.mean(self.means, later[:, None])
        credit = later * (best * self.horizon - self.target) if self.whole else np.zeros(later.size)
        return gaps, credit


class View(Protocol):
    """How a level turns into bounds on an arm's mean after n and n - 1 pulls, and a mean into a level."""

    @property
    def horizon(self) -> int: ...

    @property
    def grid(self) -> tuple[Floats, Floats]: ...

    @property
    def slope(self) -> Floats:
        """How fast the bound on the mean after n pulls changes with the level, about."""

    @property
    def unpulled(self) -> float:
        """The index of an arm without a pull."""

    def bounds(self, levels: Floats) -> tuple[Floats, Floats]:
        """[cell, pulls]: the mean after n pulls is at most the first, after n - 1 at least the second."""

    def indices(self, means: Floats) -> Floats:
        """[mean, pulls]: the level at which an arm stands whose rewards have this mean."""


@dataclass(frozen=True)
class Straight:
    """A view in which the mean is slope * level - radius, after n and n - 1 pulls."""

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


def _table(view: View, quest: Quest, levels: Floats, later: Floats) -> Table:
    """What every arm's numbers of pulls cost at these levels."""
    below, above = (np.repeat(part[:, None, :], quest.problem.arms, axis=1) for part in view.bounds(levels))
    below[:, :, view.grid[0] == 0.0] = math.inf  # an arm without a pull has nothing to show
    above[:, :, view.grid[0] <= 1.0] = -math.inf
    table = table_of(quest.family, quest.means, view.grid, below, above, later)
    never = (view.grid[0] == 0.0) & (levels[:, None, None] < view.unpulled)  # such an arm would be pulled
    return replace(table, cost=np.where(never, math.inf, table.cost))


def index_routes(quest: Quest) -> Routes | None:
    """The routes of a policy with an index, or of Thompson sampling; None where none is found."""
    views = _views(quest)
    found = [part for view in views if (part := _around(quest, view)) is not None]
    if not found:
        return None
    if quest.policy.plays_by == "posterior":  # its index is made up: only its own levels compare
        found = [part.normal() for part in found]
    return together(found)


def _views(quest: Quest) -> list[View]:
    policy: Any = quest.policy
    horizon, arms = quest.horizon, quest.problem.arms
    params = policy.params(horizon, arms)
    if policy.plays_by == "posterior":
        return [_posterior_view(policy, horizon, params, reach) for reach in REACHES]
    times = [horizon]
    if policy.moving() and not quest.whole:
        soonest = max(arms + 1, math.ceil(quest.target / max(quest.problem.gaps)))
        times = sorted({int(t) for t in np.round(np.geomspace(min(soonest, horizon), horizon, TIMES))})
    if policy.plays_by == "radius":
        return [_bonus_view(policy.bonus, time, params) for time in times]
    views = [inverted_view(quest, time, params) for time in times]
    return [view for view in views if view is not None]


def _bonus_view(bonus: Bonus, horizon: int, params: tuple[float, ...]) -> Straight:
    """The index of UCB as it is at the time `horizon`."""
    grid, clock = pulls_tried(horizon), bonus.clock(float(horizon), *params)
    now = np.array([bonus.radius(float(n), clock, *params) for n in grid[0]])
    before = np.array([bonus.radius(float(max(1.0, n - 1.0)), clock, *params) for n in grid[0]])
    one = np.ones(now.size)
    return Straight(horizon, grid, (one, one), (now, before))


def _posterior_view(policy: Any, horizon: int, params: Any, reach: float) -> Straight:
    """The index of Thompson sampling is its posterior mean and `reach` times sqrt(2 ln T) deviations:
    to be passed over in T rounds takes about that."""
    reach *= math.sqrt(2.0 * math.log(max(2, horizon)))
    tried, count = pulls_tried(horizon)
    grid = np.append(0.0, tried), np.append(1.0, count)  # unlike UCB, it may never pull an arm

    def bound(n: Floats) -> tuple[Floats, Floats]:
        empty = np.array([policy.posterior_mean(float(k), 0.0, *params) for k in n])
        unit = np.array([policy.posterior_mean(float(k), 1.0, *params) for k in n]) - empty
        spread = np.array([policy.posterior_sd(float(k), *params) for k in n])
        return 1.0 / (unit * n), (reach * spread + empty) / (unit * n)

    now, before = bound(np.maximum(1.0, grid[0])), bound(np.maximum(1.0, grid[0] - 1.0))
    unpulled = policy.posterior_mean(0.0, 0.0, *params) + reach * policy.posterior_sd(0.0, *params)
    return Straight(horizon, grid, (now[0], before[0]), (now[1], before[1]), unpulled)


def _around(quest: Quest, view: View) -> Routes | None:
    """The routes of the levels that matter, each with the shares of luck that fit it."""
    levels, share = _refined(quest, view, _first_levels(quest, view))
    level, luck, share = fitting(share)
    if not level.size:
        return None
    levels, later = levels[level], quest.lucks()[luck]
    table = _table(view, quest, levels, later)
    gaps, credit = quest.asked(later)
    price, premium, _ = settled(table, gaps, view.horizon, quest.target, credit, quest.whole)
    return routes_of(table, gaps, price, premium, share)


def needed(share: Floats, premium: Floats) -> Floats:
    """Log shares [cell, luck] without those of more luck than a cell needs.

    A cell that gets where it should without a premium needs no more luck than that.
    """
    free = premium <= 0.0
    too_much = np.cumsum(free, axis=1) > 1
    return np.where(np.isfinite(share) & ~too_much, share, -math.inf)


def fitting(share: Floats) -> tuple[Any, Any, Floats]:
    """(cell, luck, log share) of what to keep of log shares [cell, luck]."""
    order = np.argsort(-share, axis=None, kind="stable")[:KEPT]
    cell, luck = np.unravel_index(np.sort(order), share.shape)
    found = share[cell, luck]
    kept = np.isfinite(found) & (found >= np.max(share) - AROUND)
    return cell[kept], luck[kept], found[kept]


def _first_levels(quest: Quest, view: View) -> Floats:
    """Levels over the whole range where an arm's index may be, dense where indices are."""
    moved = quest.family.mean(quest.means[:, None], quest.lucks()[[0, -1]]).ravel()
    every = view.indices(moved).ravel()
    lowest, highest = np.min(every), np.max(every)
    inner = np.quantile(every, np.linspace(0.0, 1.0, SCAN // 2))
    wide = np.linspace(lowest, highest, SCAN // 2)
    spread = max(float(np.ptp(moved)), 1e-3 * (highest - lowest), 1e-12 * abs(lowest), 1e-300)
    beyond = lowest - spread * np.geomspace(0.01, 4.0, 10)
    return np.unique(np.concatenate([beyond, inner, wide]))


def _refined(quest: Quest, view: View, levels: Floats) -> tuple[Floats, Floats]:
    """More levels where the share is large, until neighbours are alike; and [level, luck] log shares."""
    share, steep = _shares(quest, view, levels)
    for _ in range(12):
        most = share.max(axis=1)
        near = most >= most.max() - AROUND
        wanted = near[1:] | near[:-1]
        wanted &= np.diff(levels) * np.maximum(steep[1:], steep[:-1]) > STEP
        if not wanted.any() or np.count_nonzero(near) > KEPT:
            break
        more = 0.5 * (levels[1:] + levels[:-1])[wanted]
        more_share, more_steep = _shares(quest, view, more)
        order = np.argsort(np.append(levels, more), kind="stable")
        levels, steep = np.append(levels, more)[order], np.append(steep, more_steep)[order]
        share = np.concatenate([share, more_share])[order]
    return levels, share


def _shares(quest: Quest, view: View, levels: Floats) -> tuple[Floats, Floats]:
    """[level, luck] log shares, and how fast a path's log-likelihood changes with the level."""
    lucks = quest.lucks()
    later = np.tile(lucks, levels.size)
    table = _table(view, quest, np.repeat(levels, lucks.size), later)
    gaps, credit = quest.asked(later)
    price, premium, share = settled(table, gaps, view.horizon, quest.target, credit, quest.whole)
    each = price[:, None] - premium[:, None] * gaps
    with np.errstate(invalid="ignore"):
        value = np.log(table.count) - table.cost - each[:, :, None] * table.pulls
        mass = np.exp(value - np.max(value, axis=2, keepdims=True))
        mass /= mass.sum(axis=2, keepdims=True)
        tilt = np.where(table.held, table.low, table.high) - later[:, None, None]
        steep = np.sum(mass * np.abs(tilt) * table.pulls * view.slope, axis=(1, 2))
    steep = np.where(np.isfinite(steep), steep, 0.0).reshape(levels.size, lucks.size)
    shape = (levels.size, lucks.size)
    return needed(share.reshape(shape), premium.reshape(shape)), steep.max(axis=1)
